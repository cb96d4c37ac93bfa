"""Cards: what a picture says of each operator, and how much room that takes."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from optimizer.cost.dual import Priced
from optimizer.explain import Shown, cpu_text, duration, is_heaviest, share, window_of
from optimizer.picture.svg import (
    CROSS,
    GROUP,
    HEAVY,
    JOIN,
    RESULT,
    STREAM,
    Line,
    Paint,
    fit,
    text_width,
)
from optimizer.plan import Combine, Emit, GroupBy, Join, Source

GAP = 22.0
TEXT_WIDTH = 232.0
RATE_HEIGHT, DRUM_HEIGHT, DRUM_WIDTH = 26.0, 48.0, 92.0

LINE_HEIGHT = 1.42


@dataclass(frozen=True)
class Card:
    """What is drawn for an operator, and the cards of what feeds it."""

    shown: Shown
    lines: tuple[Line, ...]
    paint: Paint
    inputs: "tuple[Card, ...]"
    share: float = 0.0
    """Of all the plan's CPU."""

    @cached_property
    def width(self) -> float:
        text = max(text_width(line.text, line.size, bold=line.bold) for line in self.lines)
        ports = 26.0 * len(self.inputs) if len(self.inputs) > 2 else 0.0
        return max(text + (44 if self.icon else 36), 72.0, ports)

    @cached_property
    def height(self) -> float:
        text = sum(line.size * LINE_HEIGHT for line in self.lines)
        return text + 16 + (8 if self.share else 0)

    @property
    def icon(self) -> bool:
        """A bow-tie in its corner."""
        return isinstance(self.shown.node, Join)

    @cached_property
    def column(self) -> float:
        """The width that it needs for itself and for its edge upwards."""
        return max(self.width, DRUM_WIDTH if self.shown.state else 0)

    @cached_property
    def span(self) -> float:
        """The width of everything from here down."""
        below = sum(card.span for card in self.inputs) + GAP * (len(self.inputs) - 1)
        return max(self.column, below)

    @cached_property
    def level(self) -> int:
        """The rows below it."""
        return 1 + max((card.level for card in self.inputs), default=-1)

    @property
    def lead(self) -> float:
        """The height of what is said of its edge upwards."""
        return RATE_HEIGHT + (DRUM_HEIGHT if self.shown.state else 0)

    def walk(self) -> Iterator["Card"]:
        yield self
        for card in self.inputs:
            yield from card.walk()


def card_of(shown: Shown, priced: Priced) -> Card:
    """An operator's card, with the cards below it."""
    inputs = tuple(card_of(below, priced) for below in shown.inputs)
    lines = [*_title(shown, priced), *_where(shown)]
    cpu, total = priced.costs[shown.node].cpu, priced.total.cpu
    if cpu:
        lines.append(Line(f"{cpu_text(cpu)} · {share(cpu, total)}", 11, faint=True))
    fitted = tuple(
        Line(fit(x.text, TEXT_WIDTH, x.size, bold=x.bold), x.size, x.bold, x.faint) for x in lines
    )
    heavy = is_heaviest(shown.node, priced)
    paint = HEAVY if heavy else _paint(shown)
    return Card(shown, fitted, paint, inputs, cpu / total if cpu else 0.0)


def _paint(shown: Shown) -> Paint:
    match shown.node:
        case Source():
            return STREAM
        case Join():
            return CROSS if shown.crosses else JOIN
        case Emit():
            return RESULT
    return GROUP


def _title(shown: Shown, priced: Priced) -> list[Line]:
    match shown.node:
        case Source(alias, stream) as source:
            name = stream.name if stream.name != alias else ""
            about = " · ".join(filter(None, (name, window_of(source, priced))))
            return [Line(alias, 14, bold=True), *([Line(about, faint=True)] if about else [])]
        case Join(parts, predicates, place=place):
            kind = (
                "cross join"
                if shown.crosses
                else "join"
                if len(parts) == 2
                else f"{len(parts)}-way join"
            )
            at = f" @{place}" if place else ""
            return [Line(kind + at, 13, bold=True), *_some(map(str, predicates))]
        case GroupBy(_, grouping, place):
            every = f" every {duration(grouping.slide)}" if grouping.slide < grouping.size else ""
            at = f" @{place}" if place else ""
            title = Line(f"group by{at} · {duration(grouping.size)}{every}", 13, bold=True)
            return [title, *_some(map(str, (*grouping.keys, *grouping.aggregates)))]
        case Combine(keys=keys):
            return [Line("combine", 13, bold=True), Line(", ".join(key.name for key in keys))]
        case Emit(_, output):
            return [Line("result", 14, bold=True), *_some([", ".join(n.name for n in output)])]
    raise TypeError(f"unknown operator {type(shown.node).__name__}")


def _where(shown: Shown) -> list[Line]:
    return _some(f"where {predicate}" for predicate in shown.selects)


def _some(texts: Iterable[str], limit: int = 3) -> list[Line]:
    """The first few of them, and how many more there are."""
    lines = [Line(text) for text in texts]
    if len(lines) <= limit:
        return lines
    return [*lines[: limit - 1], Line(f"and {len(lines) - limit + 1} more", faint=True)]
