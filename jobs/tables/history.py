"""A job's control tables read from the middle: the past makes no look take longer.

Their files are named by the newest batch that they hold, and so can be told apart unopened.
"""

from bisect import bisect_left
from collections.abc import Callable
from functools import cached_property
from json import loads
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from jobs.tables.damage import whole
from jobs.tables.delta_store import DeltaStore
from jobs.tables.paths import files_of


class History:
    """The rows of a control table, one a batch."""

    def __init__(self, store: DeltaStore, table: str) -> None:
        self._store = store
        self._table = table

    @cached_property
    def last(self) -> int:
        """The newest batch, when somebody first asked."""
        return self._newest[-1] if self._newest else -1

    def between(self, first: int, last: int) -> list[dict[str, Any]]:
        """What the rows of some batches say, the oldest first."""
        files = zip(self._newest, self._files, strict=True)
        start = bisect_left(self._newest, first)
        found: dict[int, str] = {}
        for newest, path in list(files)[start:]:
            found |= _rows(path, first, last)
            if newest >= last:
                break
        return [loads(found[batch]) for batch in sorted(found)]

    def first(self, reached: Callable[[dict[str, Any]], bool]) -> int:
        """The first batch that has reached something, as all after it have; or the next to come."""
        return bisect_left(range(self.last + 1), True, key=lambda b: reached(self._one(b)))  # noqa: FBT003

    def _one(self, batch: int) -> dict[str, Any]:
        (content,) = self.between(batch, batch)
        return content

    @cached_property
    def _files(self) -> list[str]:
        if not self._store.exists(self._table):
            return []
        return sorted(files_of(self._store.table(self._table)), key=_number)

    @cached_property
    def _newest(self) -> list[int]:
        return [_number(path) for path in self._files]


def _number(path: str) -> int:
    """What a file's name says; a dash more for each merge that made it."""
    return int(Path(path).stem.rstrip("-"))


def _rows(path: str, first: int, last: int) -> dict[int, str]:
    """The rows of some batches, from the parts of a file that may have them."""
    found: dict[int, str] = {}
    with whole(Path(path)), pq.ParquetFile(path) as file:
        for number in range(file.num_row_groups):
            bounds = file.metadata.row_group(number).column(0).statistics
            if bounds.max >= first and bounds.min <= last:
                rows = file.read_row_group(number).to_pylist()
                found |= {r["batch"]: r["content"] for r in rows if first <= r["batch"] <= last}
    return found
