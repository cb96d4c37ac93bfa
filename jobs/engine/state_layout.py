"""How a plan's states will lie on the disk once they are full: partitions, files, for how long.

The files of a batch are cut as the engine cuts them, of rows that come evenly.  How many are there
at a time follows from how long each is kept, less those that are merged meanwhile.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jobs.engine.inline_compaction import Limits
from jobs.tables.columns import UNTIL
from jobs.tables.partitions import SMALL, Partitioning, Widths, parted
from optimizer.cost.dual import Priced
from optimizer.migration.matching import States
from optimizer.plan import GroupBy, Node
from optimizer.window import MICROSECONDS

SAMPLE = 64
"""Tuples that stand for those of a batch, and as many older ones that each is combined with."""


@dataclass(frozen=True)
class StateLayout:
    """A state's files, once it is full."""

    width: int
    """The least range of event time of a partition, in microseconds."""
    kept: int
    """For how long a row is, in microseconds."""
    batch_files: int
    """That a batch adds."""
    files: int
    """That there are at a time, about."""

    def to_json(self) -> dict[str, float]:
        """For programs."""
        return {
            "partition_seconds": self.width / MICROSECONDS,
            "kept_seconds": self.kept / MICROSECONDS,
            "files_per_batch": self.batch_files,
            "files": self.files,
        }


def layouts(priced: Priced, widths: Widths, batch: float) -> Mapping[str, StateLayout]:
    """Those of a plan's states, by key, with so many seconds of input in a batch."""
    states = States.of(priced.plan)
    return {
        key: _layout(nodes[0], states.retention[key], widths, priced, batch)
        for key, nodes in states.nodes.items()
    }


def _layout(node: Node, kept: int, widths: Widths, priced: Priced, batch: float) -> StateLayout:
    width, step = widths.of(node, kept), max(1, round(batch * MICROSECONDS))
    files = _files(Partitioning(width, -kept, step), _untils(node, priced, step))
    lives = [ceil((until + kept) / step) for until in files]
    small = priced.estimates[node].rate * batch < SMALL * len(files)
    ahead = node.grouping.size if isinstance(node, GroupBy) else 0
    return StateLayout(width, kept + ahead, len(files), _alive(lives, width / step, small=small))


def _untils(node: Node, priced: Priced, step: int) -> NDArray[np.int64]:
    """How much later than the watermark rows of a batch end, if tuples come evenly.

    A group ends up to a window later.  Of a combined tuple the newest part comes with the batch,
    and the oldest one ends it: of several older ones that is the oldest.
    """
    even = (np.arange(SAMPLE) + 0.5) / SAMPLE
    if isinstance(node, GroupBy):
        return (even * node.grouping.size).astype(np.int64)
    bounds = priced.plan.query.bounds.restrict(sorted(node.aliases))
    older = even ** (1 / max(1, len(node.aliases) - 1)) * bounds.longest
    found: NDArray[np.int64] = -np.add.outer(even * step, older).ravel().astype(np.int64)
    return found


def _files(by: Partitioning, untils: NDArray[np.int64]) -> list[int]:
    """How much later than the watermark each of a batch's files ends, but for overdue rows."""
    return [until for until, _ in parted(pa.table({UNTIL: untils}), by) if until != by.cutoff]


def _alive(lives: Sequence[int], batches: float, *, small: bool) -> int:
    """The files that there are of batches that add those, each for so many batches.

    `batches`: of a partition.  Once it gets no more rows its small files become one; before that,
    and of larger ones, so many are left alone.
    """
    most, there = Limits().files, sum(lives)
    partitions = max(1.0, max(lives, default=0) / batches)
    each = there / partitions
    left = each if each <= most else each / (most + 1) + most / 2
    return min(there, round(min(each, most) + partitions - 1 if small else left * partitions))
