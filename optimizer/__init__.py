"""Plans and decisions as pure values: no Spark, no I/O, no clock, no global state."""
