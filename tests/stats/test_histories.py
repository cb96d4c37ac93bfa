"""Windows of jobs to whom anything may happen: nothing that can happen is a defect.

A job is made up here batch by batch, in plain Python: what it accepted, its watermark, its windows.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from optimizer.query import Stream
from optimizer.sql import parse, parse_schema
from stats.collect import Input, Subject, Totals, _batches, _groups, _operators, _streams
from stats.frames import Expected
from stats.store import (
    BATCHES,
    COLUMNS,
    EDGES,
    GROUPS,
    OPERATORS,
    STREAMS,
    StatsStore,
    Window,
)
from stats.validate import validate
from stats.windows import Batch, Counted, Worked, at, complete

SECOND = 1_000_000
MINUTE = 60 * SECOND
STREAMS_OF = {name: Stream(name, parse_schema("k BIGINT, ts TIMESTAMP"), "ts") for name in "ab"}
QUERIES = {
    "n": parse(
        "SELECT a.k, count(*) AS n FROM a JOIN b ON a.k = b.k"
        " GROUP BY a.k, window(a.ts, '5 minutes')",
        STREAMS_OF,
        10 * SECOND,
    )
}

Times = list[int]
"""Event times, in seconds."""


@dataclass(frozen=True)
class Taken:
    """What a batch took of each stream, and the job's clock when it was done, in seconds."""

    a: Times
    b: Times
    clock: float = 0.0


@dataclass(frozen=True)
class History:
    """A job's batches, its lateness, and after how long a silent stream is waited for no more."""

    taken: Sequence[Taken]
    lateness: int = 0
    idle_after: int = 10**9


def second(start: int, seconds: int, rate: int = 1) -> Times:
    """So many tuples a second, for so long."""
    return [time for time in range(start, start + seconds) for _ in range(rate)]


def both(start: int, seconds: int, rate: int = 1) -> Taken:
    """The same of both streams, as soon as it is there."""
    return Taken(second(start, seconds, rate), second(start, seconds, rate), start + seconds)


def steady(start: int, seconds: int, each: int = 20, rate: int = 1) -> list[Taken]:
    return [both(time, each, rate) for time in range(start, start + seconds, each)]


class Made:
    """What a job of such a history has counted, and its tuples by window."""

    def __init__(self, history: History) -> None:
        self.batches: list[Batch] = []
        self.rows: dict[str, Counter[int]] = {"a": Counter(), "b": Counter()}
        newest: dict[str, int | None] = {"a": None, "b": None}
        seen = {"a": 0.0, "b": 0.0}
        watermark: int | None = None
        emitted: int | None = None
        before: int | None = None
        for number, taken in enumerate(history.taken):
            counted = {}
            for name, times in (("a", taken.a), ("b", taken.b)):
                micros = [time * SECOND for time in times]
                late = [t for t in micros if watermark is not None and t < watermark]
                fine = [t for t in micros if watermark is None or t >= watermark]
                for time in fine:
                    self.rows[name][at(time, MINUTE).start] += 1
                known = newest[name]
                newest[name] = max([*micros, *([] if known is None else [known])], default=None)
                counted[name] = Counted(len(fine), len(late), 0, newest[name])
                seen[name] = taken.clock if times else seen[name]
            speaks = [n for n in "ab" if taken.clock - seen[n] <= history.idle_after]
            spoken = [of for n in speaks if (of := newest[n]) is not None]
            after = watermark
            if speaks and len(spoken) == len(speaks):
                least = min(spoken) - history.lateness * SECOND
                after = max(least, -(2**62) if watermark is None else watermark)
            until = None if after is None else after // (5 * MINUTE) * 5 * MINUTE
            self.batches.append(
                Batch(
                    number, watermark, after, int(taken.clock * SECOND), before, 500.0, 0.4, 10**8,
                    0, counted, {"join": Worked(3, 5, 40, 100.0), "n": Worked(1, 2, 16, 50.0)},
                    {"n": 4}, {} if until is None or emitted is None else {"n": (emitted, until)},
                )
            )  # fmt: skip
            watermark, before, emitted = after, self.batches[-1].finished, until
        self.first = next(b.watermark for b in self.batches if b.watermark is not None)

    @property
    def windows(self) -> list[Window]:
        """Those that are complete: a batch began with a watermark past them."""
        return complete(self.first, self.batches[-1].watermark, MINUTE)

    def totals(self, name: str) -> dict[int, Totals]:
        return {start: Totals(n, 16 * n, n, n * n) for start, n in self.rows[name].items()}

    def tables(self) -> dict[str, list[tuple[Window, dict[str, Any]]]]:
        """As gathering makes them."""
        taken = {
            name: {b.number: b.streams[name].accepted + b.aside(name) for b in self.batches}
            for name in "ab"
        }
        inputs = {n: Input(STREAMS_OF[n], None, taken[n]) for n in "ab"}  # type: ignore[arg-type]
        first = at(self.first, MINUTE)
        subject = Subject(self.windows, first, inputs, QUERIES, self.batches)
        return {
            STREAMS: list(_streams(subject, {name: self.totals(name) for name in "ab"})),
            COLUMNS: [(w, self.column(w, name)) for w in self.windows for name in "ab"],
            EDGES: [(w, self.edge(w)) for w in self.windows],
            GROUPS: list(_groups(subject)),
            OPERATORS: list(_operators(subject)),
            BATCHES: list(_batches(subject)),
        }

    def column(self, window: Window, name: str) -> dict[str, Any]:
        rows = self.rows[name][window.start]
        heavy = [{"value": "1", "rows": rows}] if rows else []
        return {"stream": name, "value": "k", "rows": rows, "nulls": 0, "distinct": len(heavy),
                "heavy": heavy}  # fmt: skip

    def edge(self, window: Window) -> dict[str, Any]:
        pairs = self.rows["a"][window.start] * self.rows["b"][window.start]
        share = {"selectivity": 1.0, "error": 0.0} if pairs else {"selectivity": None}
        return {"query": "n", "one": "a", "other": "b", "pairs": float(pairs),
                "matches": float(pairs), "method": "exact", **share}  # fmt: skip


def judged(directory: Path, made: Made) -> dict[int, list[str]]:
    """By window, what is wrong."""
    store = StatsStore.of(directory)
    for table, rows in made.tables().items():
        by_window: dict[Window, list[dict[str, Any]]] = {window: [] for window in made.windows}
        for window, row in rows:
            by_window[window].append(row)
        store.replace_all(table, by_window)
    verdicts = validate(store, Expected(("a", "b"), QUERIES), at=0)
    assert [one.window for one in verdicts] == made.windows
    return {one.window.start // MINUTE: one.reasons for one in verdicts}


DAY = 24 * 3600

HISTORIES = {
    "nothing happens": History(steady(0, 900)),
    "it stands still for ten minutes, and takes what came by one batch": History(
        [*steady(0, 300), replace(both(300, 600), clock=900), *steady(900, 300)]
    ),
    "it stands still for two hours, and so does its source": History(
        [*steady(0, 300), *steady(7500, 300)]
    ),
    "it catches up from the beginning, ten minutes a batch": History(
        steady(0, 3600, each=600), lateness=30
    ),
    "it runs for a part of a window only": History(
        [*steady(0, 305, each=5), *steady(900, 300, each=5)]
    ),
    "one stream begins an hour after the other": History(
        [*(Taken(second(t, 20), [], t + 20) for t in range(0, 3600, 20)), *steady(3600, 600)]
    ),
    "a stream is silent for a minute, and the other goes on": History(
        [
            Taken([] if 400 <= t < 460 else second(t, 20), second(t, 20), t + 20)
            for t in range(0, 900, 20)
        ],
        lateness=90, idle_after=15,
    ),
    "a stream says nothing for a long time": History(
        [Taken(second(t, 20), second(t, 20) if t < 300 else [], t + 20)
         for t in range(0, 1500, 20)], idle_after=60,
    ),
    "all at once there is five hundred times as much, and late tuples may come": History(
        [*steady(0, 600), *steady(600, 300, rate=500), *steady(900, 600)], lateness=150
    ),
    "late tuples of an hour": History(steady(0, 9000, each=60, rate=2), lateness=3600),
    "late ones come of a stream that was idle": History(
        [*steady(0, 300), *(Taken(second(t, 20), [], t + 20) for t in range(300, 600, 20)),
         Taken(second(600, 20), second(300, 60), 620), *steady(620, 400)], idle_after=30,
    ),
    "its clock is set back by an hour, then two hours ahead": History(
        [replace(t, clock=t.clock + shift) for t, shift in zip(
            steady(0, 900), [0] * 15 + [-3600] * 15 + [3600] * 15, strict=True)]
    ),
    "a watermark of long ago": History(
        steady(-DAY, 400)
    ),
}  # fmt: skip


@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES)
def test_whatever_happens_to_a_job_its_windows_are_good(tmp_path: Path, history: History):
    made = Made(history)
    found = judged(tmp_path, made)
    assert len(found) >= 4
    assert {window: reasons for window, reasons in found.items() if reasons} == {}


def test_a_job_that_is_restarted_with_another_engine(tmp_path: Path):
    """Other operators, and nobody measures the CPU: nothing of it is a defect."""
    made = Made(HISTORIES["nothing happens"])
    made.batches = [
        replace(b, cpu=None, backlog=None, memory=None, operators={"other": Worked(1, 1, 1, 1.0)})
        if b.number > 20 else b for b in made.batches
    ]  # fmt: skip
    assert not any(judged(tmp_path, made).values())


# --- what is wrong -------------------------------------------------------------------------------


def _vanish(made: Made) -> None:
    made.rows["a"][6 * MINUTE] = 0


def _few(made: Made) -> None:
    """One of the moments to which batches moved the newest event time is missing."""
    made.rows["a"][6 * MINUTE] = 2


def _shift(made: Made) -> None:
    """Event times an hour off, as with a wrong zone."""
    made.rows["a"] = Counter({start + 60 * MINUTE: n for start, n in made.rows["a"].items()})


def _swell(made: Made) -> None:
    made.rows["a"][6 * MINUTE] *= 3


@pytest.mark.parametrize(
    ("wrong", "windows", "reason"),
    [
        (_vanish, {6}, "a has 0 rows, where batches moved its newest event time on 3 times"),
        (_few, {6}, "a has 2 rows, where batches moved its newest event time on 3 times"),
        (_shift, {*range(14)}, "a has 0 rows, where batches moved its newest event time on 3"
                               " times"),
        (_swell, {6}, "a has 180 rows, more than the 80 that the job accepted in all batches that"
                      " may have taken any"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_still_found(
    tmp_path: Path, wrong: Callable[[Made], None], windows: set[int], reason: str
):
    made = Made(HISTORIES["nothing happens"])
    wrong(made)
    found = judged(tmp_path, made)
    assert {window for window, reasons in found.items() if reasons} == windows
    assert f"streams: {reason}" in found[6]


def test_a_batch_whose_tuples_are_gone_is_found(tmp_path: Path):
    made = Made(HISTORIES["nothing happens"])
    made.batches = [
        replace(b, streams=dict(b.streams) | {"a": replace(b.streams["a"], late=7)})
        if b.number == 20 else b for b in made.batches
    ]  # fmt: skip
    tables = made.tables()
    row = next(r for w, r in tables[STREAMS] if r["late"] and r["stream"] == "a")
    assert row["taken"] == row["accepted"] + row["late"]
    row["taken"] -= 7
    made.tables = lambda: tables  # type: ignore[method-assign]
    found = judged(tmp_path, made)
    assert [reasons for reasons in found.values() if reasons] == [
        ["streams: 60 rows of a were taken, but 60 accepted, 7 late and 0 rejected make 67"]
    ]
