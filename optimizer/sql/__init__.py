"""SQL text to `Query`: Spark's SELECT over streams, or a reason and a position why not.

The only package of the optimizer that imports sqlglot.  docs/sql.md describes the dialect.
"""

from optimizer.sql.durations import parse_duration
from optimizer.sql.schema import parse_schema
from optimizer.sql.select import parse
from optimizer.sql.text import SqlError

__all__ = ["SqlError", "parse", "parse_duration", "parse_schema"]
