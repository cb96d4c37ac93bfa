"""The short notation of plans, such as `((f b) c)`, and the tree of names that it stands for."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

Order = tuple[int, ...]
"""The positions of the other inputs, as a new tuple of one input probes them."""

PLACES = ("spark", "db")
"""Where an operator may be placed: in the job's engine, as without a place, or in the database."""

DEEPEST = 100
"""How many joins may stand inside each other."""


class PlanError(ValueError):
    """A plan that does not compute its query, and why."""


@dataclass(frozen=True)
class Leaf:
    """An input; `combined` if equal tuples of it are combined before they are joined."""

    alias: str
    combined: bool = False

    def __str__(self) -> str:
        return f"[{self.alias}]" if self.combined else self.alias


@dataclass(frozen=True)
class Branch:
    """A join of what its parts compute; without orders, each input probes the others as written."""

    parts: "tuple[Tree, ...]"
    orders: tuple[Order, ...] = ()
    place: str = ""

    def __post_init__(self) -> None:
        if not self.orders:
            n = len(self.parts)
            orders = tuple(tuple(o for o in range(n) if o != i) for i in range(n))
            object.__setattr__(self, "orders", orders)

    def __str__(self) -> str:
        place = f"@{self.place}" if self.place else ""
        return f"({' '.join(map(str, self.parts))}){place}"


Tree = Leaf | Branch

_TOKEN = re.compile(r"\s*(\(|\)(?:@\w+)?|\[\w+\]|\w+)")


def parse(text: str) -> Tree:
    """The tree that a notation such as `((f b) c d)` stands for."""
    open_parts: list[list[Tree]] = [[]]
    position, end = 0, len(text.rstrip())
    while position < end:
        token = _TOKEN.match(text, position)
        if token is None:
            at = len(text) - len(text[position:].lstrip())
            raise PlanError(f"unexpected {text[at]!r} at {at + 1} in {_short(text)}")
        position = token.end()
        _take(token[1], open_parts, text)
    if len(open_parts) != 1:
        raise PlanError(f"a parenthesis is not closed in {_short(text)}")
    if len(open_parts[0]) != 1:
        raise PlanError(f"{_short(text)} is not one plan: put parentheses around it")
    return open_parts[0][0]


def _take(symbol: str, open_parts: list[list[Tree]], text: str) -> None:
    if symbol == "(":
        if len(open_parts) > DEEPEST:
            raise PlanError(f"more than {DEEPEST} parentheses inside each other in {_short(text)}")
        open_parts.append([])
    elif symbol.startswith(")"):
        if len(open_parts) == 1:
            raise PlanError(f"a parenthesis too many in {_short(text)}")
        parts = open_parts.pop()
        if len(parts) < 2:
            raise PlanError(f"a join needs two inputs in {_short(text)}")
        open_parts[-1].append(Branch(tuple(parts), place=checked_place(symbol[2:])))
    else:
        open_parts[-1].append(Leaf(symbol.strip("[]"), combined=symbol.startswith("[")))


def checked_place(name: str) -> str:
    """Where an operator is carried out; without a name, by the job's engine."""
    if name and name not in PLACES:
        raise PlanError(f"there is no place {_short(name)}; allowed: {', '.join(PLACES)}")
    return name


def _short(text: str) -> str:
    return repr(text if len(text) <= 200 else f"{text[:197]}...")


def leaves(tree: Tree) -> Iterator[Leaf]:
    """The inputs, from left to right."""
    if isinstance(tree, Leaf):
        yield tree
    else:
        for part in tree.parts:
            yield from leaves(part)
