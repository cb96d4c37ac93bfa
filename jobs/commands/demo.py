"""`midstream demo`: an unattended tour of what Midstream does on an example."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.padding import Padding
from rich.syntax import Syntax
from rich.text import Text

from jobs import show
from jobs.errors import InputError

if TYPE_CHECKING:
    from jobs.commands.comparison import Run
    from jobs.commands.task import Task
    from jobs.specs import Job
    from optimizer.cost.dual import Priced
    from optimizer.plan import Node
    from optimizer.query import Query

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
QUERY = "terminal"


@dataclass(frozen=True)
class Stage:
    """What the acts have in common."""

    pictures: Path

    @cached_property
    def job(self) -> "Job":
        """The airline."""
        from jobs.specs import load

        return load(EXAMPLES / "airline.yaml")

    @cached_property
    def task(self) -> "Task":
        """Its terminal query, while a snowstorm floods the weather stream."""
        from jobs.commands.task import from_job

        return from_job(self.job, QUERY, EXAMPLES / f"{QUERY}.yaml")

    @cached_property
    def written(self) -> "Priced":
        """The plan in the order of the query's text."""
        return self.task.price(self.task.start)

    @cached_property
    def runs(self) -> "list[Run]":
        """Every strategy's search."""
        from jobs.commands.optimize import ALL, chosen, timed

        return [timed(name, self.task, None) for name in chosen(ALL)]

    @cached_property
    def best(self) -> "Run":
        """What the strategy that the job uses has found."""
        wanted = self.job.reoptimize.strategy
        return next(run for run in self.runs if run.found.strategy == wanted)


def demo(
    *,
    pictures: Annotated[Path, typer.Option(help="Where pictures of plans go.")] = Path(
        ".midstream/demo"
    ),
) -> None:
    """See on an example what Midstream does: a tour of less than a minute."""
    if not EXAMPLES.is_dir():
        raise InputError(
            "the examples are part of the source tree: run this from a checkout", "demo"
        )
    stage = Stage(pictures)
    for number, (title, act) in enumerate(ACTS, start=1):
        show.heading(f"{number}. {title}")
        act(stage)


def near(path: Path) -> Path:
    """The path as seen from here, where that is shorter."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


# --- acts ----------------------------------------------------------------------------------------


def the_job(stage: Stage) -> None:
    """A file says what streams there are and what is asked of them."""
    job = stage.job
    show.plain(
        f"{near(job.file)} describes {len(job.streams)} streams and {len(job.queries)} queries."
    )
    rows = [(Text(name, "cyan"), *_about(job.query(name))) for name in job.queries]
    show.table(("query", "streams", "on"), rows)


def _about(query: "Query") -> tuple[str, str]:
    """The streams of a query, and what connects them."""
    streams = ", ".join(f"{stream.name} {alias}" for alias, stream in query.inputs)
    joins = ", ".join(str(p) for p in query.predicates if len(p.aliases) == 2)
    return streams, joins


def the_query(stage: Stage) -> None:
    """Spark's SQL, with a window behind each stream."""
    sql = stage.job.queries[QUERY].sql.rstrip()
    show.out.print(Padding(Syntax(sql, "sql", background_color="default", word_wrap=True), (0, 2)))


def the_plan(stage: Stage) -> None:
    """What a plan costs in CPU and in memory, operator by operator."""
    from jobs.commands.explain import draw
    from optimizer.explain import as_text

    show.tree(as_text(stage.written))
    draw(
        stage.written,
        stage.pictures / "as-written.svg",
        title=f"{QUERY}, as written",
        budget=stage.task.budget,
    )


def the_search(stage: Stage) -> None:
    """Every strategy on the same query under the same budget."""
    from jobs.commands.comparison import budget_text, front, side_by_side

    show.plain(budget_text(stage.task.budget))
    side_by_side(stage.runs, stage.task.budget)
    front(stage.runs, stage.task.budget)


def the_change(stage: Stage) -> None:
    """What moving from one plan to the other means for the states."""
    from jobs.commands.explain import draw, write
    from optimizer.identity import states
    from optimizer.picture import diff

    best = stage.best.found.chosen
    old, new = states(stage.written.plan.root), states(best.plan.root)
    show.plain(
        f"From {stage.written.plan} to {best.plan}, as {stage.best.found.strategy} found it:"
    )
    rows = [
        *((Text("keep", "green"), _state(node), key) for key, node in new.items() if key in old),
        *((Text("rebuild", "yellow"), _state(n), key) for key, n in new.items() if key not in old),
        *((Text("drop", "red"), _state(node), key) for key, node in old.items() if key not in new),
    ]
    show.table(("", "state of", "identity"), rows)
    draw(
        best,
        stage.pictures / "best.svg",
        title=f"{QUERY}, {stage.best.found.strategy}",
        budget=stage.task.budget,
    )
    picture = diff(stage.written, best, title=f"{QUERY}: what changes")
    write(stage.pictures / "change.svg", picture)


def _state(node: "Node") -> str:
    from optimizer.plan import tree_of

    return str(tree_of(node))


def the_pictures(stage: Stage) -> None:
    """Where to look next."""
    for path in sorted(stage.pictures.glob("*.svg")):
        show.plain(f"  {path}")
    show.note(
        "A job that runs: midstream run docs/examples/orders.yaml --until-caught-up --batches 6, "
        "then midstream verify. While one runs, midstream migrate changes its plan."
    )


Act = Callable[[Stage], None]

ACTS: Sequence[tuple[str, Act]] = (
    ("A job", the_job),
    ("One of its queries", the_query),
    ("The plan as written, and what it costs", the_plan),
    ("The search for a better one", the_search),
    ("What would change", the_change),
    ("Pictures of the plans", the_pictures),
)
