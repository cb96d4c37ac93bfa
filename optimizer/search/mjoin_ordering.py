"""`mjoin-ordering`: one join of everything, each input probing in its best order (Zhu 5.1).

It keeps no intermediate state, so no plan needs less memory. `optimizer.ordering` finds the orders:
all that this search decides is which inputs are combined before they are joined.
"""

from optimizer.memo import Memo, Part
from optimizer.moves import combined, joined


def mjoin_ordering(memo: Memo) -> Part:
    """Propose the mjoin."""
    mjoin = joined(memo, map(memo.leaf, memo.query.aliases))
    memo.offer(mjoin)
    eased = combined(memo, mjoin)
    memo.offer(eased)
    return eased
