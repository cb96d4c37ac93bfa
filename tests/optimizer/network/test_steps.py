"""Deployments as steps: nothing is read before it is there, nothing stops while it is read."""

from random import Random

import pytest

from optimizer.network.deployment import Deployed, Kind
from optimizer.network.planning import place, planned
from optimizer.network.steps import Advertise, Connect, Start, Stop, steps
from tests.optimizer.network.nets import random_demand, random_load, random_network, task_of


@pytest.mark.parametrize("seed", range(6))
def test_carried_out_in_their_order(seed: int):
    """Played on what ran, the steps come to what is to run."""
    dice = Random(seed)
    net = random_network(dice, 8)
    load = random_load(dice, net, 5)
    deployed = begun = Deployed().knowing(load)
    for number in range(4):
        demand = random_demand(dice, net, load, f"q{number}", dice.randint(1, 4))
        task = task_of(net, load, demand, deployed)
        deployed = planned("exhaustive", task, place("exhaustive", task)).after
        if number == 2:
            deployed = deployed.without("q0")
        there = {key: set(node.reads) for key, node in begun.nodes.items()}
        for step in steps(begun, deployed):
            key = step.node.key
            if isinstance(step, Start):
                assert key not in there
                there[key] = set()
            elif isinstance(step, Connect):
                assert step.read.source in there
                there[key] = {r for r in there[key] if r.source != step.read.source} | {step.read}
            elif isinstance(step, Stop):
                del there[key]
                assert all(read.source != key for reads in there.values() for read in reads)
            else:
                assert isinstance(step, Advertise)
        assert there == {key: set(node.reads) for key, node in deployed.nodes.items()}
        begun = deployed
    assert steps(deployed, deployed) == ()
    assert any(key.kind is Kind.SINK for key in deployed.nodes)
