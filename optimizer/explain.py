"""A priced plan for people and programs: an indented tree for terminals, and JSON.

People read joins, group-bys and streams; selects and projections say what happens to a stream or a
result on its way, so the `Shown` operators of the text and of the picture carry them along.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import floor, isfinite, log10
from typing import Any

from optimizer.cost.dual import Cost, Priced
from optimizer.estimate import Estimate
from optimizer.identity import identity, ids
from optimizer.plan import (
    PLACES,
    Combine,
    Emit,
    GroupBy,
    Join,
    Node,
    Project,
    Select,
    Source,
    to_json,
    tree_of,
)
from optimizer.query import Predicate
from optimizer.window import MICROSECONDS

# --- numbers -------------------------------------------------------------------------------------

_PREFIXES = ("", "k", "M", "G", "T")


def compact(value: float) -> str:
    """A number as short as people like it, with its unit's prefix: `12`, `1.2 k`, `340 M`."""
    if value == 0 or not isfinite(value):
        return f"{value:g}"
    power = max(floor(log10(abs(value)) / 3), 0)
    if power > len(_PREFIXES):  # nobody counts in thousands of millions of T
        return f"{value:.1e}"
    power = min(power, len(_PREFIXES) - 1)
    scaled = _significant(value / 1000**power)
    if scaled == "1000" and power < len(_PREFIXES) - 1:  # 999.9 rounds up to the next prefix
        scaled, power = "1", power + 1
    return f"{scaled} {_PREFIXES[power]}".rstrip()


def _significant(value: float) -> str:
    """Two digits that matter, three from a hundred on."""
    if abs(value) >= 99.5:
        return f"{value:.0f}"
    text = f"{value:.2g}"
    return text if "e" not in text else f"{value:.1e}"


def per_second(rate: float) -> str:
    """A rate: `1.2 k/s`."""
    return f"{compact(rate)}/s"


def size(count: float) -> str:
    """Bytes: `3.4 MB`."""
    text = compact(count)
    return f"{text}B" if text[-1].isalpha() else f"{text} B"


def duration(microseconds: int) -> str:
    """A time in the largest unit that divides it: `5 min`."""
    units = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
    for unit, seconds in units:
        if microseconds and microseconds % (seconds * MICROSECONDS) == 0:
            return f"{microseconds // (seconds * MICROSECONDS)} {unit}"
    return f"{microseconds / 1000:g} ms" if microseconds else "0 s"


def share(part: float, whole: float) -> str:
    """A part of a whole in percent."""
    percent = 100 * part / whole if whole else 0.0
    if percent >= 999.5:
        return f"{compact(percent / 100)} times"
    return f"{percent:.0f} %" if percent >= 1 or percent == 0 else "<1 %"


def shorten(text: str, length: int) -> str:
    """The text, or as much of it as fits, with an ellipsis."""
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


# --- operators as people see them ----------------------------------------------------------------


@dataclass(frozen=True)
class Shown:
    """An operator with the selects and projections that its rows pass next."""

    node: Node
    top: Node
    """What its consumer gets: the operator itself, or the last of those selects and projections."""
    selects: tuple[Predicate, ...]
    inputs: "tuple[Shown, ...]"
    state: Node | None
    """What is kept as a state: its rows by the join above, or the groups of a group-by."""

    @property
    def name(self) -> str:
        """In the plan notation."""
        return str(tree_of(self.node))

    @property
    def crosses(self) -> bool:
        """A join that no predicate connects."""
        return isinstance(self.node, Join) and not self.node.predicates


def outline(node: Node, above: Node | None = None) -> Shown:
    """The operators to show, from the one that feeds `above`."""
    core, selects = node, []
    while isinstance(core, Select | Project):
        if isinstance(core, Select):
            selects.append(core.predicate)
        core = core.input
    state = node if isinstance(above, Join) else core if isinstance(core, GroupBy) else None
    inputs = tuple(outline(below, core) for below in core.inputs)
    return Shown(core, node, tuple(reversed(selects)), inputs, state)


def probe_orders(shown: Shown) -> list[list[str]]:
    """How new tuples of each input go through the states of the others."""
    if not isinstance(shown.node, Join):
        return []
    names = [part.name for part in shown.inputs]
    return [
        [names[position], *(names[other] for other in order)]
        for position, order in enumerate(shown.node.orders)
    ]


def window_of(source: Source, priced: Priced) -> str:
    """How long a stream's tuples wait for their partners."""
    query = priced.plan.query
    partners = [alias for alias in query.aliases if alias != source.alias]
    return duration(query.bounds.retention(source.alias, partners)) if partners else ""


def is_heaviest(node: Node, priced: Priced) -> bool:
    """Whether it needs most CPU, and more than none."""
    return node == priced.heaviest and priced.costs[node].cpu > 0


# --- JSON ----------------------------------------------------------------------------------------


def as_json(priced: Priced) -> dict[str, Any]:
    """The full plan with its estimates; `plan.from_json` reads it back."""
    total, workload, root = priced.total, priced.workload, priced.plan.root
    return {
        "plan": str(priced.plan),
        "method": workload.method.value,
        "assumed": workload.assumed,
        "cpu": total.cpu,
        "memory_tuples": total.tuples,
        "memory_bytes": total.bytes,
        "root": _enriched(root, to_json(root), priced, ids(root)),
    }


def _enriched(
    node: Node, data: dict[str, Any], priced: Priced, names: Mapping[Node, str]
) -> dict[str, Any]:
    estimate, cpu = priced.estimates[node], priced.costs[node].cpu
    total = priced.total.cpu
    inputs = [
        _enriched(below, part, priced, names)
        for below, part in zip(node.inputs, data.get("inputs", ()), strict=True)
    ]
    figures: dict[str, Any] = {
        "id": names[node],
        "place": (node.place if isinstance(node, Join | GroupBy) else "") or PLACES[0],
        "rate": estimate.rate,
        "width": estimate.width,
        "cpu": cpu,
        "cpu_share": cpu / total if total else 0.0,
        "heaviest": is_heaviest(node, priced),
    }
    if isinstance(node, GroupBy):
        figures["state"] = _state(node, estimate)
    if isinstance(node, Join):
        figures["probes"] = probe_orders(outline(node))
        for below, part in zip(inputs, node.parts, strict=True):
            below["state"] = _state(part, priced.estimates[part])
    rest = {key: value for key, value in data.items() if key != "inputs"}
    return rest | figures | ({"inputs": inputs} if inputs else {})


def _state(node: Node, estimate: Estimate) -> dict[str, Any]:
    return {"key": identity(node).key, "rows": estimate.held, "bytes": estimate.held_bytes}


# --- text ----------------------------------------------------------------------------------------

_LABEL = 72
"""How many characters of an operator's description a terminal shows."""


@dataclass(frozen=True)
class _Row:
    """A line of the tree: what it says, and its figures by column."""

    label: str
    figures: tuple[str, ...] = ()
    mark: str = ""


def as_text(priced: Priced) -> str:
    """An indented tree for terminals: the result on top, the streams as its leaves."""
    rows = list(_rows(outline(priced.plan.root), priced, "", ""))
    heading = [str(priced.plan), summary(priced), ""]
    return "\n".join([*heading, *_aligned(rows)]) + "\n"


def summary(priced: Priced) -> str:
    """What the plan costs all in all, and how that was counted."""
    total, method = priced.total, priced.workload.method.value
    assumed = ", a workload that is assumed" if priced.workload.assumed else ""
    return f"{cpu_text(total.cpu)}, {memory_text(total)} of state ({method}{assumed})"


def cpu_text(cpu: float) -> str:
    """CPU-seconds per second: `0.28 CPU`."""
    return f"{cpu_number(cpu)} CPU"


def cpu_number(cpu: float) -> str:
    """Three digits that matter, down to microseconds per second."""
    if cpu >= 999.5:
        return compact(cpu)
    return f"{cpu:.3g}" if cpu >= 1e-4 or cpu == 0 else f"{max(cpu, 1e-6):.6f}"


def memory_text(cost: Cost) -> str:
    """Rows and bytes: `12 k rows, 3.4 MB`."""
    return f"{compact(cost.tuples)} rows, {size(cost.bytes)}"


def _rows(shown: Shown, priced: Priced, first: str, rest: str) -> Iterator[_Row]:
    yield _Row(
        first + shorten(describe(shown, priced), _LABEL),
        _figures(shown, priced),
        _mark(shown, priced),
    )
    below = rest + ("│  " if shown.inputs else "   ")
    for detail in _details(shown):
        yield _Row(below + shorten(detail, _LABEL))
    for part in shown.inputs[:-1]:
        yield from _rows(part, priced, rest + "├─ ", rest + "│  ")
    for part in shown.inputs[-1:]:
        yield from _rows(part, priced, rest + "└─ ", rest + "   ")


def describe(shown: Shown, priced: Priced) -> str:
    """An operator in a line."""
    match shown.node:
        case Source(alias, stream) as source:
            name = stream.name if stream.name != alias else ""
            return "  ".join(filter(None, (alias, name, window_of(source, priced))))
        case Join(parts, predicates, place=place):
            kind = "join" if len(parts) == 2 else f"{len(parts)}-way join"
            on = " AND ".join(map(str, predicates)) or "no predicate: every pair within the windows"
            return f"{kind}{_at(place)}  {on}"
        case GroupBy(_, grouping, place):
            made = ", ".join([*map(str, grouping.keys), *map(str, grouping.aggregates)])
            every = f" every {duration(grouping.slide)}" if grouping.slide < grouping.size else ""
            return f"group by{_at(place)}  {duration(grouping.size)}{every}: {made}"
        case Combine():
            return f"combine  {', '.join(column.name for column in shown.node.keys)}"
        case Emit(_, output):
            return f"result  {', '.join(named.name for named in output)}"
    raise TypeError(f"unknown operator {type(shown.node).__name__}")


def _at(place: str) -> str:
    return f"@{place}" if place else ""


def _details(shown: Shown) -> list[str]:
    where = [f"where {predicate}" for predicate in shown.selects]
    orders = probe_orders(shown)
    return where + [f"probes {' → '.join(order)}" for order in orders if len(orders) > 2]


def _figures(shown: Shown, priced: Priced) -> tuple[str, ...]:
    cost = priced.costs[shown.node]
    state = priced.estimates[shown.state] if shown.state else None
    return (
        per_second(priced.estimates[shown.top].rate),
        f"{compact(state.held)} rows" if state else "",
        size(state.held_bytes) if state else "",
        cpu_number(cost.cpu) if cost.cpu else "",
        share(cost.cpu, priced.total.cpu) if cost.cpu else "",
    )


def _mark(shown: Shown, priced: Priced) -> str:
    return "◀ heaviest" if is_heaviest(shown.node, priced) else ""


_HEAD = _Row("", ("rate", "state", "bytes", "CPU", "share"))


def _aligned(rows: Sequence[_Row]) -> Iterator[str]:
    """Figures right-aligned in columns behind the labels."""
    rows = [_HEAD, *rows]
    label_width = max(len(row.label) for row in rows)
    widths = [max(len(row.figures[i]) for row in rows if row.figures) for i in range(5)]
    for row in rows:
        figures = (f.rjust(width) for f, width in zip(row.figures, widths, strict=False))
        yield "  ".join([row.label.ljust(label_width), *figures, row.mark]).rstrip()
