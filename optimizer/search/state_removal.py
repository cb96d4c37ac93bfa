"""`state-removal`: from the bjtree, merge away the states that cost least to recompute (Zhu 6.2).

Each step removes the state with the smallest increase in CPU for its size: merging two joins where
maintaining the state costs more than recomputing it even lowers the CPU, and comes first.
"""

from optimizer.memo import Memo, Part
from optimizer.moves import Enough, dissolved, inner, never, replaced


def state_removal(memo: Memo, start: Part, enough: Enough = never) -> Part:
    """Propose every step from the bjtree to the mjoin, or until enough is reached."""
    root = start
    while not enough(root) and not memo.out_of_time():
        above, state = min(inner(root), key=lambda pair: ratio(memo, *pair), default=(root, root))
        if state is root:
            break
        root = replaced(memo, root, above, dissolved(memo, above, state))
        memo.offer(root)
    return root


def ratio(memo: Memo, above: Part, state: Part) -> float:
    """The state's quality: what its removal adds to the CPU, over its size."""
    increase = dissolved(memo, above, state).cost.cpu - above.cost.cpu
    size = memo.state(state.estimate)
    return increase / size if size > 0 else float("inf") * (increase > 0 or -1)
