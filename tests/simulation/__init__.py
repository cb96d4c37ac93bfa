"""The deterministic simulator: the engine's own code under schedules that a seed decides.

`case` draws a job, its input and its crashes; `run` carries them out on the DuckDB executor over a
store in memory that fails where the case says; `oracle` says what must come out, by a route of its
own; `shrink` makes a failing case small enough to read.
"""
