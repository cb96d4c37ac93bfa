"""A case: a job, what its streams deliver, and where it is interrupted, all drawn from a seed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from jobs.engine.ingest import Ingest
from jobs.engine.microbatch import Job
from jobs.tables.columns import REASON, ROW
from jobs.tables.partitions import Widths
from jobs.tables.requests import Request
from optimizer.query import Column, Stream
from tests.simulation import names, plans, queries, values, wishes
from tests.simulation.dice import UNIT, Dice
from tests.simulation.faults import LOSSES, PAST, At
from tests.simulation.queries import Asked, Limits

HOUR = 3_600_000_000

OTHERS = 0.2
"""How often the tables of results are not the job's alone."""

LOST = 0.3
"""How often somebody loses a table while the job is not running."""

_NOW = 1_700_000_000_000_000

DAYS = (0, 0, _NOW, _NOW, -62_135_596_800_000_000, 253_402_300_000_000_000)
"""When a case may begin, in microseconds: 1970, so that some times are before that; 2023; and the
years 1 and 9999."""

STRANGE = (
    -62_135_596_800_000_000,
    -62_135_596_800_000_000 - 1,
    -(2**63),
    253_402_300_799_999_999,
    253_402_300_799_999_999 + 1,
    2**63 - 1,
)
"""Event times of clocks that are wrong: at the ends of what counts, beyond them, and as far as a
number goes."""


@dataclass(frozen=True)
class Density:
    """How much the streams deliver, and how much of it can meet."""

    rows: Mapping[int, range]
    """How many tuples a stream has, by the number of inputs: even a cross product is small."""
    batches: range
    speeds: range
    """How far a batch moves on, in units: the slower, the more batches meet in a window."""
    keys: tuple[int, ...]
    """How many values a column has."""
    steady: int
    """How many streams start in time for one that may start late."""
    buckets: tuple[int, ...]
    """How wide, in units, the partitions of states are, where the job says so."""


SPARSE = Density(
    {1: range(61), 2: range(41), 3: range(21), 4: range(13), 5: range(9)},
    range(2, 8), range(1, 9), (1, 2, 4, 8), 2, (1, 3, 10, 40),
)  # fmt: skip

DENSE = Density(
    {2: range(30, 81), 3: range(20, 46), 4: range(15, 31), 5: range(10, 17)},
    range(5, 11), range(1, 4), (2, 3, 4), 12, (1, 2, 4, 10),
)  # fmt: skip
"""For migrations: what they move and rebuild must be there, and be needed afterwards."""


@dataclass(frozen=True)
class Row:
    """What a source delivers: a stream's columns in order, or why it could not make them."""

    values: tuple[Any, ...]
    reason: str | None = None

    @property
    def known(self) -> tuple[Any, ...]:
        """The values such that each is equal to itself."""
        return tuple(map(values.equal, self.values))

    def __str__(self) -> str:
        return self.reason or str(self.values)


@dataclass(frozen=True)
class Batch:
    """What a batch brings, and what happens to the process around it."""

    rows: Mapping[str, tuple[Row, ...]]
    pause: int
    """How far the clock moves on before it."""
    crashes: tuple[At, ...] = ()
    """At which event each of its first attempts ends."""
    restart: bool = False
    """Whether another process takes over after it."""
    again: bool = False
    """Whether it is handed over once more when it is done."""
    loss: str = ""
    """What happens to a table before that process begins; it has to be told, and put right."""
    guests: bool = False
    """Whether others write to the tables of results after it."""
    wishes: tuple[Request, ...] = ()
    """What is asked of the job before it."""


@dataclass(frozen=True)
class Case:
    """Everything that a run depends on."""

    seed: int
    job: Job
    limits: Mapping[str, Limits]
    """For each query, its windows as they were written."""
    began: int
    """What the clock says first, in microseconds."""
    batches: tuple[Batch, ...]
    pace: int = 1
    """How much time passes between two looks at the watch by which states are rebuilt."""
    interval: int = 0
    """Between the beginnings of two batches, as the job believes; in microseconds as the pace."""
    unit: int = UNIT
    """What times are mostly multiples of, in microseconds."""
    history: bool = False
    """Whether the tables of results are there before, with rows of others."""


def draw(seed: int, *, migrations: bool = False) -> Case:
    """The case of that seed; with migrations, its plans change while it runs."""
    r, density = Dice(seed), DENSE if migrations else SPARSE
    streams = [queries.stream(r, name) for name in names.streams(r, r.randrange(1, 5))]
    sharing = migrations and r.random() < 0.25
    think = plans.tidy if migrations and r.random() < 0.65 else plans.plan
    asked = _changing(r, streams, sharing=sharing) if migrations else _asked(r, streams)
    ingests = {stream.name: _ingest(r, stream) for stream in streams}
    begin = {name: think(r, one.query) for name, one in asked.items()}
    ideas: list[wishes.Idea] = []
    if sharing:
        begin, ideas = wishes.ploy(r, {name: one.query for name, one in asked.items()})
    width = r.unit * r.choice(density.buckets)
    given = dict.fromkeys(sorted(ingests)[::2], width)
    job = Job(f"seed{seed}", ingests, begin, Widths(given))
    began = r.choice(DAYS)
    limits = {name: one.limits for name, one in asked.items()}
    batches = _batches(r, job, began, density)
    if not migrations:
        return Case(seed, job, limits, began, batches, unit=r.unit, history=r.random() < OTHERS)
    asked_for = tuple(wishes.wish(r, job, batches, think, ideas))
    pace, interval = r.choice(wishes.PACES), r.choice(wishes.INTERVALS)
    history = r.random() < OTHERS
    return Case(seed, job, limits, began, asked_for, pace, interval, r.unit, history)


def relation(stream: Stream, rows: Sequence[Row]) -> pa.Table:
    """Rows as a source hands them to the engine."""
    columns = {
        column.name: pa.array([row.values[i] for row in rows], values.arrow(column.type))
        for i, column in enumerate(stream.columns)
    }
    reasons = pa.array([row.reason for row in rows], pa.string())
    return pa.table(columns | {REASON: reasons, ROW: reasons})


# --- drawing -------------------------------------------------------------------------------------


def _asked(r: Dice, streams: Sequence[Stream]) -> dict[str, Asked]:
    first, second = names.queries(r)
    asked = {first: queries.ask(r, streams)}
    if r.random() < 0.4:
        alike = r.random() < 0.6
        asked[second] = queries.like(r, asked[first]) if alike else queries.ask(r, streams)
    return asked


def _changing(r: Dice, streams: Sequence[Stream], *, sharing: bool) -> dict[str, Asked]:
    """Queries whose plans are to change; if they are to share, two that differ by selects alone."""
    one, *more = _asked(r, streams).items()
    while wishes.is_dull(r, one[1].query, sharing=sharing):
        one, *more = _asked(r, streams).items()
    if sharing:
        more = [(f"{one[0]}2", queries.like(r, one[1], wider_by=[0]))]
    lost = 0.8 if sharing else 0.2
    laxer = {n: replace(a, query=queries.laxer(r, a.query, lost=lost)) for n, a in more}
    return dict([one]) | laxer


def _ingest(r: Dice, stream: Stream) -> Ingest:
    return Ingest(
        stream,
        lateness=r.unit * r.choice([0, r.randrange(8), r.randrange(8)]),
        idle_after=r.choice([None, r.unit * r.randrange(1, 16)]),
        ahead=r.choice([HOUR, 100 * r.unit]),
    )


def _batches(r: Dice, job: Job, began: int, density: Density) -> tuple[Batch, ...]:
    count, speed = r.choice(density.batches), r.choice(density.speeds)
    tuples = density.rows[max(len(plan.query.inputs) for plan in job.plans.values())]
    arrivals = {
        name: list(_arrivals(r, ingest, began, (count, speed, tuples), density))
        for name, ingest in job.streams.items()
    }
    trouble = r.choice([0.0, 0.3, 0.6])
    batches = []
    for number in range(count):
        rows = {name: tuple(row for at, row in a if at == number) for name, a in arrivals.items()}
        batches.append(Batch(rows, r.unit * r.randrange(2 * speed + 1), *_trouble(r, trouble)))
    if r.random() < 0.6:
        end = began + r.unit * (count * speed + r.randrange(40))
        late = {name: (_row(r, one, end, 1, 0),) for name, one in job.streams.items()}
        batches.append(Batch(late, r.unit * speed, *_trouble(r, trouble)))
    quiet: dict[str, tuple[Row, ...]] = dict.fromkeys(job.streams, ())
    return (*batches, Batch(quiet, r.unit * r.randrange(40)))


def _arrivals(
    r: Dice, ingest: Ingest, began: int, scale: tuple[int, int, range], density: Density
) -> Iterator[tuple[int, Row]]:
    """A stream's rows and the batches that bring them; it may start late, stop early, or burst."""
    count, speed, tuples = scale
    first = r.choice([0] * density.steady + [r.randrange(count)])
    last = r.choice([count - 1] * (density.steady - 1) + [r.randrange(first, count)])
    disorder, keys = r.randrange(10), r.choice(density.keys)
    mishaps, bursts = r.choice([0, 0, 0.1]), r.random() < 0.3
    busy = r.randrange(first, last + 1)
    for _ in range(r.choice(tuples)):
        batch = busy if bursts and r.random() < 0.5 else r.randrange(first, last + 1)
        time = began + r.unit * (batch * speed + r.randrange(speed) - r.randrange(disorder + 1))
        if r.random() < 0.1:
            time += r.choice([-1, 1])
        yield batch, _row(r, ingest, time, keys, mishaps)


def _row(r: Dice, ingest: Ingest, time: int, keys: int, mishaps: float) -> Row:
    """One tuple, its keys skewed towards zero; or one of the mishaps that sources have."""
    stream = ingest.stream
    event_time: int | None = time
    if r.random() < mishaps:
        kind = r.choice(["malformed", "no time", "far future", "ahead", "strange"])
        if kind == "malformed":
            return Row((None,) * len(stream.columns), f"not a tuple: {r.randrange(100)}")
        far = time + ingest.ahead + r.unit * r.randrange(-9, 20)
        event_time = {
            "no time": None, "far future": far, "ahead": time + 20 * r.unit,
            "strange": r.choice(STRANGE),
        }[kind]  # fmt: skip
    return Row(
        tuple(
            event_time if column.name == stream.event_time else _value(r, column, keys)
            for column in stream.columns
        )
    )


def _value(r: Dice, column: Column, keys: int) -> object:
    """One of so many, the first ones more often; or none."""
    if r.random() < r.nulls:
        return None
    found = values.kind(column.type).values
    return found[min(r.randrange(keys), r.randrange(keys)) % len(found)]


def _trouble(r: Dice, chance: float) -> tuple[tuple[int, ...], bool, bool, str, bool]:
    """Crashes in a row, early ones as likely as late ones; a restart; the batch once more.

    And what others do: have a table lost, if the job is not running, and write to the results.
    """
    crashes = []
    while r.random() < chance:
        crashes.append(r.randrange(r.choice([6, 15, 30, 60, 100])))
    restart, again = r.random() < chance / 2, r.random() < chance / 2
    loss = r.choice((*LOSSES, PAST)) if r.random() < LOST else ""
    return tuple(crashes), restart, again, loss, r.random() < OTHERS / 2
