"""Which of several plans a decision takes: room in the budget first, then definition 1."""

from types import SimpleNamespace

import pytest

from jobs.deciding.candidates import pick
from optimizer.cost.dual import Cost
from optimizer.cost.feasibility import Utilisation
from optimizer.workload import Budget
from tests.optimizer.search.cases import case

NEAR = 0.9


def option(bottleneck: float, total: float, rows: float = 1.0):
    return SimpleNamespace(total=Cost(total, rows, rows), needs=Utilisation(bottleneck, total))


def taken(options, **budget: float) -> int:
    memo = case({"a": 1.0, "b": 1.0}, {}, budget=Budget(**budget)).memo()
    return next(at for at, one in enumerate(options) if one is pick(options, memo, NEAR))


@pytest.mark.parametrize(
    ("options", "budget", "best"),
    [
        ([option(0.9, 2.0), option(1.1, 1.2)], {}, 0),  # it keeps up
        ([option(0.9, 2.0), option(1.0, 1.9)], {}, 1),  # both do: the smaller total
        ([option(1.5, 1.6), option(1.2, 9.0)], {}, 1),  # none does: the smaller bottleneck
        ([option(0.5, 0.7), option(0.7, 0.7)], {}, 0),  # alike: the first
        ([option(0.7, 0.7), option(0.5, 0.7)], {}, 0),
        ([option(0.5, 0.5, 95), option(0.6, 0.6, 80)], {"tuples": 100}, 1),  # it has room
        ([option(0.5, 0.5, 95), option(0.6, 0.6, 99)], {"tuples": 100}, 0),  # most room
        ([option(0.5, 1.4, 99), option(0.6, 1.5, 91)], {"cpu": 1.5, "tuples": 100}, 0),
        ([option(0.9, 1.9, 10), option(1.2, 1.3, 10)], {"cpu": 1.0}, 1),  # 1.9 against 1.3 of a CPU
        ([option(0.9, 1.9, 10), option(1.2, 1.3, 10)], {"cpu": 2.0}, 1),  # only one has room
        ([option(0.9, 1.5, 10), option(1.2, 1.3, 10)], {"cpu": 2.0}, 0),
    ],
)
def test_pick(options, budget, best):
    assert taken(options, **budget) == best
