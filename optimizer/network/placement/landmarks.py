"""`landmarks`: the exact search on a few sites, with every operator then moved to its best site.

It begins with the sites where the query's streams are offered and where its result goes.  The sites
that operators move to are searched as well, until nothing becomes cheaper: a tree that is good on
the landmarks is good on the network, and most sites never need to be looked at together.  Our own.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from optimizer.network.exact import Found, Ground, Table, best
from optimizer.network.offers import Join, Leaf, Tree, border
from optimizer.network.sites import Matrix, NoSiteError
from optimizer.network.task import Effort, Placed, Task

MOST = 10
"""Sites to begin with, at most."""

ROUNDS = 4
"""Searches, at most."""


def landmarks(task: Task) -> Placed:
    """Search few sites, move the operators, search again."""
    effort, chosen = Effort(), first(task)
    found = searched(task, chosen, effort)
    for _ in range(ROUNDS):
        moved = [site for site in destinations(task, found.tree, effort) if site not in chosen]
        if not moved:
            break
        chosen = [*dict.fromkeys([*sites(found.tree), *moved, *chosen])][: MOST + len(moved)]
        again = searched(task, chosen, effort)
        if again.cost >= found.cost * (1 - 1e-12):
            break
        found = again
    return Placed(found.tree, effort)


def first(task: Task) -> list[int]:
    """The sink, and for each set of streams the site that offers it nearest to the sink."""
    away, room = task.network.distances[task.sink], task.room
    nearest: dict[int, int] = {}
    for offer in sorted(task.adverts, key=lambda o: (o.price, float(away[o.site]))):
        nearest.setdefault(offer.mask, offer.site)
    order = sorted(nearest, key=lambda mask: (mask.bit_count(), mask))
    wanted = [task.sink, *(nearest[mask] for mask in order)]
    fit = [site for site in dict.fromkeys(wanted) if room[site] >= 1]
    spare = [int(site) for site in np.argsort(away) if room[site] >= 1][: len(task.question.names)]
    return (fit or spare)[:MOST]


def searched(task: Task, chosen: list[int], effort: Effort) -> Found:
    """The exact search with operators at those sites; at all sites where these have no room."""
    question, network = task.question, task.network
    for candidates in (chosen, range(len(network.names))):
        ground = Ground.of(network.distances, candidates, task.room, network.loads)
        table = Table(ground, question.volumes, question.everything, task.adverts)
        try:
            found = best(table, task.sink)
        except NoSiteError:
            continue
        effort.step(len(question.names), len(ground.candidates), found.evaluated)
        return found
    raise NoSiteError("no site is left that may take the operators")


def sites(tree: Tree) -> list[int]:
    """Where its operators stand."""
    if isinstance(tree, Leaf):
        return []
    return [*sites(tree.left), *sites(tree.right), tree.site]


def destinations(task: Task, tree: Tree, effort: Effort) -> list[int]:
    """Where operators go: those at one site together, then each alone until none moves."""
    found = list(together(task, tree, task.sink, effort))
    for _ in range(ROUNDS):
        moved = settled(task, tree, task.sink, effort)
        if sites(moved) == sites(tree):
            break
        tree = moved
    return [*sites(tree), *found]


def together(task: Task, tree: Tree, goal: int, effort: Effort) -> Iterator[int]:
    """The best site for all operators that stand together, between what they read and who reads."""
    if isinstance(tree, Leaf):
        return
    volumes, distances = task.question.volumes, task.network.distances
    cost, inputs = volumes[tree.mask] * distances[goal], border(tree)
    for one in inputs:
        cost = cost + volumes[one.mask] * distances[one.site]
    effort.tried(len(cost), len(cost))
    yield int(np.where(task.room >= 1, cost, np.inf).argmin())
    for one in inputs:
        yield from together(task, one, tree.site, effort)


def settled(task: Task, tree: Tree, goal: int, effort: Effort) -> Tree:
    """Every operator at the site that is best between what it reads and who reads it."""
    if isinstance(tree, Leaf):
        return tree
    left, right = (settled(task, below, tree.site, effort) for below in (tree.left, tree.right))
    cost = task.question.volumes[tree.mask] * task.network.distances[goal]
    for below in (left, right):
        carried = task.question.volumes[below.mask]
        cost = cost + carried * (task.network.distances[below.site] + task.network.loads)
    cost = np.where(task.room >= 1, cost, np.inf)
    effort.tried(len(cost), len(cost))
    return replace(tree, site=_least(cost, tree), left=left, right=right)


def _least(cost: Matrix, tree: Join) -> int:
    """The cheapest site; the one where it stands if that is as cheap."""
    least = int(cost.argmin())
    return tree.site if cost[tree.site] <= cost[least] else least
