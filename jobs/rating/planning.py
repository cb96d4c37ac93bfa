"""What is asked of `midstream rate`, answered: searches, curves, simulation."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from jobs import show
from jobs.errors import InputError, RefusedError
from jobs.queueing import TooManyError
from jobs.rating.report import AHEAD, GIVEN, Planned, Report
from jobs.rating.simulated import Simulated, simulated
from jobs.rating.workload import RateTask
from jobs.words import unknown
from optimizer.cost.rate.judge import Judge, Model
from optimizer.cost.rate.local import Local
from optimizer.cost.rate.objective import Objective
from optimizer.cost.rate.sets import Sets
from optimizer.cost.rate.tree import Node, Servers, of
from optimizer.memo import Memo
from optimizer.plan import PlanError, Tree, build, leaves, parse
from optimizer.search import ALL, RATES, SEARCHES

CARDINALITY = "cardinality"


@dataclass(frozen=True)
class Asked:
    """The options of the command, but for the objective."""

    task: RateTask
    plans: Sequence[str]
    strategy: str | None
    servers: Servers
    model: Model
    runs: int = 0
    seed: int = 0

    @property
    def strategies(self) -> Sequence[str]:
        """All of them unless plans or one strategy are named."""
        if self.strategy is None:
            return () if self.plans else RATES
        return RATES if self.strategy == ALL else (self.strategy,)

    def check(self) -> None:
        """Refuse what fits neither the workload nor the model."""
        load, document = self.task.load, self.task.document
        if self.strategy not in (None, ALL, *RATES):
            raise InputError(unknown("strategy", self.strategy or "", [*RATES, ALL]), "--strategy")
        if self.strategy == CARDINALITY and not load.finite:
            endless = next(
                name for name, feed in load.streams.items() if feed.tuples == float("inf")
            )
            message = "missing; needed: how many tuples there are, cardinality counts them all"
            raise InputError(message, document.where(("streams", endless, "tuples")))
        if self.model is Model.PRINTED and load.bounds is not None and len(load.streams) > 1:
            raise InputError("the printed model knows no windows: say window: none", "--model")
        if self.model is Model.PRINTED and self.servers is Servers.ONE:
            raise InputError("the printed model has a server for each operator", "--servers")


def answer(asked: Asked, objective: Objective) -> Report:
    """For one objective; what is beyond any number is refused where it is shown."""
    with np.errstate(all="ignore"):
        return _answer(asked, objective)


def _answer(asked: Asked, objective: Objective) -> Report:
    judge = Judge(asked.task.load, objective, asked.servers, asked.model)
    given = [_given(text, asked, judge) for text in asked.plans]
    begun, left_out, examined = perf_counter(), {}, 0
    for strategy in asked.strategies:
        with show.progress(f"{strategy} over {len(asked.task.load.streams)} streams"):
            memo = Memo(asked.task.query, asked.task.workload, judge=judge)
            SEARCHES[strategy](memo)
        examined += memo.examined
        if memo.stopped and strategy == asked.strategy:
            raise RefusedError(memo.stopped, f"--strategy {strategy}")
        if memo.stopped or memo.rated is None:
            left_out[strategy] = memo.stopped
            continue
        estimate = memo.rated.value if strategy == "exact" else memo.rated.estimate
        given.append(Planned(strategy, memo.rated.plan, memo.rated.value, estimate))
    seconds, horizon = perf_counter() - begun, _horizon(judge, given)
    drawn = tuple(_drawn(asked, judge, given, horizon))
    return Report(judge, drawn, horizon, examined, seconds, left_out)


def _given(text: str, asked: Asked, judge: Judge) -> Planned:
    plan = named(text, asked)
    return Planned(GIVEN, plan, judge.value(plan), _estimate(judge, plan))


def named(text: str, asked: Asked) -> Node:
    """A plan in the short notation, its selects in their best order."""
    try:
        tree = parse(text)
        build(asked.task.query, tree)
        return of(_plain(tree), asked.task.load, asked.servers)
    except (PlanError, ValueError) as error:
        raise InputError(str(error), "--plan") from None


def _plain(tree: Tree) -> Tree:
    if any(leaf.combined for leaf in leaves(tree)):
        raise ValueError(f"{tree} combines tuples before they are joined: rates are of joins alone")
    if "@" in str(tree):
        raise ValueError(f"{tree} names a place: rates are of servers")
    return tree


def _estimate(judge: Judge, plan: Node) -> float | None:
    """The local estimate of 4.2.1, at the time asked for or at which the results are there."""
    horizon = judge.objective.by or judge.value(plan)
    return Local(Sets(judge.load, judge.servers), horizon).of(plan) if horizon else None


def _horizon(judge: Judge, plans: Sequence[Planned]) -> float:
    """Up to when curves are drawn."""
    if judge.objective.by is not None:
        return judge.objective.by
    times = [one.value for one in plans if one.value]
    if times:
        return 1.1 * min(max(times), AHEAD * min(times))
    ends = [feed.end for feed in judge.load.streams.values() if 0 < feed.end < float("inf")]
    return 2 * max(ends, default=5.0)


def _drawn(
    asked: Asked, judge: Judge, plans: Sequence[Planned], horizon: float
) -> Iterator[Planned]:
    """With curves and, where it is asked for, the simulation; each plan once."""
    curves = {one.plan: judge.curve(one.plan, horizon) for one in plans}
    runs = {plan: _simulated(asked, judge, plan) for plan in curves} if asked.runs else {}
    for one in plans:
        yield Planned(
            one.strategy, one.plan, one.value, one.estimate, curves[one.plan], runs.get(one.plan)
        )


def _simulated(asked: Asked, judge: Judge, plan: Node) -> Simulated:
    with show.progress(f"{asked.runs} runs of {plan}") as told:
        try:
            return simulated(judge, plan, asked.runs, asked.seed, told)
        except TooManyError as error:
            raise RefusedError(
                f"{error}; ask for less time or fewer results", "--simulate"
            ) from None
