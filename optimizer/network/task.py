"""What a strategy gets, and what it returns."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from optimizer.network.counting import orders
from optimizer.network.deployment import Deployed
from optimizer.network.exact import Found, Ground, Table, best
from optimizer.network.hierarchy import Levels
from optimizer.network.load import Question
from optimizer.network.offers import Offer, Tree, adverts
from optimizer.network.sites import Matrix, Network

Told = dict[str, Any]
"""What is said of one step of planning."""


@dataclass(frozen=True, eq=False)
class Task:
    """A query to be planned and placed, and everything known about where."""

    question: Question
    deployed: Deployed
    levels: Levels
    coordinates: Callable[[], Matrix]
    """Sites in a space in which they are as far apart as on the network, computed when asked."""

    @property
    def network(self) -> Network:
        return self.levels.network

    @cached_property
    def sink(self) -> int:
        """The row of the site where the result goes."""
        return self.network.index[self.question.demand.sink]

    @cached_property
    def adverts(self) -> list[Offer]:
        """All that the query may read."""
        return adverts(self.question, self.deployed, self.network)

    @cached_property
    def room(self) -> Matrix:
        """How many operators each site still takes."""
        return self.network.room(self.deployed.used())


@dataclass
class Effort:
    """What a search did: counted as the paper counts, and as it is."""

    examined: int = 0
    """Trees times placements that its exhaustive steps stand for."""
    evaluated: int = 0
    """Costs that were really compared."""
    messages: int = 0
    """Sent between coordinators while planning."""
    levels: set[int] = field(default_factory=set)
    steps: list[Told] = field(default_factory=list)

    def step(self, inputs: int, sites: int, evaluated: int, **told: Any) -> None:
        """Count an exhaustive step over trees of so many inputs at so many sites."""
        examined = orders(inputs) * sites ** (inputs - 1)
        self.tried(examined, evaluated)
        self.steps.append({**told, "inputs": inputs, "sites": sites, "examined": examined})

    def tried(self, examined: int, evaluated: int) -> None:
        """Count placements and comparisons."""
        self.examined += examined
        self.evaluated += evaluated


@dataclass(frozen=True)
class Placed:
    """A tree with its operators at sites."""

    tree: Tree
    effort: Effort


def everywhere(task: Task) -> Found:
    """The best tree and placement of all, whoever looks for it."""
    sites = range(len(task.network.names))
    ground = Ground.of(task.network.distances, sites, task.room, task.network.loads)
    question = task.question
    return best(Table(ground, question.volumes, question.everything, task.adverts), task.sink)
