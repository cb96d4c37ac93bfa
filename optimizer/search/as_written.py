"""`as-written`: the left-deep tree in the order of the query's text, as most engines run it."""

from functools import reduce

from optimizer.memo import Memo


def as_written(memo: Memo) -> None:
    """Propose it."""
    first, *others = map(memo.leaf, memo.query.aliases)
    memo.offer(reduce(lambda part, leaf: memo.join((part, leaf)), others, first))
