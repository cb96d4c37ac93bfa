"""Strategies that plan and place a query over a network.

A strategy is one file and one line of `NETWORK_PLACEMENTS`.
"""

from collections.abc import Callable, Mapping

from optimizer.network.placement.bottom_up import bottom_up
from optimizer.network.placement.exhaustive import exhaustive
from optimizer.network.placement.in_network import in_network
from optimizer.network.placement.landmarks import landmarks
from optimizer.network.placement.npc import npc
from optimizer.network.placement.plan_then_deploy import plan_then_deploy
from optimizer.network.placement.relaxation import relaxation
from optimizer.network.placement.top_down import top_down
from optimizer.network.task import Placed, Task

NetworkPlacement = Callable[[Task], Placed]

NETWORK_PLACEMENTS: Mapping[str, NetworkPlacement] = {
    "exhaustive": exhaustive,
    "top-down": top_down,
    "bottom-up": bottom_up,
    "npc": npc,
    "landmarks": landmarks,
    "plan-then-deploy": plan_then_deploy,
    "relaxation": relaxation,
    "in-network": in_network,
}
