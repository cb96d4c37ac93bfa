"""`exact`: every tree without cartesian products, every order of selects, by the exact model.

Parts of plans are put together bottom-up on one grid of times.  A part is dropped if it could not
make the best plan known even with everything above it for free.  The best tree is then improved by
pulling expensive predicates up, one by one, as long as that gives more.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np

from optimizer.cost.rate.exact import Exact, Flow
from optimizer.cost.rate.judge import Model
from optimizer.cost.rate.pulled import pulled
from optimizer.cost.rate.servers import Floats, progress
from optimizer.cost.rate.sets import Sets
from optimizer.cost.rate.tree import Input, Meet, Node, Servers
from optimizer.estimate import bits

if TYPE_CHECKING:
    from optimizer.cost.rate.judge import Judge
    from optimizer.memo import Memo

MOST = 7
"""Streams; with more, there are too many trees."""
POINTS = 385
"""Of the grid on which parts are compared."""
NEAR = 2e-3
"""What is so near to the best may be better than it on a finer grid."""
FINALISTS = 4
"""Trees that are looked at closely, and improved."""

Start = Callable[["Memo"], object]


def exact(memo: "Memo", starts: Sequence[Start]) -> None:
    """Propose the best of all plans; what the starts find is what it must beat."""
    for start in starts:
        start(memo)
    judge = memo.judge
    memo.takes(len(judge.load.streams), MOST)
    if memo.stopped or memo.rated is None or not memo.rated.value:
        return
    search = _Trees(memo, judge, judge.objective.by or memo.rated.value)
    for plan in search.finalists():
        memo.propose(plan)
    _improve(memo, judge)


def _improve(memo: "Memo", judge: "Judge") -> None:
    """Pull predicates up as long as results are more, by more than the grid's error."""
    improved = True
    while improved and not memo.out_of_time():
        assert memo.rated is not None
        before = memo.rated
        for plan in pulled(before.plan, judge.load, judge.servers):
            memo.examined += 1
            memo.propose(plan)
        improved = memo.rated is not before


class _Trees:
    """All parts that may be of a best plan, by the streams that they join."""

    def __init__(self, memo: "Memo", judge: "Judge", until: float) -> None:
        self.memo, self.judge = memo, judge
        self.sets = Sets(judge.load, judge.servers)
        self.model = Exact(judge.load, judge.grid(until, POINTS), judge.servers)
        self.target = judge.objective.first or (memo.rated.value if memo.rated else 0) or 0.0
        self._parts: dict[int, list[Node]] = {}

    def finalists(self) -> list[Node]:
        """The whole plans that are best on the grid, the best one first."""
        plans = self._all(self.sets.full)
        made = {plan: float(self._made(plan)[-1]) for plan in plans}
        return sorted(plans, key=lambda plan: -made[plan])[:FINALISTS]

    def _all(self, mask: int) -> list[Node]:
        if mask not in self._parts:
            made = self._inputs(mask) if mask.bit_count() == 1 else self._joins(mask)
            self._parts[mask] = [node for node in made if self._hopeful(node)]
        return self._parts[mask]

    def _joins(self, mask: int) -> Iterator[Node]:
        for left in map(int, self.sets.splits(mask)):
            for one in self._all(left):
                for other in self._all(mask ^ left):
                    yield Meet(one, other)

    def _inputs(self, mask: int) -> Iterator[Node]:
        """Every order of the selects, those that put out the same by every time once."""
        (position,) = bits(mask)
        node, seen = self.sets.inputs[position], set()
        rank_is_best = self.judge.servers is Servers.ONE
        for selects in [node.selects] if rank_is_best else permutations(node.selects):
            candidate = Input(node.alias, tuple(selects))
            curve = np.round(self._made(candidate), 9).tobytes()
            if curve not in seen:
                seen.add(curve)
                yield candidate

    def _hopeful(self, node: Node) -> bool:
        """Whether what is above could make it as good as the best, were it for free."""
        self.memo.examined += 1
        if self.memo.out_of_time():
            return False
        if self.judge.model is Model.PRINTED:
            return True  # its curves bound nothing: a slower input may give more by equation 2
        return self._bound(self.model.flow(node)) >= self.target * (1 - NEAR)

    def _made(self, plan: Node) -> Floats:
        """The curve of a plan on the grid."""
        if self.judge.model is Model.PRINTED:
            return self.judge.once(plan, self.model.times).made
        return self.model.run(plan).made

    def _bound(self, flow: Flow) -> float:
        """The results by the last time if all that is not in this part took no time."""
        horizon = self.model.times[-1]
        last = {name: float(seen[-1]) for name, seen in flow.until.items()}
        if self.judge.servers is Servers.ONE:
            horizon = float(progress(self.model.times, flow.work).tau[-1])
            last = {}
        return self.judge.seen({name: last.get(name, horizon) for name in self.judge.load.streams})
