"""In which order new tuples of each input of a join probe the other inputs (Zhu 5.1).

A probe step turns each tuple of the flow into T = S * f tuples, S being the state probed and f its
selectivity against what was joined so far, at a cost C = match * T + pair * S + probe; a scan of
the state costs the same wherever the step stands.  So the cost of a sequence obeys, under every
method, C(S1 S2) = C(S1) + T(S1) C(S2): the adjacent sequence interchange that IK needs.

Few inputs are ordered exactly, by dynamic programming over subsets: optimal with cycles and
cartesian steps too.  For more, the cheapest of three ways counts: a beam through the sets, and IK
along a minimum spanning tree, of the predicates alone and of all pairs (5.1.2, 5.1.3); where
windows differ by pair, improved step by step.  An edge of
least weight is not always one of the best sequence, so cartesian edges can also do harm, which the
paper denies; and a tree leaves out the other predicates of a cycle.
"""

from collections.abc import Callable, Iterator, Sequence
from math import copysign, inf
from operator import itemgetter

from optimizer.cost.dual import Cost, Steps, join_cost, probe_cost, worked
from optimizer.estimate import Estimate, Estimator
from optimizer.plan import Order

EXACT = 12
"""Up to so many inputs all orders are considered; twice the time for each further one."""

FEW = 8
"""Up to so many lists are as fast as arrays."""

PAIRED = 10
"""Up to so many inputs all orders are considered where windows differ by pair."""

FAR = 12
"""Up to so many inputs a probe is tried everywhere else; of more, one place earlier or later."""

LITTLE = 1e-9
"""A share of the cost that is not worth another round."""

Links = Sequence[Sequence[int]]
"""A tree over the inputs of a join: the neighbours of each."""


def best_orders(parts: Sequence[Estimate], estimator: Estimator) -> tuple[Order, ...]:
    """For each input, the cheapest way that we know through the states of the others."""
    return best_join(parts, estimator)[0]


def best_join(parts: Sequence[Estimate], estimator: Estimator) -> tuple[tuple[Order, ...], Cost]:
    """These orders, and what the join then costs."""
    alike = estimator.volumes.windows is not None
    if len(parts) <= (EXACT if alike else PAIRED):
        orders = exact_orders(parts, estimator)
        return orders, join_cost(parts, orders, estimator)
    steps = Steps.of(parts, estimator)
    ways = good_orders(steps)
    if not alike:
        orders = tuple(
            _improved(start, [way[start] for way in ways], parts, estimator)
            for start in range(len(parts))
        )
        return orders, join_cost(parts, orders, estimator)
    chosen = [
        min((steps.cost(start, way[start]), way[start]) for way in ways)
        for start in range(len(parts))
    ]
    orders = tuple(order for _, order in chosen)
    work = sum(rate * cost for rate, (cost, _) in zip(steps.rates, chosen, strict=True))
    return orders, worked(parts, work, estimator)


def _improved(
    start: int, ways: Sequence[Order], parts: Sequence[Estimate], estimator: Estimator
) -> Order:
    """The best way, changed as long as probing another input earlier or later is cheaper.

    Steps only estimate what windows that differ by pair admit: here the cost itself counts.
    """

    def cost(order: Order) -> float:
        return probe_cost(parts[start], [parts[other] for other in order], estimator)

    least, best = min((cost(order), order) for order in set(ways))
    for _ in parts:
        before = least
        for order in list(_moved(best)):
            if (found := cost(order)) < least:
                least, best = found, order
        if least >= before * (1 - LITTLE):
            break
    return best


def _moved(order: Order) -> Iterator[Order]:
    """Every order in which one input is probed at another time."""
    far = len(order) if len(order) < FAR else 1
    for old, other in enumerate(order):
        rest = order[:old] + order[old + 1 :]
        for new in range(max(0, old - far), min(len(order), old + far + 1)):
            if new != old:
                yield (*rest[:new], other, *rest[new:])


def good_orders(steps: Steps) -> list[tuple[Order, ...]]:
    """Ways for each input that are found without looking at all."""
    from optimizer.lattice import beam

    trees = {spanning_tree(steps, cartesian=cartesian) for cartesian in (False, True)}
    return [*(ik_orders(tree, steps) for tree in sorted(trees)), beam(steps)]


# --- exactly -------------------------------------------------------------------------------------


def exact_orders(parts: Sequence[Estimate], estimator: Estimator) -> tuple[Order, ...]:
    """The optimal orders, cartesian steps included.

    Under CQL's windows the flow from input X that has reached a set of inputs is its size times
    a constant of X, so that one table of costs still to come serves every input.
    """
    n = len(parts)
    if n == 2:
        return ((1,), (0,))
    steps = Steps.of(parts, estimator)
    if estimator.volumes.windows is not None:
        if n > FEW:
            from optimizer.lattice import exact

            return exact(steps)
        following = _cheapest(_sizes(steps), steps)
        return tuple(_follow(start, following, n) for start in range(n))
    factors = _factors(parts, steps)
    return tuple(
        _follow(start, _cheapest(_flows(start, parts, factors, estimator), steps), n)
        for start in range(n)
    )


def _cheapest(flows: Sequence[float], steps: Steps) -> list[int]:
    """For each set of inputs, the one to probe next; `flows` is what has reached each set."""
    n = len(steps.sizes)
    everything = (1 << n) - 1
    inputs = [(other, 1 << other, toll) for other, toll in enumerate(steps.tolls)]
    still = [0.0] * (everything + 1)
    following = [0] * (everything + 1)
    match = steps.match
    for reached in range(everything - 1, 0, -1):
        flow, least, choice = flows[reached], inf, -1
        for other, bit, toll in inputs:
            if not reached & bit:
                after = reached | bit
                cost = match * flows[after] + flow * toll + still[after]
                if cost < least or choice < 0:
                    least, choice = cost, other
        still[reached], following[reached] = least, choice
    return following


def _follow(start: int, following: Sequence[int], n: int) -> Order:
    reached, order = 1 << start, []
    for _ in range(n - 1):
        order.append(following[reached])
        reached |= 1 << order[-1]
    return tuple(order)


def _sizes(steps: Steps) -> Sequence[float]:
    """Tuples alive of each set of inputs, were it kept as a state."""
    return steps.lifted(_products(steps.sizes, steps.partners))


def _factors(parts: Sequence[Estimate], steps: Steps) -> Sequence[float]:
    return steps.lifted(_products([part.factor for part in parts], steps.partners))


def _products(terms: Sequence[float], partners: Sequence[dict[int, float]]) -> list[float]:
    """Of the terms of each set, and of the selectivities inside it."""
    products = [1.0]
    for newest, term in enumerate(terms):
        crossing = [term]
        for other in range(newest):
            selectivity = partners[newest].get(other, 1.0)
            crossing += [so_far * selectivity for so_far in crossing]
        products += [inside * across for inside, across in zip(products, crossing, strict=True)]
    return products


def _flows(
    start: int, parts: Sequence[Estimate], factors: Sequence[float], estimator: Estimator
) -> list[float]:
    """What has reached each set that contains the start, under bounds of any kind."""
    masks = [0]
    for part in parts:
        masks += [mask | part.mask for mask in masks]
    newest = parts[start].mask
    return [
        factor * estimator.volumes.arrival(mask, newest) if mask & newest else 0.0
        for factor, mask in zip(factors, masks, strict=True)
    ]


# --- along a tree --------------------------------------------------------------------------------


Run = tuple[float, float, float, tuple[int, ...]]
"""Inputs probed one right after the other, IK's module: its rank, T, C, and who they are."""


def ik_orders(tree: Links, steps: Steps) -> tuple[Order, ...]:
    """For each input, the best order in which every input follows its parent in the tree (5.1.1).

    What lies behind an edge looks the same from every root, so each branch is normalised once for
    all inputs, not once for each.
    """
    branches: dict[tuple[int, int], list[Run]] = {}

    def behind(parent: int, node: int) -> list[Run]:
        if (parent, node) not in branches:
            branches[parent, node] = _normalised(_step(parent, node, steps), below(node, parent))
        return branches[parent, node]

    def below(node: int, parent: int) -> list[Run]:
        runs = [run for child in tree[node] if child != parent for run in behind(node, child)]
        runs.sort(key=_rank)
        return runs

    return tuple(
        tuple(member for *_, members in below(root, -1) for member in members)
        for root in range(len(tree))
    )


_rank: Callable[[Run], float] = itemgetter(0)


def _run(yielded: float, cost: float, members: tuple[int, ...]) -> Run:
    """With its rank (T - 1) / C; what costs nothing goes first if it thins the flow."""
    gain = yielded - 1.0
    if cost > 0:
        return gain / cost, yielded, cost, members
    return copysign(inf, gain) if gain else 0.0, yielded, cost, members


def _step(parent: int, node: int, steps: Steps) -> Run:
    yielded = steps.sizes[node] * steps.partners[node].get(parent, 1.0)
    return _run(yielded, steps.match * yielded + steps.tolls[node], (node,))


def _normalised(head: Run, rest: list[Run]) -> list[Run]:
    """Ascending ranks: whatever would like to come before its parent is tied to it."""
    tied = 0
    while tied < len(rest) and rest[tied][0] < head[0]:
        _, yielded, cost, members = head
        _, more_yielded, more_cost, more = rest[tied]
        head = _run(yielded * more_yielded, cost + yielded * more_cost, members + more)
        tied += 1
    return [head, *rest[tied:]]


def spanning_tree(steps: Steps, *, cartesian: bool) -> tuple[tuple[int, ...], ...]:
    """Minimal by the pairs' output rates (5.1.2), which is rate * rate * selectivity * window.

    Without `cartesian` edges, these only tie together what no predicate connects.
    """
    n = len(steps.sizes)
    links: list[list[int]] = [[] for _ in range(n)]
    nearest = {node: (_weight(0, node, steps, cartesian=cartesian), 0) for node in range(1, n)}
    while nearest:
        node = min(nearest, key=nearest.__getitem__)
        _, parent = nearest.pop(node)
        links[parent].append(node)
        links[node].append(parent)
        for other in nearest:
            weight = _weight(node, other, steps, cartesian=cartesian)
            if weight < nearest[other][0]:
                nearest[other] = (weight, node)
    return tuple(map(tuple, links))


def _weight(one: int, other: int, steps: Steps, *, cartesian: bool) -> tuple[bool, float]:
    selectivity = steps.partners[one].get(other)
    pairs = steps.rates[one] * steps.sizes[other] + steps.rates[other] * steps.sizes[one]
    if selectivity is None:
        return not cartesian, pairs
    return False, pairs * selectivity
