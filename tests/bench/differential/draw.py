"""A case of a seed: streams, rows, files, a query over them and a plan."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from tests.bench.differential import layouts, queries, writers
from tests.bench.differential.case import Case, File, Query, Row, Stream
from tests.bench.differential.texts import DAYS, MOMENTS, SEPARATORS, spoiled
from tests.bench.differential.values import COLUMNS, STREAMS, TYPES, maker, some

CLOCK = 1_790_000_000_000_000
"""When all batches begin: September 2026."""

ROWS = {1: 60, 2: 36, 3: 14}
"""How many rows a stream has at most, by the number of inputs."""

PACKED = (".gz", ".zst", ".bz2")
"""Ends of names of text files that are compressed."""

FORMATS = ("parquet", "parquet", "csv", "json")

DIRECTORIES = ("d", "k=v", "a b", "it's", 'q"q', "s*", "[ab]", "q?", "ü", "a%20b", "x{1,2}", "a+b",
               "a#b", "a,b", "a&b", "$HOME", "~", "(x)")  # fmt: skip
NAMES = ("part", "p*", "p[0]", "p?", "k=v", "p q", "p'q", "ü", "p%41", "p#1", "p+1", "p&q", "p,q",
         "$p", "p{0}", "(p)", "p=1", "p!", "p^", "~p")  # fmt: skip


@dataclass(frozen=True)
class Pace:
    """How time goes on in a case, in microseconds."""

    began: int
    unit: int
    batches: int
    speed: int
    """Units from batch to batch."""


def draw(seed: int, formats: Sequence[str] = FORMATS) -> Case:
    """The case of that seed."""
    r = Random(f"differential {seed}")
    count = r.choices([1, 2, 3], [3, 5, 2])[0]
    pace = _pace(r)
    streams = tuple(_stream(r, name, pace, formats) for name in some(r, STREAMS, count))
    query = queries.draw(r, streams, pace.unit)
    files = [file for stream in streams for file in _files(r, stream, pace, len(query.inputs))]
    return Case(
        seed,
        streams,
        tuple(files),
        query,
        _plan(r, query),
        width=pace.unit * r.choice([1, 10, 100]),
        tasks=r.choice([1, 2, 3]),
        clock=CLOCK,
        name=r.choice(["q", "in", "state-x", "a__b", "s", "by-gate", "late_s"]),
    )


def _pace(r: Random) -> Pace:
    unit = r.choice([1, 1, 1_000, 250_000, 1_000_000, 60_000_000, 86_400_000_000])
    began = r.choice(
        [1_700_000_000_000_000] * 3
        + [0, -1_000_000_000_000_000, 1_710_054_000_000_000 - 10 * unit, -62_000_000_000_000_000]
    )
    return Pace(began, unit, r.randrange(1, 6), r.randrange(1, 9))


# --- streams -------------------------------------------------------------------------------------


def _stream(r: Random, name: str, pace: Pace, formats: Sequence[str]) -> Stream:
    form = r.choice(formats)
    names = some(r, COLUMNS, r.randrange(2, 7))
    types = [r.choice(TYPES) for _ in names]
    time = r.randrange(len(names))
    types[time] = "TIMESTAMP"
    made = Stream(
        name,
        tuple(zip(names, types, strict=True)),
        names[time],
        lateness=pace.unit * r.choice([0, r.randrange(8), r.randrange(30)]),
        ahead=r.choice([3_600_000_000, 10 * pace.unit]),
        format=form,
        directory=f"{r.choice(DIRECTORIES)}/{name}" if r.random() < 0.5 else name,
        at_once=r.choice([1, 1, 2, 3]),
        options=_options(r, form),
    )
    named = form != "csv" or bool(dict(made.options)["header"])
    made = replace(made, mode=r.choice(["", "", "exact", *(["declared"] if named else [])]))
    if r.random() < 0.15:
        return layouts.partitioned(r, made)
    recursive = ("recursiveFileLookup", True)
    return replace(made, options=(*made.options, recursive)) if r.random() < 0.1 else made


def _options(r: Random, form: str) -> tuple[tuple[str, str | bool], ...]:
    found: dict[str, Any] = {}
    if form == "csv":
        found = {"header": r.random() < 0.5}
        if (separator := r.choice(SEPARATORS)) != ",":
            found["sep"] = separator
    often = {"csv": 0.4, "json": 0.2}.get(form, 0)
    for name, values in (CSV if form == "csv" else JSON).items() if r.random() < often else ():
        if r.random() < 0.4:
            found[name] = r.choice(values)
    return tuple(found.items())


JSON: dict[str, tuple[Any, ...]] = {
    "timestampFormat": tuple(MOMENTS), "dateFormat": tuple(DAYS), "lineSep": ("\n", "\x1e"),
    "encoding": ("UTF-16", "utf-8"),
}  # fmt: skip
CSV: dict[str, tuple[Any, ...]] = JSON | {
    "quote": ("'",), "escape": ("\\",), "nullValue": ("NA", "-"), "emptyValue": ("EMPTY",),
    "nanValue": ("missing",), "positiveInf": ("++",), "negativeInf": ("--",), "comment": ("#",),
    "ignoreLeadingWhiteSpace": (True, False), "ignoreTrailingWhiteSpace": (True, False),
}  # fmt: skip
"""Options of text files, and what they may be."""


def _files(r: Random, stream: Stream, pace: Pace, inputs: int) -> Iterator[File]:
    rows = list(_rows(r, stream, pace, r.randrange(ROWS[inputs] + 1)))
    count = pace.batches * stream.at_once - r.randrange(stream.at_once)
    numbers, mishaps = r.sample(range(1000), count), r.choice([0, 0, 0.05])
    for at, number in enumerate(sorted(numbers)):
        share = [row for where, row in rows if where * count // pace.batches == at]
        writer = r.choice(writers.names(stream))
        risk = mishaps if writers.breaks(stream, writer) else 0
        packed = r.choice(PACKED) if stream.format != "parquet" and r.random() < 0.2 else ""
        below, values = layouts.placed(r, stream)
        name = f"{below}{number:03}{r.choice(NAMES)}.{stream.format}{packed}"
        lines = [
            spoiled(r, stream, row)
            if r.random() < risk
            else layouts.within(stream, writers.told(stream, writer, row), values)
            for row in share
        ]
        yield File(stream.name, name, writer, tuple(lines))


def _rows(r: Random, stream: Stream, pace: Pace, count: int) -> Iterator[tuple[float, Row]]:
    """Rows and when they arrive, in batches; some out of order, at the edge, or without a time."""
    makers = [maker(r, kind) for _, kind in stream.columns]
    disorder, mishaps = r.randrange(10), r.choice([0, 0, 0.1])
    for _ in range(count):
        arrives = r.random() * pace.batches
        time: int | None = pace.began + pace.unit * (
            int(arrives * pace.speed) - r.randrange(disorder + 1)
        )
        assert time is not None
        if r.random() < 0.2:
            time += r.choice([-1, 1])
        if r.random() < mishaps:
            far = [CLOCK + stream.ahead, CLOCK + stream.ahead + 1, 253_402_300_799_999_999]
            beyond = [2**62, -(2**62), -(2**63), 2**63 - 1] if stream.format == "parquet" else []
            time = r.choice([None, *far, *beyond, -62_135_596_800_000_000])
        values = [make(r) for make in makers]
        values[stream.at] = time
        yield arrives, tuple(values)


# --- plans ---------------------------------------------------------------------------------------


def _plan(r: Random, query: Query) -> str | None:
    """Any tree of the inputs; of a group-by, some combined. None is what the text suggests."""
    if r.random() < 0.3:
        return None
    leaves = [
        f"[{alias}]" if query.grouping is not None and r.random() < 0.3 else alias
        for alias in query.aliases
    ]
    return _tree(r, r.sample(leaves, len(leaves)))


def _tree(r: Random, leaves: list[str]) -> str:
    if len(leaves) == 1:
        return leaves[0]
    if len(leaves) > 2 and r.random() < 0.3:
        return f"({' '.join(leaves)})"
    cut = r.randrange(1, len(leaves))
    return f"({_tree(r, leaves[:cut])} {_tree(r, leaves[cut:])})"
