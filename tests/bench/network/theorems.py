"""The paper's theorems over random networks: the share of each bound that is used."""

from random import Random

import numpy as np

from jobs.network.topology import builder
from optimizer.network.counting import beta, space
from optimizer.network.deployment import Deployed
from optimizer.network.hierarchy import Levels
from optimizer.network.load import Question
from optimizer.network.offers import Tree, joins
from optimizer.network.planning import place
from optimizer.network.sites import Matrix
from optimizer.network.task import Task, everywhere
from tests.optimizer.network.nets import random_demand, random_load, random_network


def drawn(seed: int) -> Task:
    """A query on a random network with nothing to reuse."""
    dice = Random(seed)
    net = random_network(dice, dice.randint(3, 40))
    load = random_load(dice, net, 5)
    demand = random_demand(dice, net, load, "q", dice.randint(2, 5))
    levels = Levels(builder(net, dice.randint(2, 8), seed).build(), net)
    return Task(Question(load, demand), Deployed().knowing(load), levels, no_coordinates)


def no_coordinates() -> Matrix:
    """What the strategies of the theorems do not ask for."""
    raise LookupError


def theorem_1(seed: int) -> float:
    """The most of the sum of 2 d_i that an estimate is off, in either direction."""
    levels, most = drawn(seed).levels, 0.0
    for level in range(1, levels.height + 1):
        slack = sum(2 * d for d in levels.diameters[: level - 1])
        off = float(np.abs(levels.network.distances - levels.estimate(level)).max())
        assert off <= slack * (1 + 1e-9) + 1e-9, (seed, level, off, slack)
        most = max(most, off / slack if slack else 0.0)
    return min(most, 1.0)


def theorems_2_and_4(seed: int) -> dict[str, float]:
    """The share of h max_cs^(K-1) / N^(K-1) of the space that each examines."""
    task = drawn(seed)
    k, n = len(task.question.names), len(task.network.names)
    largest = max(len(m) for level in task.levels.members[1:] for m in level.values())
    bound = beta(k, n, largest, task.levels.height) * space(k, n)
    found = {name: place(name, task).effort.examined for name in ("top-down", "bottom-up")}
    for name, examined in found.items():
        assert examined <= bound * (1 + 1e-9), (seed, name, examined, bound)
    return {name: examined / bound for name, examined in found.items()}


def theorem_3(seed: int) -> tuple[float, float]:
    """The share of the bound that top-down is above the optimum: both trees' edges, or its own."""
    task = drawn(seed)
    exact, tree = everywhere(task), place("top-down", task).tree
    above = max(0.0, cost(task, tree) - exact.cost)
    slack = sum(2 * d for d in task.levels.diameters[:-1])
    own = slack * edges(task, tree)
    both = own + slack * edges(task, exact.tree)
    assert above <= both * (1 + 1e-9) + 1e-6, (seed, above, both)
    return (above / both if both else 0.0), (above / own if own else 0.0)


def edges(task: Task, tree: Tree) -> float:
    """The bytes a second of all edges of a tree, the one to the sink included."""
    volumes = task.question.volumes
    inner = sum(volumes[below.mask] for join in joins(tree) for below in (join.left, join.right))
    return inner + volumes[tree.mask]


def cost(task: Task, tree: Tree) -> float:
    """What a placed tree takes of the network."""
    volumes, distances = task.question.volumes, task.network.distances
    inner = sum(
        volumes[below.mask] * distances[below.site, join.site]
        for join in joins(tree)
        for below in (join.left, join.right)
    )
    return float(inner + volumes[tree.mask] * distances[tree.site, task.sink])
