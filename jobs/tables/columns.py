"""Columns of our own in a job's tables, and the times in them.

No user can write `@` into a name, so that columns of our own never meet one of theirs.
"""

UNTIL = "@until"
"""The partition column of a state: an upper bound of its rows' smallest event time."""

BATCH = "@batch"
"""The batch that wrote a row."""

REASON, ROW, WATERMARK = "@reason", "@row", "@watermark"
"""Columns of rows set aside: why, the text they were read from, and what they came too late for."""

ALWAYS = -(2**62)
"""Before every event time, in microseconds."""
