"""Delta tables as their log tells of them: which files a source gave out, and who wrote what."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from json import loads
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from jobs.verify.past import Position
from jobs.verify.verdict import CannotTellError
from optimizer.query import Column

Action = dict[str, Any]


def actions(table: Path, version: int) -> list[Action] | None:
    """What a version did; nothing if its log entry is gone."""
    entry = table / "_delta_log" / f"{version:020d}.json"
    if not entry.exists():
        return None
    return [loads(line) for line in entry.read_text(encoding="utf-8").splitlines() if line]


def versions(table: Path) -> list[int]:
    """The versions of which the log still has the entries."""
    names = (path.stem for path in (table / "_delta_log").glob("*.json"))
    return sorted(int(name) for name in names if name.isdigit())


@dataclass(frozen=True)
class Source:
    """A table whose rows are a stream: a snapshot first, then what each version added."""

    path: Path
    name: str

    def between(
        self, beginning: Position | None, before: Position | None, after: Position
    ) -> Iterator[Action]:
        """The files that a batch took, as the `add` actions that brought them."""
        assert beginning is not None
        first = int(beginning["reservoirVersion"])
        snapshot = first if beginning["isStartingVersion"] else first - 1
        start = (snapshot, True, -1) if before is None else _at(before)
        end = _at(after)
        if start[1]:
            yield from self._some(self._snapshot(snapshot), start, end, (snapshot, True))
        for version in range(snapshot + 1, end[0] + (end[2] >= 0)):
            if version >= start[0]:
                yield from self._some(self._added(version), start, end, (version, False))

    @staticmethod
    def _some(
        files: list[Action], start: "_At", end: "_At", own: tuple[int, bool]
    ) -> Iterator[Action]:
        """Those of a version that lie between two positions."""
        first = start[2] + 1 if start[:2] == own else 0
        last = end[2] + 1 if end[:2] == own else len(files)
        yield from files[max(first, 0) : max(last, 0)]

    def _snapshot(self, version: int) -> list[Action]:
        if version < 0:
            return []
        try:
            table = DeltaTable(self.path, version=version)
            found = pa.table(table.get_add_actions(flatten=True)).to_pylist()
        except (DeltaError, OSError) as error:
            raise CannotTellError(
                f"version {version} of {self.path}, of stream {self.name}, is gone: {error}"
            ) from None
        ordered = sorted(found, key=lambda one: (one["modification_time"], one["path"]))
        return [{"path": one["path"], "partitionValues": _partition(one)} for one in ordered]

    def _added(self, version: int) -> list[Action]:
        known = actions(self.path, version)
        if known is None:
            raise CannotTellError(
                f"the log of {self.path}, of stream {self.name}, has no version {version} any more"
            )
        return [one["add"] for one in known if "add" in one and one["add"].get("dataChange", True)]

    @cached_property
    def _schema(self) -> pa.Schema:
        table = DeltaTable(self.path)
        if strange := set(table.protocol().reader_features or ()) & _UNREAD:
            raise CannotTellError(
                f"{self.path}, of stream {self.name}, uses {min(strange)}, which verify cannot read"
            )
        return pa.schema(table.schema().to_arrow())

    def place(self, add: Action) -> Path:
        """Where a file lies."""
        return self.path / unquote(add["path"])

    def read(self, add: Action, wanted: Sequence[Column]) -> pa.Table | None:
        """Columns of a file, its partition's values among them; nothing if it cannot be read."""
        path = self.place(add)
        try:
            file = pq.ParquetFile(path, page_checksum_verification=True)
            there = [name for name in file.schema_arrow.names if _named(name, wanted)]
            rows = file.read(there)
        except FileNotFoundError:
            raise CannotTellError(
                f"{path}, which batches of stream {self.name} took, is gone"
            ) from None
        except (pa.ArrowException, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            return None
        for name, value in (add.get("partitionValues") or {}).items():
            text = pa.scalar(None if value in (None, "") else str(value), pa.string())
            column = pa.repeat(text, rows.num_rows).cast(self._schema.field(name).type)
            rows = rows.append_column(name, column)
        made = {name.lower(): rows.column(name) for name in rows.column_names}
        nothing = pa.chunked_array([pa.nulls(rows.num_rows)])
        return pa.table({c.name: made.get(c.name.lower(), nothing) for c in wanted})


def _named(name: str, wanted: Sequence[Column]) -> bool:
    return any(name.lower() == column.name.lower() for column in wanted)


_UNREAD = {"deletionVectors", "columnMapping"}

_At = tuple[int, bool, int]
"""A version, whether it is the snapshot, and the last of its files that was taken."""


def _at(position: Position) -> _At:
    index = int(position["index"])
    return int(position["reservoirVersion"]), bool(position["isStartingVersion"]), max(index, -1)


def _partition(action: Action) -> dict[str, Any]:
    prefix = "partition."
    return {k.removeprefix(prefix): v for k, v in action.items() if k.startswith(prefix)}
