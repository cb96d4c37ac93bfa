"""`relaxation`: the tree by sizes, its operators at rest between springs (Pietzuch et al.).

Sites have coordinates in a space in which they are as far apart as on the network.  Operators are
drawn by the streams that they read and write, each a spring as strong as it carries bytes, and go
to the site that is nearest to where they come to rest.
"""

import numpy as np

from optimizer.network.offers import Join, Leaf, Tree
from optimizer.network.sites import NoSiteError
from optimizer.network.task import Effort, Placed, Task
from optimizer.network.trees import Fixed, phased, springs


def relaxation(task: Task) -> Placed:
    """Let the operators of one tree come to rest."""
    fixed, room, coordinates = phased(task), task.room.copy(), task.coordinates()
    sites: dict[int, int] = {}
    for mask, place in springs(task, fixed).items():
        away = ((coordinates - place) ** 2).sum(axis=1)
        away[room < 1] = np.inf
        sites[mask] = int(away.argmin())
        if not room[sites[mask]] >= 1:
            raise NoSiteError("no site is left that may take the operators")
        room[sites[mask]] -= 1
    effort = Effort()
    effort.tried(len(sites) * len(room), len(sites) * len(room))
    return Placed(_tree(fixed, sites, task.question.everything), effort)


def _tree(fixed: Fixed, sites: dict[int, int], mask: int) -> Tree:
    if mask in fixed.read:
        return Leaf(fixed.read[mask])
    left, right = (_tree(fixed, sites, part) for part in fixed.inputs(mask))
    return Join(mask, sites[mask], left, right)
