"""Golden plans: what `explain` says of some queries, so that a change to it is a diff to review."""
