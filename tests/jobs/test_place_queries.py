"""CQ1 to CQ6 of Ji's section 8.1 at several rates: what is placed where, and why it changes."""

from pathlib import Path

import pytest

from jobs import operators
from jobs.documents import Document, read
from optimizer.cost.feasibility import Objective
from optimizer.placement import Options, place

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "placement"


def document(name: str, rate: float | None = None) -> Document:
    found = read(EXAMPLES / f"{name}.yaml")
    if rate is not None:
        found.data["streams"]["plugs"]["rate"] = rate
    return found


def placed(name: str, rate: float, strategy: str = "federated", *, feasibility: bool = True):
    plan = operators.of(document(name, rate))
    return place(strategy, plan, Options(Objective(feasibility=feasibility)))


def on_spark(found) -> set[str]:
    mask = found.found.mask
    return {one.name for at, one in enumerate(found.plan.operators) if not mask >> at & 1}


SELECTS = {
    "cq1": {"s", "r"}, "cq2": {"s", "r"}, "cq3": {"s5", "s1"}, "cq4": {"s5", "s1"}, "cq5": {"s"},
    "cq6": {"s1", "s3", "s5"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "operators", "plans"),
    [("cq1", 5, 8), ("cq2", 5, 8), ("cq3", 6, 11), ("cq4", 6, 11), ("cq5", 3, 4), ("cq6", 9, 32)],
)
def test_shapes(name: str, operators: int, plans: int):
    """As many plans are left by the pruning as Table 3's times bear out."""
    found = placed(name, 2000)
    assert (len(found.plan), found.found.examined) == (operators, plans)


@pytest.mark.parametrize(("name", "plans"), [("cq4-5-way", 312), ("cq4-8-way", 8411)])
def test_table_2(name: str, plans: int):
    assert placed(name, 2000).found.examined == plans


@pytest.mark.parametrize("name", SELECTS)
def test_selects_alone_are_on_spark_at_low_rates(name: str):
    """They halve what is transferred; the rest is one statement."""
    for rate in (1000, 2000, 8000):
        assert on_spark(placed(name, rate)) == SELECTS[name], rate


@pytest.mark.parametrize(
    ("name", "rate", "spark"),
    [
        ("cq1", 18_000, {"s", "r"}),
        ("cq3", 20_000, {"s5", "s1"}),
        ("cq3", 22_000, {"s5", "s1", "both", "compare"}),  # what was one part is not feasible
        ("cq4", 20_000, {"s5", "s1"}),
        ("cq4", 22_000, {"s5", "s1", "both", "compare"}),
        ("cq5", 10_000, {"s", "sum", "largest"}),  # transfers cost more than Spark's sum
        ("cq6", 20_000, {"s1", "s3", "s5", "three", "compare"}),
        ("cq6", 30_000, {"s1", "s3", "s5", "two", "three", "compare"}),  # only aggregates inside
    ],
)
def test_switches_at_higher_rates(name: str, rate: float, spark: set[str]):
    assert on_spark(placed(name, rate)) == spark


@pytest.mark.parametrize(("name", "rate"), [("cq3", 25_000), ("cq4", 25_000), ("cq6", 25_000)])
def test_without_feasibility_the_choice_does_not_keep_up(name: str, rate: float):
    """Fig. 6: the check changes CQ3, CQ4 and CQ6, and nothing else."""
    blind = placed(name, rate, feasibility=False)
    assert on_spark(blind) == SELECTS[name] | ({"compare"} & on_spark(blind))
    assert not blind.feasible
    assert placed(name, rate).feasible


@pytest.mark.parametrize("name", ["cq1", "cq5"])
def test_elsewhere_feasibility_changes_nothing(name: str):
    for rate in (1000, 10_000, 15_000):
        assert placed(name, rate, feasibility=False).found.mask == placed(name, rate).found.mask


@pytest.mark.parametrize("name", SELECTS)
def test_no_placement_is_better(name: str):
    for rate in (2000, 22_000):
        best, every = placed(name, rate), placed(name, rate, "exhaustive")
        assert best.feasible == every.feasible
        assert best.cost.total == pytest.approx(every.cost.total)


def test_the_chosen_plan_beats_both_pure_ones():
    """Of CQ1: on Spark alone each maximum is compared with its readings one by one."""
    chosen, spark, database = (placed("cq1", 2000, s) for s in ("federated", "spark", "db"))
    assert not spark.feasible
    assert chosen.cost.total < database.cost.total < spark.cost.total


@pytest.mark.parametrize(
    ("name", "old", "new", "spark"),
    [
        ("cq1", ", cost: 1e-6", ", cost: 1e-4", set()),  # selects on Spark: everything is inside
        ("cq1", "in: 2e-5", "in: 2e-1", {"s", "max", "r", "above", "count"}),
        ("cq4", "cost: 8e-5", "cost: 8e-9", {"s5", "a5", "s1", "a1"}),  # Spark's averages
        ("cq5", "cost: 6.1e-5", "cost: 1e-6", {"s", "sum", "largest"}),
        ("cq3", "statement: 5e-3", "statement: 2", {"s5", "a5", "s1", "a1", "both", "compare"}),
    ],
)
def test_a_wrong_cost_changes_the_choice(name: str, old: str, new: str, spark: set[str], tmp_path):
    text = (EXAMPLES / f"{name}.yaml").read_text()
    path = tmp_path / "wrong.yaml"
    path.write_text(text.replace(old, new))
    found = place("federated", operators.of(read(path)), Options())
    assert on_spark(found) == spark != on_spark(placed(name, 2000))
