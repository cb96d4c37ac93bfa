"""Whether a running plan should change: what was seen, what could be taken, what is decided."""
