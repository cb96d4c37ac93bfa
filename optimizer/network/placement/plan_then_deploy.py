"""`plan-then-deploy`: the tree with the smallest intermediate results, then its best placement.

The tree does not look at the network; its placement is the best that this tree has, and reads what
is advertised where that is cheaper.
"""

from optimizer.network.exact import Ground, Table, best
from optimizer.network.task import Effort, Placed, Task
from optimizer.network.trees import smallest


def plan_then_deploy(task: Task) -> Placed:
    """One tree, all placements of it."""
    splits, question = smallest(task.question), task.question
    sites = range(len(task.network.names))
    ground = Ground.of(task.network.distances, sites, task.room, task.network.loads)
    wanted = {*splits, *(1 << bit for bit in range(len(question.names)))}
    offers = [o for o in task.adverts if o.mask in wanted and o.price == 0]
    table = Table(ground, question.volumes, question.everything, offers, splits=splits)
    found = best(table, task.sink)
    effort = Effort()
    effort.tried(len(sites) ** len(splits), found.evaluated)
    return Placed(found.tree, effort)
