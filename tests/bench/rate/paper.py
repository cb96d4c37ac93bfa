"""Figures 1, 7 to 10, 12 to 15 and Table 6, with what the paper says beside."""

from statistics import fmean
from typing import Any

import numpy as np

from jobs.queueing import Made
from jobs.rating.simulated import simulated
from optimizer.cost.rate.judge import Judge, Model, crossings
from optimizer.cost.rate.load import Feed, Filter
from optimizer.cost.rate.objective import Objective
from optimizer.cost.rate.tree import Input, Servers
from optimizer.search.cardinality import plan_work
from tests.optimizer.cost.rates import five, load, plan, three

BOTH = ("((A B) C)", "((A C) B)")
SETTLED = 0.00376
HANDLING = (0.001, 0.0017, 0.002, 0.0026, 0.003, 0.0035, SETTLED, 0.004, 0.005, 0.006, 0.028)
COMPLEX = {
    "Left Deep": "((((A B) C) D) E)",
    "Fast Leaves": "((A C) (B (D E)))",
    "Evenly Spread": "((A C) ((B D) E))",
    "Fast Leaves, read otherwise": "(((A B) C) (D E))",
}
PUBLISHED = {
    "Left Deep": (1e4, 1.3e3),
    "Fast Leaves": (2e3, 9.7e2),
    "Evenly Spread": (5e3, 8.8e2),
}
"""Table 6: the traditional model's estimate, and the rate-based one."""

TOTAL = 5e7
"""All results of the five streams."""

Report = dict[str, Any]


# --- figure 1 ------------------------------------------------------------------------------------


def figure_1() -> Report:
    """Two selects of 0.1 at 500 tuples a second, one of them of 20 ms."""
    slow, free = Filter("slow", 0.1, 0.02), Filter("free", 0.1)
    return {"orders": [_order(selects) for selects in ((slow, free), (free, slow))]}


def _order(selects: tuple[Filter, ...]) -> Report:
    given, seconds = load({"I": Feed(500, selects=selects)}, {}), 100.0
    judge = Judge(given, Objective(by=seconds))
    node = Input("I", selects)
    runs = simulated(judge, node, 20, 1)
    first = judge.value(Input("I", selects[:1])) or 0.0
    handled = first / selects[0].selectivity
    return {
        "order": [select.name for select in selects],
        "results_per_second": (judge.value(node) or 0.0) / seconds,
        "simulated_per_second": (runs.value.mean or 0.0) / seconds,
        "backlog_per_second": (500 * seconds - handled) / seconds,
    }


# --- figures 7 to 10 -----------------------------------------------------------------------------


def crossing(runs: int) -> Report:
    """Where (A C) B overtakes (A B) C, by what handling costs."""
    return {
        "published": {"results": 2_000},
        "points": [_point(handling) for handling in HANDLING],
        "simulated": _simulated(runs),
    }


def _point(handling: float) -> Report:
    exact, printed = (_last(handling, model) for model in (Model.EXACT, Model.PRINTED))
    return {"handling_ms": handling * 1_000, "exact": exact, "printed": printed}


def _last(handling: float, model: Model) -> Report | None:
    """The last crossing; nothing if there is none, or A C B is ahead from the start."""
    given, seconds = three(handling), 300.0
    judge = Judge(given, Objective(by=seconds), Servers.EACH, model)
    found = crossings([judge.curve(plan(text, given), seconds) for text in BOTH], seconds)
    return {"results": found[-1].results, "seconds": found[-1].seconds} if found else None


def _simulated(runs: int) -> list[Report]:
    """Of pairs of runs: the last time at which (A B) C is ahead."""
    given, seconds = three(SETTLED), 25.0
    judge = Judge(given, Objective(by=seconds))
    both = [simulated(judge, plan(text, given), runs, 1).runs for text in BOTH]
    return [_overtaken(one, other, seconds) for one, other in zip(*both, strict=True)]


def _overtaken(one: Made, other: Made, seconds: float) -> Report:
    times = np.linspace(0, seconds, 2_501)
    ahead = np.flatnonzero(one.curve(times) > other.curve(times))
    at = times[ahead[-1]] if ahead.size else 0.0
    return {"results": one.by(at), "seconds": float(at)}


# --- figures 12 to 15 ----------------------------------------------------------------------------


def complex_plans() -> Report:
    """Five streams: the first 50 s, the last result, and the inputs handled."""
    return {
        "published": {name: dict(zip(("traditional", "rate_based"), both, strict=True))
                      for name, both in PUBLISHED.items()},
        "handling": [_five(handling) for handling in (0.0016, 0.000023)],
    }  # fmt: skip


def _five(handling: float) -> Report:
    return {
        "handling_ms": handling * 1_000,
        "plans": {name: _complex(text, handling) for name, text in COMPLEX.items()},
    }


def _complex(text: str, handling: float) -> Report:
    given = five(handling)
    last = Judge(given, Objective(first=TOTAL))
    return {
        "plan": text,
        "results_by_50_s": Judge(given, Objective(by=50.0)).value(plan(text, given)),
        "last_result_seconds": last.value(plan(text, given)),
        "cardinality_seconds": plan_work(plan(text, given), last),
    }


def mean(values: list[float]) -> float:
    """Of some, zero of none."""
    return fmean(values) if values else 0.0
