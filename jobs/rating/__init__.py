"""Plans for output rates: what is asked, what they would make, and the simulation beside it."""
