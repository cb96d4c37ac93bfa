"""How rows lie in files: directories below, partitions, more columns, in another order."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any
from urllib.parse import quote

from tests.bench.differential.case import Broken, Row, Stream
from tests.bench.differential.terms import Value
from tests.bench.differential.texts import text
from tests.bench.differential.values import COLUMNS, TYPES, maker, some

BELOW = ("", "", "below/", "a b/c=d/", "k=1/", "z*/", "%41/")
NULL = "__HIVE_DEFAULT_PARTITION__"


def partitioned(r: Random, stream: Stream) -> Stream:
    """Some columns in directories' names, in a case of their own where that does not matter."""
    may = [n for n, kind in stream.columns if n != stream.time and kind != "BINARY"]
    parts = r.sample(may, min(len(may), r.choice([1, 1, 2])))
    shown = [n if stream.exact else cased(r, n) for n in parts]
    return replace(stream, parts=tuple(zip(parts, shown, strict=True)))


def placed(r: Random, stream: Stream) -> tuple[str, dict[str, Value]]:
    """The directory of a file, and the values of columns that it tells."""
    if dict(stream.options).get("recursiveFileLookup"):
        return r.choice(BELOW), {}
    values, path, kinds = dict[str, Value](), "", dict(stream.columns)
    for name, shown in stream.parts:
        value = maker(r, kinds[name])(r)
        values[name] = None if value == "" else value
        told = NULL if values[name] is None else quote(text(value, kinds[name], r), safe=" +")
        path += f"{shown}={told}/"
    return path, values


def within(stream: Stream, row: Row, values: dict[str, Value]) -> Row:
    """A row in a file whose directory tells these."""
    named = zip(stream.columns, row, strict=True)
    return tuple(values.get(name, value) for (name, _), value in named)


def cased(r: Random, name: str) -> str:
    """A name that is the same to Spark."""
    other = r.choice([name, name, name.swapcase(), name.upper()])
    return other if other.lower() == name.lower() else name


def dressed(
    stream: Stream, rows: Sequence[Any], r: Random
) -> tuple[Stream, list[tuple[Value, ...] | Broken]]:
    """The columns and the rows of a file: by name, there may be more, in any order and case."""
    parts = dict(stream.parts)
    columns = [(at, *column) for at, column in enumerate(stream.columns) if column[0] not in parts]
    makers = {}
    if not stream.exact and r.random() < 0.7:
        taken = {name.lower() for name, _ in stream.columns}
        more = [name for name in some(r, COLUMNS, 3) if name.lower() not in taken]
        for at, name in enumerate(more, len(stream.columns)):
            kind = r.choice([t for t in TYPES if stream.format == "parquet" or t != "BINARY"])
            makers[at] = maker(r, kind)
            columns.append((at, name, kind))
        r.shuffle(columns)
        if stream.format != "json":
            columns = [(at, cased(r, name), kind) for at, name, kind in columns]

    def whole(row: Any) -> tuple[Value, ...] | Broken:
        if isinstance(row, Broken):
            return row
        return tuple(makers[at](r) if at in makers else row[at] for at, _, _ in columns)

    shown = tuple((name, kind) for _, name, kind in columns)
    return replace(stream, columns=shown), [whole(row) for row in rows]
