"""Where the cards go: a tidy tree, the streams in its bottom row, the result on top.

A card's column is its own, from its top up to the join that it feeds, and holds what is said of
that edge: so nothing overlaps, however many streams there are.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from optimizer.picture.cards import GAP, Card


@dataclass(frozen=True)
class Placed:
    """A card and where it is: the middle of its upper edge."""

    card: Card
    x: float
    y: float
    inputs: "tuple[Placed, ...]"
    turn: float
    """Where the edges of its inputs leave their columns."""

    @property
    def bottom(self) -> float:
        return self.y + self.card.height

    def port(self, position: int) -> float:
        """Where the edge of an input ends."""
        count = len(self.inputs)
        step = min(44.0, (self.card.width - 28) / max(count - 1, 1))
        return self.x + (position - (count - 1) / 2) * step

    def walk(self) -> Iterator["Placed"]:
        yield self
        for placed in self.inputs:
            yield from placed.walk()


class Rows:
    """The heights of a tree's rows, the result's on top and the streams' at the bottom."""

    def __init__(self, root: Card) -> None:
        cards = list(root.walk())
        levels = range(root.level, -1, -1)
        self.tops: dict[int, float] = {}
        self.turns: dict[int, float] = {}
        y = 0.0
        for level in levels:
            row = [card for card in cards if card.level == level]
            self.tops[level] = y
            widest = max(len(card.inputs) for card in row)
            self.turns[level] = y + max(card.height for card in row) + 26 + 4.0 * min(widest, 12)
            leads = (card.lead for card in cards if card.level == level - 1)
            y = self.turns[level] + max(leads, default=0)
        self.height = max(self.tops[card.level] + card.height for card in cards)


def place(card: Card, left: float, rows: Rows) -> Placed:
    """The card over the middle of its inputs, all of them within the span from `left` on."""
    below = sum(part.span for part in card.inputs) + GAP * (len(card.inputs) - 1)
    at = left + (card.span - below) / 2
    inputs = []
    for part in card.inputs:
        inputs.append(place(part, at, rows))
        at += part.span + GAP
    middle = (inputs[0].x + inputs[-1].x) / 2 if inputs else left + card.span / 2
    half = card.column / 2
    x = min(max(middle, left + half), left + card.span - half)
    return Placed(card, x, rows.tops[card.level], tuple(inputs), rows.turns[card.level])
