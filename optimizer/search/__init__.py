"""Plan searches: each proposes plans to a memo, which prices them and keeps the best."""

from collections.abc import Callable
from dataclasses import dataclass

from optimizer.cost.dual import Priced
from optimizer.memo import Memo
from optimizer.search.as_written import as_written

Search = Callable[[Memo], None]

SEARCHES: dict[str, Search] = {
    "as-written": as_written,
}


@dataclass(frozen=True)
class Found:
    """What a search came back with, and why it is or is not good enough."""

    strategy: str
    chosen: Priced
    qualified: bool
    binding: str
    front: tuple[Priced, ...]
    examined: int


def search(strategy: str, memo: Memo) -> Found:
    """Run one strategy."""
    SEARCHES[strategy](memo)
    chosen = memo.best
    if chosen is None:
        raise LookupError(f"{strategy} proposed no plan")
    qualified = chosen.total.within(memo.budget)
    return Found(
        strategy, chosen, qualified, memo.binding(chosen), tuple(memo.front), memo.examined
    )
