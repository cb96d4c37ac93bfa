"""Pairs between two sets, as many as there can be: augmenting paths, the rarest choices first."""

from collections.abc import Sequence


def matched(partners: Sequence[Sequence[int]]) -> dict[int, int]:
    """Whom each of the right side is paired with, given whom each of the left may be."""
    paired: dict[int, int] = {}
    own: dict[int, int] = {}
    for left in sorted(range(len(partners)), key=lambda one: len(partners[one])):
        _augment(left, partners, paired, own)
    return paired


def _augment(
    left: int, partners: Sequence[Sequence[int]], paired: dict[int, int], own: dict[int, int]
) -> None:
    """Pair one more of the left side, others giving way to it as far as they can."""
    came: dict[int, int] = {}
    waiting = [left]
    while waiting:
        one = waiting.pop()
        for right in partners[one]:
            if right in came:
                continue
            came[right] = one
            if right not in paired:
                _turn(right, came, paired, own)
                return
            waiting.append(paired[right])


def _turn(free: int, came: dict[int, int], paired: dict[int, int], own: dict[int, int]) -> None:
    """Pair along the path that ends at a free one of the right side."""
    right: int | None = free
    while right is not None:
        left = came[right]
        before = own.get(left)
        paired[right], own[left] = left, right
        right = before
