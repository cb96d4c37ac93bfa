"""Plans that proved the best under a workload, to be found again when it comes back (Zhu 26.1.4).

A workload's signature is its figures, each rounded to a power of `STEP`.  What is found is priced
under the workload of the day, and taken without a search if it is still as good as it was.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from json import dumps, loads
from math import log
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from jobs.tables.damage import whole
from jobs.tables.lease import private
from jobs.tables.rows import read
from optimizer.workload import Workload

STEP = 1.5
"""Figures that differ by less are mostly alike."""

MARGIN = 0.05
"""How much of its advantage a plan may have lost and still be taken."""

MOST = 100
"""Entries of a job; the one that was not used for longest goes first."""

_SCHEMA = pa.schema([("query", pa.string()), ("signature", pa.string()), ("content", pa.string())])


@dataclass(frozen=True)
class Entry:
    """A plan, and how good it was."""

    query: str
    fingerprint: str
    """What the query computes: a plan is of no use to another one of the same name."""
    signature: str
    plan: Mapping[str, Any]
    advantage: float
    """What the query as written costs, by what this plan does."""
    used: int
    """When it was last found or confirmed, in microseconds."""


def signature(workload: Workload) -> str:
    """Equal for workloads that are about the same."""
    figures = {
        "batch": workload.batch,
        "method": workload.method,
        "rates": {name: _rounded(load.rate) for name, load in workload.streams.items()},
        "joins": {"-".join(sorted(edge)): _rounded(s) for edge, s in workload.joins.items()},
        "selects": {text: _rounded(s) for text, s in workload.selects.items()},
        "combine": {name: _rounded(rate) for name, rate in workload.combine.items()},
        "groups": _rounded(workload.groups),
    }
    if workload.keys:
        figures["keys"] = {k: _rounded(s.matching(s.inputs)) for k, s in workload.keys.items()}
    return sha256(dumps(figures, sort_keys=True).encode()).hexdigest()[:16]


def _rounded(figure: float) -> int | None:
    return round(log(figure, STEP)) if figure > 0 else None


def still_good(entry: Entry, advantage: float) -> bool:
    """Whether a plan is about as good as when it was noted."""
    return advantage >= (1 - MARGIN) * entry.advantage


@dataclass(frozen=True)
class PlanLibrary:
    """A job's plans, a small Delta table under its storage, written whole."""

    root: Path
    keep: int
    """For how many microseconds an entry is kept that nobody uses."""

    @property
    def path(self) -> Path:
        """The table, for whoever reads Delta."""
        return self.root / "library"

    def entries(self) -> list[Entry]:
        """All of them, the last used first."""
        if not DeltaTable.is_deltatable(str(self.path)):
            return []
        with whole(self.path):
            known = QueryBuilder().register("library", DeltaTable(self.path))
            rows = pa.table(known.execute("SELECT content FROM library").read_all())
            contents = map(loads, rows.column("content").to_pylist())
            found = [read(Entry, one, "reoptimize/library", later=True) for one in contents]
        return sorted(found, key=lambda entry: (-entry.used, entry.query, entry.signature))

    def find(self, query: str, fingerprint: str, signature: str) -> Entry | None:
        """The plan of a query for a workload."""
        wanted = query, fingerprint, signature
        found = (e for e in self.entries() if (e.query, e.fingerprint, e.signature) == wanted)
        return next(found, None)

    def put(self, entry: Entry) -> None:
        """Note a plan, in place of the one for the same workload."""
        others = [e for e in self.entries() if _place(e) != _place(entry)]
        kept = [e for e in (entry, *others) if entry.used - e.used <= self.keep]
        self._write(kept[:MOST])

    def forget(self, entry: Entry) -> None:
        """Drop a plan that did not work out."""
        self._write([e for e in self.entries() if _place(e) != _place(entry)])

    def _write(self, entries: list[Entry]) -> None:
        rows = [
            {"query": e.query, "signature": e.signature, "content": dumps(asdict(e))}
            for e in entries
        ]
        private(self.path.parent)
        write_deltalake(self.path, pa.Table.from_pylist(rows, _SCHEMA), mode="overwrite")


def _place(entry: Entry) -> tuple[str, str]:
    return entry.query, entry.signature
