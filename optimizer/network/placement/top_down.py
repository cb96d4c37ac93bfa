"""`top-down`: planned in the highest cluster, then what each member got in its own (3.2).

At each level all trees and placements within the cluster are considered, with everything advertised
below it.  An operator's inputs from outside stand at the cluster's coordinator.
"""

from optimizer.network.task import Placed, Task
from optimizer.network.views import Clusters


def top_down(task: Task) -> Placed:
    """Plan the whole query at the top, and pass its views down."""
    clusters, height = Clusters(task), task.levels.height
    clusters.effort.messages = height - 1
    top = int(task.levels.stands_for[height + 1][task.sink])
    tree = clusters.descend(height, top, task.question.everything, [], task.sink)
    return Placed(tree, clusters.effort)
