"""Pictures of plans as SVG: streams flow up from the bottom row, the result comes out on top."""

from math import isfinite

from optimizer.cost.dual import Priced
from optimizer.explain import Shown, compact, cpu_text, share, size
from optimizer.identity import identity, states
from optimizer.picture.cards import GAP
from optimizer.picture.page import legend, page
from optimizer.picture.svg import (
    DROPPED,
    DRUM,
    HEAVY,
    KEPT,
    REBUILT,
    Drawing,
    Line,
    Paint,
    arrow,
    bar,
    label,
)
from optimizer.picture.tree import draw
from optimizer.workload import Budget


def as_svg(
    priced: Priced, title: str = "", budget: Budget | None = None, below: Drawing | None = None
) -> str:
    """The plan as a picture; with a budget, how much of it the plan uses."""
    tree = draw(priced, lambda _: DRUM)
    if below is not None:
        tree = _stacked(tree, below)
    meters = _meters(priced, budget or Budget())
    about = f"{priced.workload.method.value} cost model"
    if priced.workload.assumed:
        about += ", workload assumed"
    return page(title or "Plan", str(priced.plan), tree, meters, about)


def _stacked(tree: Drawing, below: Drawing) -> Drawing:
    width, top = max(tree.width, below.width), tree.height + 2 * GAP
    parts = tree.at((width - tree.width) / 2, 0), below.at((width - below.width) / 2, top)
    return Drawing(parts, width, top + below.height)


def diff(old: Priced, new: Priced, title: str = "") -> str:
    """Two plans side by side: the states that a migration keeps, rebuilds and drops."""
    before, after = set(states(old.plan.root)), set(states(new.plan.root))

    def tint(shown: Shown) -> Paint:
        key = identity(shown.state or shown.top).key
        return KEPT if key in before & after else REBUILT if key in after else DROPPED

    left, right = draw(old, tint), draw(new, tint)
    apart = 84.0
    height = max(left.height, right.height)
    between = arrow(left.width + apart / 2, height / 2)
    parts = (
        left.at(0, height - left.height),
        between,
        right.at(left.width + apart, height - right.height),
    )
    both = Drawing(parts, left.width + apart + right.width, height)
    counts = ((KEPT, before & after, "kept"), (REBUILT, after - before, "rebuilt"),
              (DROPPED, before - after, "dropped"))  # fmt: skip
    key = legend([(paint, f"{len(keys)} {word}") for paint, keys, word in counts])
    return page(
        title or "Migration", f"{old.plan}  →  {new.plan}", both, key, "states by what they hold"
    )


METER = 250.0


def _meters(priced: Priced, budget: Budget) -> Drawing:
    """CPU and memory, each against what the query may use of it."""
    total, rows = priced.total, compact(priced.total.tuples)
    memory = f"{rows} rows, {size(total.bytes)}"
    limit = size(budget.bytes) if budget.in_bytes else f"{compact(budget.tuples)} rows"
    meters = (
        _meter("CPU", cpu_text(total.cpu), total.cpu, budget.cpu, f"{budget.cpu:g}"),
        _meter("Memory", memory, total.memory(budget), budget.memory, limit),
    )
    elements = tuple(meter.at(i * (METER + 2 * GAP), 0) for i, meter in enumerate(meters))
    return Drawing(elements, 2 * METER + 2 * GAP, 44)


def _meter(name: str, text: str, used: float, limit: float, limit_text: str) -> Drawing:
    elements = [label(0, 12, Line(name, 11, faint=True), anchor="start")]
    elements.append(label(0, 29, Line(text, 13.5, bold=True), anchor="start"))
    if isfinite(limit):
        over = used > limit
        paint = HEAVY if over else KEPT
        says = f"{share(used, limit)} of {limit_text}"
        elements.append(label(METER, 12, Line(says, 11, faint=not over), anchor="end"))
        elements += bar(0, 37, METER, used / limit, paint)
    return Drawing(tuple(elements), METER, 44)
