"""How much there is to search, as the paper counts it."""

from math import factorial


def orders(streams: int) -> int:
    """Orders of joining that many streams, two at a time: K! (K-1)! / 2^(K-1) (Lemma 1).

    Trees whose joins do not depend on one another are counted once for each order of these.
    """
    found: int = factorial(streams) * factorial(streams - 1) // 2 ** (streams - 1)
    return found


def trees(streams: int) -> int:
    """Distinct trees of joins over that many streams, linear and bushy: (2K-3)!!."""
    found = 1
    for odd in range(3, 2 * streams - 2, 2):
        found *= odd
    return found


def space(streams: int, sites: int) -> int:
    """Orders of joining times placements of the joins: what an exhaustive search stands for."""
    placements: int = sites ** (streams - 1)
    return orders(streams) * placements


def beta(streams: int, sites: int, largest: int, height: float) -> float:
    """The share of the space that top-down and bottom-up examine at most (equation 1)."""
    return height * (largest / sites) ** (streams - 1)
