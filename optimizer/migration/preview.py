"""What a migration will do: what is kept, rebuilt and dropped, and how long it takes.

The words are those of the pictures and of `midstream demo`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from optimizer.estimate import Estimator
from optimizer.migration.cost import Effort, Figures, effort
from optimizer.migration.matching import States, name, recipe
from optimizer.migration.steps import Drop, Fill, Keep, Parallel, Step
from optimizer.plan import Node, Plan


@dataclass(frozen=True)
class Line:
    """A state, and what becomes of it."""

    state: str
    key: str
    rows: float
    """As measured, or else estimated."""


@dataclass(frozen=True)
class Rebuilt(Line):
    """A state that is not there yet."""

    how: str
    """As its fill says; `parallel` if it fills itself while both plans run."""
    sources: tuple[str, ...] = ()
    seconds: float = 0.0
    partial: bool = False
    most: float = 0.0
    """Rows that it may have at most."""


@dataclass(frozen=True)
class Preview:
    """All states of both plans, and the work."""

    kept: tuple[Line, ...]
    rebuilt: tuple[Rebuilt, ...]
    dropped: tuple[Line, ...]
    effort: Effort

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        made = self.effort
        total = {"pause": made.pause, "longest_pause": made.longest, "lasts": made.lasts,
                 "work": made.work}  # fmt: skip
        lists = {"kept": self.kept, "rebuilt": self.rebuilt, "dropped": self.dropped}
        return {word: [_plain(line) for line in lines] for word, lines in lists.items()} | total


def preview(steps: Sequence[Step], old: Plan, new: Plan, figures: Figures) -> Preview:
    """What these steps do."""
    estimator = Estimator(new.query, figures.workload)
    before, after = States.of(old).nodes, States.of(new).nodes
    cost = effort(steps, old, new, figures)

    def line(key: str, nodes: Mapping[str, tuple[Node, ...]]) -> Line:
        node = nodes[key][0]
        return Line(name(node), key, figures.rows.get(key, estimator.node(node).held))

    kept, rebuilt, dropped = [], [], []
    fills = {filled.step: filled for filled in cost.fills}
    for step in steps:
        match step:
            case Keep(state):
                kept.append(line(state, after))
            case Drop(state):
                dropped.append(line(state, before))
            case Parallel(states):
                lines = (line(state, after) for state in states)
                rebuilt += [
                    Rebuilt(one.state, one.key, one.rows, "parallel", most=one.rows)
                    for one in lines
                ]
            case Fill():
                made, filled = recipe(old, new, step), fills[step]
                sources = tuple(map(name, made.sources))
                rebuilt.append(
                    Rebuilt(
                        name(made.target),
                        step.state,
                        filled.written,
                        step.how.value,
                        sources,
                        filled.seconds,
                        step.partial,
                        filled.most,
                    )
                )
    return Preview(tuple(kept), tuple(rebuilt), tuple(dropped), cost)


def _plain(line: Line) -> dict[str, Any]:
    return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(line).items()}
