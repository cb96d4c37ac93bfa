"""The results that a job has written: what is in their table, less what others have put there.

The log of the table says which commit brought a file.  Commits of batches carry the application
transaction of the storage; those of another storage carry that one's, and are none of ours.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from jobs.verify.tables import Action, actions, versions
from jobs.verify.verdict import CannotTellError

OURS = "midstream"
"""With what the application transactions of any storage begin."""


@dataclass(frozen=True)
class Results:
    """A query's results, and the versions of their table in which somebody else changed rows."""

    rows: pa.Table | None
    others: tuple[int, ...] = ()


@dataclass(frozen=True)
class _Brought:
    """Which versions brought the rows of a file, and who; a merge has those of what it merged."""

    low: int
    high: int
    who: frozenset[str]

    @classmethod
    def together(cls, parts: Iterable["_Brought"]) -> "_Brought":
        """What was merged."""
        known = list(parts)
        who = frozenset[str]().union(*(part.who for part in known))
        return cls(min(p.low for p in known), max(p.high for p in known), who)


_BEFORE = _Brought(-1, -1, frozenset("?"))
"""A file that is older than the log: nobody knows whose it is."""


@dataclass(frozen=True)
class _Log:
    """What the versions of a table say, as far as the entries are still there."""

    path: Path
    versions: tuple[int, ...]
    writers: Mapping[int, tuple[str, int]]
    """The storage's transaction that a version carries, and its batch."""
    changed: tuple[int, ...]
    """Versions of nobody's batch that changed rows."""
    brought: Mapping[str, _Brought]

    @cached_property
    def names(self) -> frozenset[str]:
        """All storages that have ever written here."""
        found = {who for who, _ in self.writers.values()}
        for path in (self.path / "_delta_log").glob("*.checkpoint*.parquet"):
            rows = pq.read_table(path, columns=["txn"]).column("txn").to_pylist()
            found |= {str(txn["appId"]) for txn in rows if txn and txn["appId"]}
        return frozenset(who for who in found if who.startswith(OURS))

    def first(self, writer: str, batch: int) -> int | None:
        """The version in which a batch, or the first after it, wrote; none if none has."""
        found = (v for v, (who, own) in self.writers.items() if who == writer and own >= batch)
        return min(found, default=None)


def results(table: Path, writer: str, last: int, first: int = 0) -> Results:
    """The rows that batches from the first to the last one have written."""
    if not DeltaTable.is_deltatable(str(table)):
        return Results(None)
    try:
        return _results(_log(table), writer, last, first)
    except (DeltaError, OSError, pa.ArrowException) as error:
        said, *_ = str(error).splitlines()
        raise CannotTellError(f"the results in {table} cannot be read: {said}") from None


def _results(log: _Log, writer: str, last: int, first: int) -> Results:
    after = log.first(writer, last + 1)
    table = DeltaTable(log.path, version=None if after is None else after - 1)
    begin = log.first(writer, first) if first else 0
    begin = table.version() + 1 if begin is None else begin
    others = tuple(version for version in log.changed if begin <= version <= table.version())
    if not first and log.names <= {writer}:
        return Results(table.to_pyarrow_table(), others)
    whole = table.to_pyarrow_dataset()
    kept = [f for f in whole.get_fragments() if _counts(log, writer, begin, f.path)]
    if not kept:
        return Results(whole.schema.empty_table(), others)
    found = ds.FileSystemDataset(kept, whole.schema, whole.format, whole.filesystem)
    return Results(found.to_table(), others)


def _counts(log: _Log, writer: str, begin: int, path: str) -> bool:
    """Whether a file's rows were written since a version, and not by another storage."""
    brought = log.brought.get(_name(path), _BEFORE)
    known = log.versions and log.versions[0] <= begin and begin > 0
    if brought.high < begin and (brought.low >= 0 or known):
        return False
    foreign = {who for who in brought.who if who and who != writer}
    if brought.low < begin or (foreign and (foreign != brought.who or "?" in foreign)):
        raise CannotTellError(
            f"the log of {log.path} does not say any more whose rows are whose: files were merged, "
            "or versions forgotten, and more than these batches have written there"
        )
    return not foreign


def _log(table: Path) -> _Log:
    found = versions(table)
    writers: dict[int, tuple[str, int]] = {}
    changed: list[int] = []
    brought: dict[str, _Brought] = {}
    for version in found:
        done = actions(table, version) or []
        made, gone = _paths(done, "add"), _paths(done, "remove")
        if own := _transaction(done):
            writers[version] = own
        elif made and gone and not _changes(done):
            merged = _Brought.together(brought.get(path, _BEFORE) for path in gone)
            brought |= dict.fromkeys(made, merged)
            continue
        elif _changes(done):
            changed.append(version)
        who = frozenset({writers.get(version, ("", 0))[0]})
        brought |= dict.fromkeys(made, _Brought(version, version, who))
    return _Log(table, tuple(found), writers, tuple(changed), brought)


def _paths(done: list[Action], what: str) -> list[str]:
    return [_name(one[what]["path"]) for one in done if what in one]


def _name(path: str) -> str:
    return Path(unquote(path)).name


def _transaction(done: list[Action]) -> tuple[str, int] | None:
    for one in done:
        if "txn" in one and str(one["txn"]["appId"]).startswith(OURS):
            return str(one["txn"]["appId"]), int(one["txn"]["version"])
    return None


def _changes(done: list[Action]) -> bool:
    files = [one.get("add") or one.get("remove") for one in done if "add" in one or "remove" in one]
    return any(file.get("dataChange", True) for file in files if file)


def join(parts: list[Results]) -> Results:
    """The results of a query whose sink was another one for a while."""
    rows = [part.rows for part in parts if part.rows is not None]
    others = tuple(version for part in parts for version in part.others)
    if not rows:
        return Results(None, others)
    if any(part.schema != rows[0].schema for part in rows):
        raise CannotTellError("the results are in tables of different columns")
    return Results(pa.concat_tables(rows), others)
