"""`in-network`: the tree by sizes, its operators from zone to zone (Ahmad and Cetintemel).

The lowest clusters are the zones.  Operators are taken from the leaves upwards: each goes to the
zone whose coordinator is best between its inputs and the sink, and there to the best site.
"""

import numpy as np

from optimizer.network.offers import Join, Leaf, Tree
from optimizer.network.sites import Indices, Matrix, NoSiteError, rows
from optimizer.network.task import Effort, Placed, Task
from optimizer.network.trees import phased


def in_network(task: Task) -> Placed:
    """Place the operators of one tree one after another."""
    fixed, room, effort = phased(task), task.room.copy(), Effort()
    trees: dict[int, Tree] = {mask: Leaf(offer) for mask, offer in fixed.read.items()}
    for mask in fixed.joins:
        left, right = (trees[part] for part in fixed.inputs(mask))
        site = _greedy(task, mask, (left, right), room, effort)
        room[site] -= 1
        trees[mask] = Join(mask, site, left, right)
    return Placed(trees[task.question.everything], effort)


def _greedy(task: Task, mask: int, inputs: tuple[Tree, Tree], room: Matrix, effort: Effort) -> int:
    """The zone, then the site in it, with the least to read and to send on to the sink."""
    distances, volumes = task.network.distances, task.question.volumes
    cost = volumes[mask] * distances[task.sink]
    for tree in inputs:
        cost = cost + volumes[tree.mask] * (distances[tree.site] + task.network.loads)
    zones = task.levels.members[1]
    heads = [head for head, sites in zones.items() if (room[sites] >= 1).any()]
    if not heads:
        raise NoSiteError("no site is left that may take the operators")
    zone: Indices = zones[heads[int(cost[rows(heads)].argmin())]]
    effort.tried(len(heads) + len(zone), len(heads) + len(zone))
    return int(zone[np.where(room[zone] >= 1, cost[zone], np.inf).argmin()])
