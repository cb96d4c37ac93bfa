"""`npc`: bottom-up, but what is local is joined only where that seems cheaper than to wait (3.4).

The net present cost of deciding now is what the local join costs, and what the remote streams may
cost on their way here; the cost of waiting is what the result may cost on its way.
"""

import numpy as np

from optimizer.network.task import Placed, Task, Told
from optimizer.network.upward import Stage, climb


def npc(task: Task) -> Placed:
    """Join what is local where Omega is not below Gamma."""
    return climb(task, decide)


def decide(stage: Stage) -> tuple[bool, Told]:
    """Compare both costs at a level."""
    volumes = stage.task.question.volumes
    present = sum(stage.table.cost(view, stage.coordinator) for view in stage.local)
    gamma = present + remote_volume(stage) * future(stage)
    omega = volumes[stage.task.question.everything] * future(stage)
    return omega >= gamma, {"gamma": gamma, "omega": omega}


def remote_volume(stage: Stage) -> float:
    """Of the remote streams' join; of their sum where no predicate connects them."""
    question = stage.task.question
    return sum(question.volumes[part] for part in question.components(stage.remote))


def future(stage: Stage) -> float:
    """The distance that a stream found above is expected to travel: the sum of p_i d_i."""
    levels = stage.task.levels
    seen = [visible(stage, level) for level in range(stage.level, levels.height + 1)]
    unseen = seen[-1] - seen[0]
    if unseen <= 0:
        return 0.0
    chances = np.diff(seen) / unseen
    return float((chances * np.array(levels.diameters[stage.level :])).sum())


def visible(stage: Stage, level: int) -> int:
    """How many sites lie below the sink's cluster of a level."""
    above = stage.task.levels.stands_for[level + 1]
    return int((above == above[stage.task.sink]).sum())
