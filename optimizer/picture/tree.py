"""A plan's tree as SVG: cards, edges as wide as their rates, a drum for each state that is kept."""

from collections.abc import Callable, Iterator
from itertools import chain
from math import log

from optimizer.cost.dual import Priced
from optimizer.explain import Shown, compact, outline, per_second, probe_orders, size
from optimizer.picture.cards import DRUM_HEIGHT, DRUM_WIDTH, LINE_HEIGHT, RATE_HEIGHT, card_of
from optimizer.picture.layout import Placed, Rows, place
from optimizer.picture.svg import (
    EDGE,
    PAPER,
    Drawing,
    Line,
    Paint,
    bar,
    bow_tie,
    box,
    escape,
    label,
    text_width,
)
from optimizer.plan import Combine, Emit, GroupBy, Join, Source

Tint = Callable[[Shown], Paint]
"""The colours of a state."""


def draw(priced: Priced, tint: Tint) -> Drawing:
    """All of it, the states in the colours that `tint` gives them."""
    root = card_of(outline(priced.plan.root), priced)
    rows = Rows(root)
    placed = place(root, 0, rows)
    thickness = _thickness(priced)
    edges = chain.from_iterable(_edges(p, priced, thickness) for p in placed.walk())
    labels = chain.from_iterable(_labels(p, priced, tint) for p in placed.walk() if p is not placed)
    cards = chain.from_iterable(_draw_card(p) for p in placed.walk())
    return Drawing((*edges, *labels, *cards), root.span, rows.height)


def _thickness(priced: Priced) -> Callable[[float], float]:
    """How wide an edge is: by the logarithm of its rate, between the plan's slowest and fastest."""
    rates = [estimate.rate for estimate in priced.estimates.values() if estimate.rate > 0]
    low, high = min(rates, default=1.0), max(rates, default=1.0)

    def width(rate: float) -> float:
        if rate <= low or high <= low:
            return 1.5
        return 1.5 + 6.5 * log(rate / low) / log(high / low)

    return width


def _edges(placed: Placed, priced: Priced, thickness: Callable[[float], float]) -> Iterator[str]:
    for position, below in enumerate(placed.inputs):
        x, port = below.x, placed.port(position)
        middle = (placed.turn + placed.bottom) / 2
        width = thickness(priced.estimates[below.card.shown.top].rate)
        yield (
            f'<path d="M{x:.1f} {below.y:.1f}V{placed.turn:.1f}'
            f'C{x:.1f} {middle:.1f} {port:.1f} {middle:.1f} {port:.1f} {placed.bottom:.1f}" '
            f'fill="none" stroke="{EDGE}" stroke-width="{width:.1f}"/>'
        )


def _labels(placed: Placed, priced: Priced, tint: Tint) -> Iterator[str]:
    """What is said of the edge that leaves a card: its rate, and the state that is kept of it."""
    shown = placed.card.shown
    rate = per_second(priced.estimates[shown.top].rate)
    width = text_width(rate, 11.5, bold=True) + 12
    y = placed.y - RATE_HEIGHT / 2
    yield box(placed.x - width / 2, y - 9, width, 17, 8, Paint(PAPER, PAPER))
    yield label(placed.x, y + 4, Line(rate, 11.5, bold=True))
    if shown.state is not None:
        state = priced.estimates[shown.state]
        lines = (f"{compact(state.held)} rows", size(state.held_bytes))
        yield from _drum(placed.x, placed.y - placed.card.lead, lines, tint(shown))


def _drum(x: float, y: float, lines: tuple[str, str], paint: Paint) -> Iterator[str]:
    """A cylinder with the size of a state on it."""
    half, height, bulge = DRUM_WIDTH / 2 - 2, DRUM_HEIGHT - 8, 5.0
    left, right, bottom = x - half, x + half, y + height - bulge
    style = f'fill="{paint.fill}" stroke="{paint.line}" stroke-width="1.3"'
    yield (
        f'<path d="M{left:.1f} {y + bulge:.1f}V{bottom:.1f}A{half:g} {bulge:g} 0 0 0 {right:.1f} '
        f'{bottom:.1f}V{y + bulge:.1f}" {style}/>'
    )
    yield f'<ellipse cx="{x:.1f}" cy="{y + bulge:.1f}" rx="{half:g}" ry="{bulge:g}" {style}/>'
    yield label(x, y + 22, Line(lines[0], 10.5), paint.ink)
    yield label(x, y + 34, Line(lines[1], 10.5, faint=True), paint.ink)


def _draw_card(placed: Placed) -> Iterator[str]:
    card = placed.card
    left, round_ends = placed.x - card.width / 2, isinstance(card.shown.node, Source | Emit)
    yield f"<g><title>{escape(_tooltip(card.shown))}</title>"
    radius = min(card.height / 2, 22.0) if round_ends else 9.0
    yield box(left, placed.y, card.width, card.height, radius, card.paint)
    if card.icon:
        title = text_width(card.lines[0].text, card.lines[0].size, bold=True)
        yield bow_tie(placed.x - title / 2 - 6, placed.y + 20, card.paint)
    y = placed.y + 8
    for line in card.lines:
        y += line.size * LINE_HEIGHT
        shift = 9 if card.icon and line.bold else 0
        yield label(placed.x + shift, y - line.size * 0.36, line, card.paint.ink)
    if card.share:
        yield from bar(left + 14, placed.bottom - 12, card.width - 28, card.share, card.paint)
    yield "</g>"


def _tooltip(shown: Shown) -> str:
    """Everything in full that the card may have had to shorten."""
    match shown.node:
        case Source(alias, stream):
            lines = [f"{alias}: {stream.name}"]
        case Join(_, predicates):
            lines = [shown.name, *map(str, predicates), *map(" → ".join, probe_orders(shown))]
        case GroupBy(_, grouping) | Combine(_, grouping):
            lines = [*map(str, grouping.keys), *map(str, grouping.aggregates)]
        case Emit(_, output):
            lines = [*map(str, output)]
        case _:
            lines = []
    return "\n".join([*lines, *(f"where {predicate}" for predicate in shown.selects)])
