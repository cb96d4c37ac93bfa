"""`exhaustive`: the exact least, over all bushy trees, all placements and everything advertised.

It is found by dynamic programming over (set of streams, site), and stands for as many plans as
Lemma 1 counts.  Cartesian products are considered, too.
"""

from optimizer.network.task import Effort, Placed, Task, everywhere


def exhaustive(task: Task) -> Placed:
    """The best of all trees and placements."""
    found = everywhere(task)
    effort = Effort(levels={task.levels.height})
    effort.step(len(task.question.names), len(task.network.names), found.evaluated)
    return Placed(found.tree, effort)
