"""What each strategy finds for one query, as text: a changed plan is a difference to review."""

from pathlib import Path

from optimizer.search import COSTS, search
from optimizer.workload import Budget, Method
from tests.optimizer.search.cases import Case, case

HERE = Path(__file__).parent

GIVEN: Case = case(
    {"A": 10, "B": 20, "C": 30, "D": 5, "E": 40, "F": 15},
    {"A-B": 0.1, "B-C": 0.05, "C-D": 0.2, "D-E": 0.08, "B-F": 0.1, "A-F": 0.3},
    2.0,
    budget=Budget(cpu=0.0085, tuples=450),
    selects={"E": 0.5},
    grouped=True,
    combine={"F": 9.0},
    method=Method.HASH,
)
"""A cycle (A B F), a chain (C D E), a select, and a stream that can be combined."""


def render(strategy: str) -> str:
    """The golden text of a strategy."""
    found = search(strategy, GIVEN.memo())
    chosen, told = found.chosen, "complete" if found.complete else "not complete"
    lines = [
        f"{strategy}: {chosen.plan}",
        found.reason,
        f"binding: {found.binding}; {told}; examined: {found.examined}",
        "front: CPU, tuples, plan",
        *(f"{o.total.cpu:.6f} {o.total.tuples:8.1f} {o}" for o in found.front),
    ]
    return "\n".join(lines) + "\n"


def file(strategy: str) -> Path:
    """Where the golden text is kept."""
    return HERE / f"{strategy}.txt"


def regenerate() -> list[Path]:
    """Write all golden texts again; returns the files written."""
    for strategy in COSTS:
        file(strategy).write_text(render(strategy))
    return [file(strategy) for strategy in COSTS]
