"""The exact search against every tree and placement, written out."""

from random import Random

import pytest

from optimizer.network.deployment import Deployed
from optimizer.network.placement import NETWORK_PLACEMENTS
from optimizer.network.planning import place, planned
from optimizer.network.sites import NoSiteError, Site
from tests.optimizer.network.nets import least, random_demand, random_load, random_network, task_of


@pytest.mark.parametrize("seed", range(20))
def test_least_of_all_trees_and_placements_with_reuse(seed: int):
    """Two queries run already, with other filters and columns: some of theirs must be widened."""
    dice = Random(seed)
    net = random_network(dice, dice.randint(2, 5))
    load = random_load(dice, net, 4)
    deployed = Deployed().knowing(load)
    for name in ("first", "second", "third"):
        k = dice.randint(1, 3 if len(net.names) > 4 else 4)
        task = task_of(net, load, random_demand(dice, net, load, name, k), deployed)
        done = planned("exhaustive", task, place("exhaustive", task))
        assert done.usage == pytest.approx(least(task))
        assert done.optimum == pytest.approx(least(task))
        deployed = done.after


@pytest.mark.parametrize("seed", range(12))
def test_least_of_all_that_respect_capacities(seed: int):
    dice = Random(seed)
    names = [f"n{i}" for i in range(4)]
    sites = {name: Site(capacity=dice.choice([0, 1, 1, 2])) for name in names}
    net = random_network(dice, 4, sites)
    load = random_load(dice, net, 4)
    task = task_of(net, load, random_demand(dice, net, load, "q", 4))
    if sum(site.capacity for site in sites.values()) < 3:
        with pytest.raises(NoSiteError):
            place("exhaustive", task)
        return
    done = planned("exhaustive", task, place("exhaustive", task))
    assert done.usage == pytest.approx(least(task))
    assert all(done.after.used()[n] <= sites[n].capacity for n in done.after.used())


@pytest.mark.parametrize("strategy", NETWORK_PLACEMENTS)
def test_no_strategy_is_better_and_usage_is_what_is_added(strategy: str):
    for seed in range(5):
        dice = Random(seed)
        net = random_network(dice, dice.randint(3, 20))
        load = random_load(dice, net, 5)
        deployed = Deployed().knowing(load)
        for number in range(6):
            demand = random_demand(dice, net, load, f"q{number}", dice.randint(1, 5))
            task = task_of(net, load, demand, deployed)
            done = planned(strategy, task, place(strategy, task))
            assert done.usage >= done.optimum * (1 - 1e-9)
            added = done.after.usage(load, net) - deployed.usage(load, net)
            assert done.usage == pytest.approx(added)
            deployed = done.after
