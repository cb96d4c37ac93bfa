"""What texts mean as values of a type: one table of rules for JSON and CSV, on every engine.

A text that has no value of the declared type makes its row a rejected one, with the column and the
text as the reason.  Nothing is rounded, wrapped or guessed.
"""

import atexit
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import duckdb
import pyarrow as pa

from jobs.backends.parquet_input import quoted
from jobs.sources.common import Feed, raw_schema
from jobs.tables.columns import REASON, ROW

SHOWN = 80
"""So many characters of a text that does not fit stand in the reason."""

FIRST, LAST = "0001-01-01", "9999-12-31"
"""Between these days lie all dates and times: what Spark, DuckDB, Arrow and Python tell alike."""


@dataclass(frozen=True)
class Rule:
    """How the text of a value looks, and what DuckDB makes of TEXT: nothing if it has no value."""

    looks: str
    value: str


_NUMBER = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"
_NO_NUMBER = r"(?i:[+-]?nan|[+-]?inf(inity)?)"
_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]+)?)?"
_ZONE = r"(Z|[+-](0[0-9]|1[0-8])(:?[0-5][0-9])?)"
_MICROS = r"regexp_replace(TEXT, '(\.[0-9]{6})[0-9]+', '\1')"
_INSTANT = (
    "CASE WHEN length(TEXT) = 10 THEN TEXT || ' 00:00:00Z' "
    f"WHEN regexp_matches(TEXT, '{_ZONE}$') THEN {_MICROS} ELSE {_MICROS} || 'Z' END"
)
"""A time without a zone is one of UTC; what is finer than microseconds is cut off."""

_WHOLE = Rule("[+-]?[0-9]+", "TRY_CAST(TEXT AS TYPE)")
_FLOATING = Rule(
    f"{_NUMBER}|{_NO_NUMBER}",
    "CASE WHEN regexp_matches(TEXT, '[0-9]') AND isinf(TRY_CAST(TEXT AS TYPE)) THEN NULL "
    "ELSE TRY_CAST(TEXT AS TYPE) END",
)
"""A number too large for its type has no value: it is not infinity."""

RULES = {
    "BOOLEAN": Rule("(?i:true|false)", "TRY_CAST(TEXT AS BOOLEAN)"),
    "TINYINT": _WHOLE,
    "SMALLINT": _WHOLE,
    "INT": _WHOLE,
    "BIGINT": _WHOLE,
    "FLOAT": _FLOATING,
    "DOUBLE": _FLOATING,
    "DATE": Rule(_DAY, f"within(TRY_CAST(TEXT AS DATE), DATE '{FIRST}', DATE '{LAST}')"),
    "TIMESTAMP": Rule(
        f"{_DAY}([T ]{_CLOCK}{_ZONE}?)?",
        f"within(TRY_CAST({_INSTANT} AS TIMESTAMPTZ), TIMESTAMPTZ '{FIRST} 00:00:00Z', "
        f"TIMESTAMPTZ '{LAST} 23:59:59.999999Z')",
    ),
    "STRING": Rule("(?s:.*)", "TEXT"),
    "BINARY": Rule("(?s:.*)", "encode(TEXT)"),
}

BASE64 = Rule("([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", "from_base64(TEXT)")
"""How JSON tells a BINARY; in CSV it is the text's bytes."""

_WITHIN = "CREATE MACRO within(v, low, high) AS CASE WHEN v BETWEEN low AND high THEN v END"


def typed(feed: Feed, texts: pa.Table, own: Mapping[str, Rule]) -> pa.Table:
    """The rows of a stream, from a text for each of its columns, why a row is none, and the row.

    `own` are the rules that a format has instead of the usual ones.
    """
    columns = list(enumerate(feed.stream.columns))
    values = [f"{_value(f'#{i}', c.type, own)} AS {quoted(f'={i}')}" for i, c in columns]
    wrong = [
        f"CASE WHEN {quoted(f'#{i}')} IS NOT NULL AND {quoted(f'={i}')} IS NULL THEN "
        f"'{c.name} is not {c.type}: ' || left({quoted(f'#{i}')}, {SHOWN}) END"
        for i, c in columns
    ]
    names = ", ".join(f"{quoted(f'={i}')} AS {quoted(c.name)}" for i, c in columns)
    statement = (
        f"SELECT {names}, why AS {quoted(REASON)}, CASE WHEN why IS NOT NULL THEN text END "
        f"AS {quoted(ROW)} FROM (SELECT *, coalesce(reason, nullif(concat_ws(', ', "
        f"{', '.join(wrong)}), '')) AS why FROM (SELECT *, {', '.join(values)} FROM texts))"
    )
    with _database().cursor() as connection:
        connection.register("texts", texts)
        return connection.sql(statement).to_arrow_table().cast(raw_schema(feed))


def _value(text: str, kind: str, own: Mapping[str, Rule]) -> str:
    rule = own.get(kind) or RULES.get(kind) or _decimal(kind)
    duck = {"STRING": "VARCHAR"}.get(kind, kind)
    value = rule.value.replace("TEXT", quoted(text)).replace("TYPE", duck)
    return f"CASE WHEN regexp_full_match({quoted(text)}, '{rule.looks}') THEN {value} END"


def _decimal(kind: str) -> Rule:
    """Zeros only may follow the last digit that the type has place for."""
    scale = int(kind.rstrip(")").rpartition(",")[2])
    return Rule(rf"[+-]?[0-9]*(\.[0-9]{{0,{scale}}}0*)?", _WHOLE.value)


@cache
def _database() -> duckdb.DuckDBPyConnection:
    made = duckdb.connect()
    made.execute(_WITHIN)
    atexit.register(_database.cache_clear)
    return made
