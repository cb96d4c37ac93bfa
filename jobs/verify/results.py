"""The results that a job has written: what is in their table, less what others have put there.

The log of the table says which commit brought a file.  Commits of batches carry the application
transaction of the storage; those of another storage carry that one's, and are none of ours.
"""

from collections.abc import Mapping
from dataclasses import dataclass
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
class _Log:
    """What the versions of a table say, as far as the entries are still there."""

    versions: tuple[int, ...]
    writers: Mapping[int, tuple[str, int]]
    """The storage's transaction that a version carries, and its batch."""
    changed: Mapping[int, str]
    """Versions of nobody's batch that changed rows, and what they call it."""
    brought: Mapping[str, int]
    """Which version brought a file first."""


def results(table: Path, writer: str, last: int) -> Results:
    """The rows that batches up to the last one have written."""
    if not DeltaTable.is_deltatable(str(table)):
        return Results(None)
    try:
        return _results(table, writer, last)
    except (DeltaError, OSError, pa.ArrowException) as error:
        first, *_ = str(error).splitlines()
        raise CannotTellError(f"the results in {table} cannot be read: {first}") from None


def _results(table: Path, writer: str, last: int) -> Results:
    log = _log(table)
    begun = [v for v, (who, batch) in log.writers.items() if who == writer and batch > last]
    version = min(begun) - 1 if begun else DeltaTable(table).version()
    delta = DeltaTable(table, version=version)
    foreign = {who for who, _ in log.writers.values() if who != writer}
    whole = not log.versions or log.versions[0] == 0
    if not whole:
        foreign |= _writers_of_checkpoint(table) - {writer}
    others = tuple(v for v in log.changed if v <= version)
    if not foreign:
        return Results(delta.to_pyarrow_table(), others)
    return Results(_own(delta, log, writer, table), others)


def _own(delta: DeltaTable, log: _Log, writer: str, table: Path) -> pa.Table:
    """The rows of the files that nobody else's batches have brought."""
    whole = delta.to_pyarrow_dataset()
    kept = []
    for fragment in whole.get_fragments():
        version = log.brought.get(Path(unquote(fragment.path)).name)
        if version is None:
            raise CannotTellError(
                f"another storage writes to {table}, too, and its log does not say any more "
                "whose rows are whose"
            )
        if log.writers.get(version, (writer, 0))[0] == writer:
            kept.append(fragment)
    if not kept:
        return whole.schema.empty_table()
    return ds.FileSystemDataset(kept, whole.schema, whole.format, whole.filesystem).to_table()


def _log(table: Path) -> _Log:
    found = versions(table)
    writers: dict[int, tuple[str, int]] = {}
    changed: dict[int, str] = {}
    brought: dict[str, int] = {}
    for version in found:
        done = actions(table, version) or []
        if own := _transaction(done):
            writers[version] = own
        elif _changes(done):
            changed[version] = _operation(done)
        elif mixed := _rewritten(done):
            brought |= _follow(mixed, brought, writers)
            continue
        for one in done:
            if "add" in one:
                brought[Path(unquote(one["add"]["path"])).name] = version
    return _Log(tuple(found), writers, changed, brought)


def _transaction(done: list[Action]) -> tuple[str, int] | None:
    for one in done:
        if "txn" in one and str(one["txn"]["appId"]).startswith(OURS):
            return str(one["txn"]["appId"]), int(one["txn"]["version"])
    return None


def _changes(done: list[Action]) -> bool:
    files = [one.get("add") or one.get("remove") for one in done if "add" in one or "remove" in one]
    return any(file.get("dataChange", True) for file in files if file)


def _operation(done: list[Action]) -> str:
    return next(
        (str(one["commitInfo"].get("operation", "")) for one in done if "commitInfo" in one), ""
    )


def _rewritten(done: list[Action]) -> tuple[list[str], list[str]] | None:
    """The files that a commit has put into others, and those; none if it did not."""
    gone = [one["remove"]["path"] for one in done if "remove" in one]
    made = [one["add"]["path"] for one in done if "add" in one]
    return (gone, made) if made else None


def _follow(
    rewritten: tuple[list[str], list[str]],
    brought: Mapping[str, int],
    writers: Mapping[int, tuple[str, int]],
) -> dict[str, int]:
    """A merge's files are those of whoever brought what was merged, if that is but one."""
    gone, made = rewritten
    sources = [brought.get(Path(unquote(path)).name) for path in gone]
    known = [version for version in sources if version is not None]
    who = {writers.get(version, ("", 0))[0] for version in known}
    if len(known) < len(gone) or len(who) != 1:
        return {}
    return {Path(unquote(path)).name: max(known) for path in made}


def _writers_of_checkpoint(table: Path) -> set[str]:
    """Who has ever written to a table, as its newest checkpoint says."""
    found: set[str] = set()
    for path in sorted((table / "_delta_log").glob("*.checkpoint*.parquet")):
        rows = pq.read_table(path, columns=["txn"]).column("txn").to_pylist()
        found |= {str(txn["appId"]) for txn in rows if txn and txn["appId"]}
    return {who for who in found if who.startswith(OURS)}


def join(parts: list[Results]) -> Results:
    """The results of a query whose sink was another one for a while."""
    rows = [part.rows for part in parts if part.rows is not None]
    others = tuple(version for part in parts for version in part.others)
    if not rows:
        return Results(None, others)
    if any(part.schema != rows[0].schema for part in rows):
        raise CannotTellError("the results are in tables of different columns")
    return Results(pa.concat_tables(rows), others)
