"""What a plan costs, under each of the papers' models and our engine's own."""
