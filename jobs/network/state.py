"""What is deployed, as Delta tables: the next call goes on from there.

`deployments` holds the queries and their operators and is what is read back; `advertisements` says
which streams may be read where, for whoever looks.
"""

from collections.abc import Iterable, Iterator
from json import dumps, loads
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from jobs.errors import RefusedError
from jobs.network.session import Session
from jobs.network.told import where
from jobs.tables.damage import whole
from optimizer.network.deployment import Deployed, Key, Kind, Node, Read
from optimizer.network.load import Demand, volume
from optimizer.network.streams import Content, Part, Predicate

_DEPLOYMENTS = pa.schema([
    ("position", pa.int64()), ("kind", pa.string()), ("query", pa.string()),
    ("number", pa.int64()), ("site", pa.string()), ("content", pa.string()),
])  # fmt: skip
_ADVERTISEMENTS = pa.schema([
    ("streams", pa.list_(pa.string())), ("site", pa.string()), ("query", pa.string()),
    ("kind", pa.string()), ("predicates", pa.list_(pa.string())), ("bytes_per_s", pa.float64()),
])  # fmt: skip

QUERY = "query"
"""The kind of the rows that hold what a query wants."""


def read(directory: Path) -> tuple[Deployed, dict[str, float]]:
    """What is deployed, and each query's exact least when it was planned."""
    path = directory / "deployments"
    if not (path / "_delta_log").exists():
        return Deployed(), {}
    with whole(path):
        rows = pa.table(DeltaTable(path).to_pyarrow_table()).to_pylist()
    try:
        return _read(sorted(rows, key=lambda row: int(row["position"])))
    except (KeyError, TypeError, ValueError, AttributeError):
        problem = "does not hold deployments as this version writes them: name another directory"
        raise RefusedError(problem, str(path)) from None


def _read(rows: Iterable[dict[str, Any]]) -> tuple[Deployed, dict[str, float]]:
    nodes, demands = dict[Key, Node](), dict[str, Demand]()
    sinks, optima = dict[str, Key](), dict[str, float]()
    for row in rows:
        content = loads(row["content"])
        if row["kind"] == QUERY:
            demands[row["query"]] = _demand(content)
            sinks[row["query"]] = Key(Kind.SINK, row["query"], row["number"])
            optima[row["query"]] = content["optimum"]
        else:
            key = Key(Kind(row["kind"]), row["query"], row["number"])
            reads = (Read(_key(r["source"]), _content(r["content"])) for r in content["reads"])
            nodes[key] = Node(key, _content(content["content"]), row["site"], tuple(reads))
    return Deployed(nodes, demands, sinks), optima


def write(directory: Path, session: Session) -> None:
    """Keep what runs now, in place of what was kept."""
    directory.mkdir(parents=True, exist_ok=True)
    _write(directory / "advertisements", list(_advertised(session)), _ADVERTISEMENTS)
    rows = [{"position": n, **row} for n, row in enumerate(_rows(session))]
    _write(directory / "deployments", rows, _DEPLOYMENTS)


def _write(path: Path, rows: list[dict[str, Any]], schema: pa.Schema) -> None:
    write_deltalake(path, pa.Table.from_pylist(rows, schema), mode="overwrite")


def _rows(session: Session) -> Iterator[dict[str, Any]]:
    for name, demand in session.deployed.demands.items():
        content = _written_demand(demand) | {"optimum": session.optima.get(name, 0.0)}
        number = session.deployed.sinks[name].number
        yield {"kind": QUERY, "query": name, "number": number, "site": demand.sink,
               "content": dumps(content)}  # fmt: skip
    for node in session.deployed.derived():
        reads = [
            {"source": [str(r.source.kind), r.source.owner, r.source.number],
             "content": _written(r.content)}
            for r in node.reads
        ]  # fmt: skip
        content = {"content": _written(node.content), "reads": reads}
        yield {"kind": str(node.key.kind), "query": node.owner, "number": node.key.number,
               "site": node.site, "content": dumps(content)}  # fmt: skip


def _advertised(session: Session) -> Iterator[dict[str, Any]]:
    for node in session.deployed.nodes.values():
        base = node.key.kind is Kind.BASE
        yield {
            "streams": sorted(node.content.streams), "site": node.site,
            "query": None if base else node.owner, "kind": str(node.key.kind),
            "predicates": [f"{w['stream']}: {w['predicate']}" for w in where(node.content)],
            "bytes_per_s": volume(session.load, node.content),
        }  # fmt: skip


def _written(content: Content) -> list[dict[str, Any]]:
    return [
        {
            "stream": p.stream,
            "width": p.width,
            "where": _predicates(p.where),
            "window": p.window,
            "columns": None if p.columns is None else sorted(p.columns),
        }
        for p in content.parts
    ]


def _predicates(given: Iterable[Predicate]) -> list[list[Any]]:
    return [[one.text, one.selectivity] for one in sorted(given, key=lambda p: p.name)]


def _content(written: list[dict[str, Any]]) -> Content:
    return Content(tuple(
        Part(p["stream"], p["width"], frozenset(Predicate.of(*one) for one in p["where"]),
             None if p["window"] is None else tuple(p["window"]), _columns(p["columns"]))
        for p in written
    ))  # fmt: skip


def _columns(written: list[list[Any]] | None) -> frozenset[tuple[str, float]] | None:
    return None if written is None else frozenset((name, size) for name, size in written)


def _written_demand(demand: Demand) -> dict[str, Any]:
    return {
        "name": demand.name, "streams": demand.streams, "sink": demand.sink,
        "where": {name: _predicates(given) for name, given in demand.where.items()},
        "widths": dict(demand.widths), "windows": dict(demand.windows),
        "columns": {name: sorted(found) for name, found in demand.columns.items()},
    }  # fmt: skip


def _demand(written: dict[str, Any]) -> Demand:
    where = {
        name: tuple(Predicate.of(*one) for one in given) for name, given in written["where"].items()
    }
    windows = {name: (w[0], w[1]) for name, w in written["windows"].items()}
    columns = {name: _columns(found) or frozenset() for name, found in written["columns"].items()}
    streams = tuple(written["streams"])
    return Demand(
        written["name"], streams, written["sink"], where, written["widths"], windows, columns
    )


def _key(written: list[Any]) -> Key:
    return Key(Kind(written[0]), written[1], written[2])
