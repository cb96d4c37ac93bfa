"""Where operators run, as SVG: cards in the colours of places, a band through each part.

A part in the database is one statement, so what crosses its border is what counts: those edges say
how much that is.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from optimizer.cost.fragments import DB, Operator
from optimizer.explain import compact, cpu_number, per_second
from optimizer.picture.page import legend, page
from optimizer.picture.svg import (
    EDGE,
    HEAVY,
    JOIN,
    KEPT,
    PAPER,
    STREAM,
    Drawing,
    Line,
    Paint,
    box,
    fit,
    label,
    text_width,
)
from optimizer.placement import Placed

CARD, STREAM_CARD, ROW, GAP = 62.0, 34.0, 116.0, 26.0
WIDEST = 190.0


@dataclass(frozen=True)
class Box:
    """A card of an operator or of a stream that it reads, and where it is."""

    lines: tuple[Line, ...]
    paint: Paint
    rate: float
    place: str
    at: int
    """The operator; -1 for a stream."""
    inputs: "tuple[Box, ...]"

    @property
    def width(self) -> float:
        return 28 + max(text_width(x.text, x.size, bold=x.bold) for x in self.lines)

    @property
    def height(self) -> float:
        return STREAM_CARD if self.at < 0 else CARD

    @property
    def span(self) -> float:
        """The width of everything from here down."""
        below = sum(one.span for one in self.inputs) + GAP * (len(self.inputs) - 1)
        return max(self.width, below)

    @property
    def depth(self) -> int:
        """The rows below it."""
        return 1 + max((one.depth for one in self.inputs), default=-1)


@dataclass(frozen=True)
class Spot:
    """A card and the middle of its upper edge."""

    box: Box
    x: float
    y: float
    inputs: "tuple[Spot, ...]"

    def walk(self) -> Iterator["Spot"]:
        yield self
        for below in self.inputs:
            yield from below.walk()


def as_svg(placed: Placed, title: str) -> str:
    """The placement as a picture; streams flow up, the result comes out on top."""
    root = _box(len(placed.plan) - 1, placed)
    spot = _spot(root, 0.0, 0)
    spots = list(spot.walk())
    elements = [*_hulls(spots), *_edges(spots), *_cards(spots)]
    tree = Drawing(tuple(elements), root.span, root.depth * ROW + CARD)
    key = legend([(JOIN, "on Spark"), (KEPT, "in the database"), (HEAVY, "busiest")])
    keeps_up = "keeps up" if placed.feasible else "does not keep up"
    about = f"busiest {cpu_number(placed.cost.bottleneck)}, all {cpu_number(placed.cost.total)}"
    return page(title, f"{keeps_up}: {about} s a second", tree, key, "")


def _box(at: int, placed: Placed) -> Box:
    one = placed.plan.operators[at]
    inputs = tuple(
        _stream(below, rate) if isinstance(below, str) else _box(below, placed)
        for below, rate in zip(one.inputs, one.rates, strict=True)
    )
    place = DB if placed.found.mask >> at & 1 else ""
    paint = KEPT if place else JOIN
    if at in placed.busiest.operators:
        paint = Paint(paint.fill, HEAVY.line)
    return Box(_lines(one, place), paint, one.rate, place, at, inputs)


def _lines(one: Operator, place: str) -> tuple[Line, ...]:
    needs = one.db if place else one.spark
    lines = (
        Line(one.name, 13, bold=True),
        Line(f"{one.kind} · {compact(one.size)} rows"),
        Line(f"{cpu_number(needs)} s a second", 11, faint=True),
    )
    return tuple(Line(fit(x.text, WIDEST, x.size, bold=x.bold), x.size, x.bold, x.faint)
                 for x in lines)  # fmt: skip


def _stream(name: str, rate: float) -> Box:
    return Box((Line(fit(name, WIDEST, 13, bold=True), 13, bold=True),), STREAM, rate, "", -1, ())


def _spot(one: Box, left: float, row: int) -> Spot:
    below = sum(part.span for part in one.inputs) + GAP * (len(one.inputs) - 1)
    at = left + (one.span - below) / 2
    inputs = []
    for part in one.inputs:
        inputs.append(_spot(part, at, row + 1))
        at += part.span + GAP
    return Spot(one, left + one.span / 2, row * ROW, tuple(inputs))


def _cards(spots: Sequence[Spot]) -> Iterator[str]:
    for spot in spots:
        one = spot.box
        yield box(spot.x - one.width / 2, spot.y, one.width, one.height, 9, one.paint)
        y = spot.y + (22 if one.at < 0 else 19)
        for line in one.lines:
            yield label(spot.x, y, line, one.paint.ink)
            y += 17


def _edges(spots: Sequence[Spot]) -> Iterator[str]:
    """From each input up to its reader; across the border they are dashed."""
    for spot in spots:
        bottom = spot.y + spot.box.height
        for number, below in enumerate(spot.inputs):
            port = spot.x + 22 * (number - (len(spot.inputs) - 1) / 2)
            crosses = spot.box.place != below.box.place
            dashes = ' stroke-dasharray="5 4"' if crosses else ""
            middle = (bottom + below.y) / 2
            yield (
                f'<path d="M{below.x:.1f} {below.y:.1f}C{below.x:.1f} {middle:.1f} {port:.1f} '
                f'{middle:.1f} {port:.1f} {bottom:.1f}" fill="none" stroke-width="2" '
                f'stroke="{KEPT.line if crosses else EDGE}"{dashes}/>'
            )
            yield from _rate(below, per_second(below.box.rate))


def _rate(spot: Spot, text: str) -> Iterator[str]:
    width = text_width(text, 11, bold=True) + 10
    y = spot.y - 19
    yield box(spot.x - width / 2, y - 9, width, 16, 8, Paint(PAPER, PAPER))
    yield label(spot.x, y + 3, Line(text, 11, bold=True))


def _hulls(spots: Sequence[Spot]) -> Iterator[str]:
    """A tinted band behind the cards of each part in the database."""
    for spot in spots:
        for below in spot.inputs:
            if spot.box.place == below.box.place == DB:
                yield (
                    f'<path d="M{spot.x:.1f} {spot.y + CARD / 2:.1f}L{below.x:.1f} '
                    f'{below.y + CARD / 2:.1f}" stroke="{KEPT.fill}" stroke-width="54" '
                    'stroke-linecap="round"/>'
                )
