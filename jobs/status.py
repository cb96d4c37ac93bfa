"""What a job has done and how it is, read from its tables by anyone, without Spark.

Light to import: a person asks often, and wants no more than a third of a second to pass.  So only
what is needed here is read of the job file, and the SQL parser, as slow as all the rest, is not.
"""

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from json import loads
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, model_validator

from jobs.documents import Location, check, read
from jobs.errors import RefusedError
from jobs.sources.checkpoint import CheckpointOffsets, whole_versions
from jobs.tables.damage import note, whole
from jobs.tables.lease import holder
from jobs.tables.names import late_table, rejected_table
from jobs.tables.origin import origin
from jobs.tables.paths import local

if TYPE_CHECKING:
    from deltalake import DeltaTable

RECENT = 10
"""Over how many batches rates are taken."""

SECOND = 1_000_000


class _Known(BaseModel):
    """A part of a job file, whatever else is in it."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class KnownStream(_Known):
    """Where a stream comes from."""

    source: str
    path: Location | None = None


class KnownJob(_Known):
    """Where a job keeps its tables, and where its streams come from."""

    job: str
    storage: Location
    streams: Mapping[str, KnownStream]

    @model_validator(mode="before")
    @classmethod
    def _default_storage(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and "job" in data:
            return {"storage": f".midstream/{data['job']}"} | dict(data)
        return data


def status(file: Path, now: int) -> dict[str, Any]:
    """The job of a file as of its last finished batch; `now` in microseconds."""
    job = check(KnownJob, read(file))
    storage = local(job.storage)
    batches = recent(storage)
    if not batches:
        raise RefusedError(f"job {job.job} has not finished a batch yet; it keeps to {storage}")
    last = batches[0]
    held = holder(storage)
    plans = {query: notation(plan) for query, plan in last["plans"].items()}
    watermark = last["watermark"]
    return {
        "job": job.job,
        "running": None if held is None else {"pid": held.pid, "since": held.since},
        "plan": "; ".join(plans.values()),
        "plans": plans,
        "migration": _migration(last, now),
        "batch": last["batch"],
        "age_seconds": _seconds(now - last["finished"]),
        "ms": round(sum(last["ms"].values()), 1),
        "watermark": moment(watermark),
        "lag_seconds": None if watermark is None else _seconds(now - watermark),
        "rates": {name: _rate(batches, "streams", name) for name in last["streams"]},
        "results_per_second": {name: _rate(batches, "results", name) for name in last["results"]},
        "backlog": _backlog(job, storage, last["batch"]),
        "states": _states(storage, last["operators"]),
        "late": {name: _rows(storage / late_table(name)) for name in last["streams"]},
        "rejected": {name: _rows(storage / rejected_table(name)) for name in last["streams"]},
    }


def _migration(last: Mapping[str, Any], now: int) -> dict[str, Any] | None:
    """The one under way, as of the last batch; `part` is how much of its step is done."""
    found = last.get("migration")
    if not found:
        return None
    kept = {name: value for name, value in found.items() if name not in ("began", "step")}
    return kept | {"step": found["step"] + 1, "for_seconds": _seconds(now - found["began"])}


def moment(micros: int | None) -> str | None:
    """A time for programs and people alike."""
    if micros is None:
        return None
    with suppress(OverflowError):
        epoch = datetime(1970, 1, 1, tzinfo=UTC)
        return (epoch + timedelta(microseconds=micros)).isoformat(timespec="milliseconds")
    return str(micros)


def notation(plan: Mapping[str, Any]) -> str:
    """A plan's JSON as people write plans, without a query to check it against."""
    below = [notation(part) for part in plan.get("inputs", ())]
    match plan["op"]:
        case "source":
            return str(plan["alias"])
        case "combine":
            return f"[{below[0]}]"
        case "join":
            place = f"@{plan['place']}" if plan.get("place") else ""
            return f"({' '.join(below)}){place}"
    return below[0]


def recent(storage: Path) -> list[dict[str, Any]]:
    """The progress of the last batches, the newest first."""
    from deltalake import DeltaTable

    path = storage / "control" / "progress"
    with whole(path):
        if not DeltaTable.is_deltatable(str(path)):
            return []
        return _newest(DeltaTable(path))


def _newest(table: "DeltaTable") -> list[dict[str, Any]]:
    from deltalake import QueryBuilder

    from jobs.tables.paths import files_of

    newest = [Path(file).as_uri() for file in sorted(files_of(table))[-RECENT:]]
    query = QueryBuilder()
    for number, file in enumerate(newest):
        query.execute(f"CREATE EXTERNAL TABLE f{number} STORED AS PARQUET LOCATION '{file}'")
    files = " UNION ALL ".join(f"SELECT * FROM f{number}" for number in range(len(newest)))
    rows = query.execute(f"SELECT content FROM ({files}) ORDER BY batch DESC LIMIT {RECENT}")
    return [loads(content) for content in rows.read_all().column("content").to_pylist()]


def _rate(batches: list[dict[str, Any]], kind: str, name: str) -> float | None:
    """Rows a second from the end of the oldest of these batches to the end of the newest."""
    took = (batches[0]["finished"] - batches[-1]["finished"]) / SECOND
    found = [batch[kind].get(name, 0) for batch in batches[:-1]]
    counted = sum(flow["rows"] if isinstance(flow, Mapping) else flow for flow in found)
    return round(counted / took, 1) if took > 0 else None


def _seconds(micros: int) -> float:
    return round(micros / SECOND, 1)


def _states(storage: Path, operators: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    path = storage / "control" / "states.json"
    contents = note(path) if path.exists() else {}
    return [
        {
            "state": key,
            "content": contents.get(key),
            "rows": work["state_rows"],
            "bytes": work["state_bytes"],
            "ms": work["ms"],
        }
        for key, work in operators.items()
    ]


def _rows(path: Path) -> int:
    """How many rows a table has; none if there is no table."""
    from deltalake import DeltaTable

    with whole(path):
        if not DeltaTable.is_deltatable(str(path)):
            return 0
        files = DeltaTable(path).get_add_actions(flatten=True)
        return sum(files.column("num_records").to_pylist())


# --- what waits ----------------------------------------------------------------------------------


def _backlog(job: KnownJob, storage: Path, batch: int) -> dict[str, dict[str, int]]:
    """For each stream where that can be said, what it has and the job has not taken yet."""
    known = origin(storage)
    order = known.streams if known else ()
    found = {}
    for number, name in enumerate(order):
        if name in job.streams:
            taken = CheckpointOffsets(storage / "checkpoint", number)
            waiting = _waiting(job.streams[name], taken, batch)
            if waiting is not None:
                found[name] = waiting
    return found


def _waiting(spec: KnownStream, taken: CheckpointOffsets, batch: int) -> dict[str, int] | None:
    if spec.path is None:
        return None
    if spec.source == "files" and Path(spec.path).is_dir():
        known = {path.name for path in taken.files(batch)}
        there = [p.name for p in Path(spec.path).iterdir() if p.name[0] not in "._" and p.is_file()]
        return {"files": sum(name not in known for name in there)}
    if spec.source == "delta":
        return _versions(Path(spec.path), taken, batch)
    return None


def _versions(path: Path, taken: CheckpointOffsets, batch: int) -> dict[str, int] | None:
    from deltalake import DeltaTable

    position = taken.position(batch)
    with whole(path):
        if not DeltaTable.is_deltatable(str(path)):
            return None
        done = -1 if position is None else whole_versions(position)
        return {"versions": DeltaTable(path).version() - done}
