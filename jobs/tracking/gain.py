"""What a change of plan has gained, measured: like batches compared with like.

A migration's own batches are left out, those of others, and the first ones after a cut-over, in
which statements are compiled and copies in memory made.  What a batch costs is in part the same
whatever it takes in, so batches are compared that take in about as much; where there are too few of
these, because rates have changed, what a row costs is compared, and that is said.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from jobs.deciding.decisions import Decision
from optimizer.query import Query

BATCHES = 10
"""So many before and after it are compared, at most."""

WARMING = 2
"""So many after a cut-over are not like those to come."""

ALIKE = 1.1
"""Batches whose rows differ by no more than that factor take in about as much."""

LEAST = 3
"""So many alike on either side say more than all."""

Batch = Mapping[str, Any]
"""A row of the progress."""

Cost = Callable[[Batch], float]


@dataclass(frozen=True)
class Gain:
    """What batches cost before and after, and what is compared."""

    before: Sequence[Batch]
    after: Sequence[Batch]
    alike: bool
    """Whether they take in about as much; otherwise a row's cost is compared."""
    by_cpu: bool
    """Whether the job's CPU time is known; otherwise its joins' time is compared."""

    @property
    def share(self) -> float:
        """Of the cost before, what is saved."""
        old, new = self.cost(self.before), self.cost(self.after)
        if not self.alike:
            old, new = old / _mean(rows, self.before), new / _mean(rows, self.after)
        return 1 - new / old

    def cost(self, batches: Sequence[Batch]) -> float:
        """Seconds of a batch, on average."""
        return _mean(_cpu if self.by_cpu else _joins, batches)

    def __str__(self) -> str:
        what = "CPU time of the job" if self.by_cpu else "time of its joins"
        old, new = (_mean(rows, some) for some in (self.before, self.after))
        each = "a batch" if self.alike else "a row, for a batch takes in another number of them"
        return (
            f"{what} {each}: {len(self.before)} batches before of {old:,.0f} rows, "
            f"{len(self.after)} after of {new:,.0f}"
        )

    def figures(self, query: Query, decision: Decision) -> dict[str, float]:
        """As metrics."""
        return {
            "measured_gain": self.share,
            "measured_seconds_per_batch_before": self.cost(self.before),
            "measured_seconds_per_batch_after": self.cost(self.after),
            "measured_rows_per_batch_before": _mean(rows, self.before),
            "measured_rows_per_batch_after": _mean(rows, self.after),
            "measured_batches_before": float(len(self.before)),
            "measured_batches_after": float(len(self.after)),
            **self._error(query, decision),
        }

    def _error(self, query: Query, decision: Decision) -> dict[str, float]:
        """Predicted less measured, both of all that was measured: the plan is a part of it."""
        if not self.by_cpu:
            return {"prediction_error": decision.gain - self.share}
        seconds = _seconds(query, decision, self.before)
        saved = decision.figures["running_cpu"] - decision.figures["chosen_cpu"]
        predicted = saved * seconds / self.cost(self.before)
        return {"predicted_gain_of_job": predicted, "prediction_error": predicted - self.share}


def gain(batches: Sequence[Batch], first: int, done: int) -> Gain | None:
    """Of a migration between two batches; none where there is nothing to compare."""
    quiet = [one for one in batches if rows(one) and not _migrates(one)]
    before = [one for one in quiet if one["batch"] < first][-BATCHES:]
    after = [one for one in quiet if one["batch"] >= done + WARMING][:BATCHES]
    by_cpu = all(one.get("cpu") is not None for one in (*before, *after))
    pairs = list(_pairs(before, after))
    alike = len(pairs) >= min(LEAST, len(before), len(after))
    if alike and pairs:
        before, after = ([pair[side] for pair in pairs] for side in (0, 1))
    found = Gain(before, after, alike, by_cpu)
    return found if before and after and found.cost(before) > 0 else None


def _pairs(before: Sequence[Batch], after: Sequence[Batch]) -> Iterator[tuple[Batch, Batch]]:
    """Batches before, each with one after that takes in about as much, and with no other."""
    free = sorted(after, key=rows)
    for one in sorted(before, key=rows):
        like = (n for n, other in enumerate(free) if _like(rows(one), rows(other)))
        if (place := next(like, None)) is not None:
            yield one, free.pop(place)


def _like(one: int, other: int) -> bool:
    return max(one, other) <= ALIKE * min(one, other)


def _migrates(batch: Batch) -> bool:
    """Whether it has more to do than its plans say."""
    return bool(batch.get("migration") or batch.get("events"))


def rows(batch: Batch) -> int:
    """All that it has taken in."""
    return sum(flow["rows"] for flow in batch["streams"].values())


def _cpu(batch: Batch) -> float:
    return float(batch["cpu"])


def _joins(batch: Batch) -> float:
    return float(sum(work["ms"] for work in batch["operators"].values())) / 1000


def _mean(figure: Callable[[Batch], float], batches: Sequence[Batch]) -> float:
    return fmean(map(figure, batches))


def _seconds(query: Query, decision: Decision, batches: Sequence[Batch]) -> float:
    """Of input in a batch, at the rates by which the decision priced plans."""
    rates = {
        query.streams[alias].name: load["rate"]
        for alias, load in decision.workload["streams"].items()
    }
    taken = _mean(lambda one: sum(one["streams"][name]["rows"] for name in rates), batches)
    whole = sum(rates.values())
    return taken / whole if whole else 0.0
