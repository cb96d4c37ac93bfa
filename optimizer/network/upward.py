"""From the sink's cluster up: what is local is joined there, the rest asked for above (3.3)."""

from collections.abc import Callable
from dataclasses import dataclass

from optimizer.network.exact import Table
from optimizer.network.load import Question
from optimizer.network.offers import Offer, Tree
from optimizer.network.sites import NoSiteError
from optimizer.network.task import Placed, Task, Told
from optimizer.network.views import Clusters


@dataclass(frozen=True, eq=False)
class Stage:
    """What a level knows of a query before it decides whether to split it."""

    task: Task
    table: Table
    level: int
    coordinator: int
    local: tuple[int, ...]
    """The views that the cluster can join by itself."""
    remote: int
    """The streams that are not within the cluster."""


Decision = Callable[[Stage], tuple[bool, Told]]
"""Whether to join what is local now, and what to say of it."""


def climb(task: Task, decide: Decision) -> Placed:
    """Plan the query on its way up, until all its streams are found."""
    clusters = Clusters(task)
    held: list[Offer] = []
    everything = task.question.everything
    for level in range(1, task.levels.height + 1):
        coordinator = int(task.levels.stands_for[level + 1][task.sink])
        table = clusters.table(level, coordinator, everything, held)
        covered = set(table.covered())
        if everything in covered:
            tree = clusters.descend(level, coordinator, everything, held, task.sink)
            return Placed(tree, clusters.effort)
        stage = stage_of(task, table, level, coordinator, covered, held)
        splits, told = decide(stage)
        if splits:
            for view in stage.local:
                held = with_view(clusters, stage, view, held)
        clusters.effort.messages += 1
        clusters.effort.levels.add(level)
        name = task.network.names[coordinator]
        views = [task.question.members(view) for view in stage.local]
        clusters.effort.steps.append(
            {"level": level, "coordinator": name, "local": views, "split": splits, **told}
        )
    raise NoSiteError("no site is left that may take the operators")


def stage_of(
    task: Task, table: Table, level: int, coordinator: int, covered: set[int], held: list[Offer]
) -> Stage:
    """What is local is joined as far as predicates connect it, never to a cartesian product."""
    local = local_views(task.question, table, covered, coordinator)
    reached = 0
    for mask in covered:
        reached |= mask
    remote = task.question.everything & ~reached
    fresh = [view for view in local if view not in {offer.mask for offer in held}]
    return Stage(task, table, level, coordinator, tuple(fresh), remote)


def local_views(question: Question, table: Table, covered: set[int], target: int) -> list[int]:
    """Sets of at least two streams, each connected, none in another: the largest first."""
    connected = [m for m in covered if m.bit_count() > 1 and question.components(m) == [m]]
    order = sorted(connected, key=lambda m: (-m.bit_count(), table.cost(m, target), m))
    found: list[int] = []
    for mask in order:
        if not any(mask & other for other in found):
            found.append(mask)
    return found


def with_view(clusters: Clusters, stage: Stage, view: int, held: list[Offer]) -> list[Offer]:
    """Deploy a view within the cluster; its result is advertised at the coordinator."""
    tree: Tree = clusters.descend(stage.level, stage.coordinator, view, held, stage.coordinator)
    kept = [offer for offer in held if not offer.mask & view]
    return [*kept, Offer(view, tree.site, tree)]
