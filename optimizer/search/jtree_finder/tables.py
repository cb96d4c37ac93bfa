"""What jtree-finder's inner loops read: size, rate and upkeep of every subset, in arrays."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optimizer.cost.dual import keep_cost
from optimizer.estimate import Estimate, bits
from optimizer.memo import Memo, Part

Floats = NDArray[np.float64]


class Tables(NamedTuple):
    """Indexed by subset, as a bit mask; memory is in the unit of the budget."""

    full: int
    alike: bool
    """Whether a state holds as much for whoever probes it (CQL's windows, or one for all)."""
    size: Floats
    """Tuples alive."""
    rate: Floats
    """New tuples per second."""
    pace: Floats
    """New tuples per tuple alive, where windows are alike: a constant of each input."""
    factor: Floats
    """Product of the rates and selectivities inside."""
    arrival: Floats
    """By subset and newest input: combinations that it completes, where windows are not alike."""
    toll: Floats
    """CPU of probing this state, per tuple that does, whatever it yields."""
    keep: Floats
    """CPU of keeping this state."""
    memory: Floats
    """Memory of keeping this state."""
    probing: Floats
    """CPU that this input's own probes, and scans of this state, need at least."""
    leaf_cpu: Floats
    """CPU of combining this input, before any join."""
    rest_cpu: Floats
    """CPU that these streams need at least, wherever they are joined."""
    rest_memory: Floats
    """Memory that these streams need at least."""
    match: float
    scan: float
    result: float
    """CPU that the last probe step needs at least for each tuple that a join puts out."""
    budget_cpu: float
    """CPU and memory that the joins may take, a rounding error more."""
    budget_memory: float


def tables(memo: Memo, leaves: Sequence[Part]) -> Tables | None:
    """Those of joining these inputs; none if time runs out."""
    estimates = _estimates(memo, leaves)
    windows = memo.estimator.volumes.windows
    arrival = np.zeros((1, 1)) if windows else _arrivals(memo, len(leaves))
    if estimates is None or arrival is None:
        return None
    rates = memo.workload.rates
    keeps = [keep_cost(estimate, memo.estimator) for estimate in estimates]
    size, rate = _array(e.held for e in estimates), _array(e.rate for e in estimates)
    keep, memory = _array(k.cpu for k in keeps), _array(k.memory(memo.budget) for k in keeps)
    probing = rates.probe * rate + rates.scan * size
    singles = [1 << i for i in range(len(leaves))]
    leaf_cpu = np.zeros(len(size))
    leaf_cpu[singles] = [leaf.cost.cpu for leaf in leaves]
    top = memo.top(estimates[-1])
    return Tables(
        full=len(size) - 1,
        alike=windows is not None,
        size=size,
        rate=rate,
        pace=_sums([1 / window for window in windows or ()]),
        factor=_array(e.factor for e in estimates),
        arrival=arrival,
        toll=rates.pair * size + rates.probe,
        keep=keep,
        memory=memory,
        probing=probing,
        leaf_cpu=leaf_cpu,
        rest_cpu=_sums((keep + probing + leaf_cpu)[singles]),
        rest_memory=_sums(memory[singles]),
        match=rates.match,
        scan=rates.scan,
        result=rates.match + (rates.pair if windows else 0.0),
        budget_cpu=(memo.budget.cpu - top.cpu) * (1 + 1e-9),
        budget_memory=(memo.budget.memory - top.memory(memo.budget)) * (1 + 1e-9),
    )


def _estimates(memo: Memo, leaves: Sequence[Part]) -> list[Estimate] | None:
    """What the join of each subset puts out, the empty one first."""
    combined = sum(leaf.combined for leaf in leaves)
    found = [Estimate(0, 1.0, 0.0, 0.0, 0.0)]
    for leaf in leaves:
        for mask in range(len(found)):
            below = found[mask]
            if not mask:
                found.append(leaf.estimate)
                continue
            if mask % 1024 == 0 and memo.out_of_time():
                return None
            whole = below.mask | leaf.mask
            width = memo.width(whole, combined & whole)
            found.append(memo.estimator.joined((below, leaf.estimate), width))
    return found


def _arrivals(memo: Memo, n: int) -> Floats | None:
    found = np.zeros((1 << n, n))
    for mask in range(1, 1 << n):
        if memo.out_of_time():
            return None
        for newest in bits(mask):
            found[mask, newest] = memo.estimator.volumes.arrival(mask, 1 << newest)
    return found


def _sums(terms: Iterable[float]) -> Floats:
    """By subset."""
    sums = np.zeros(1)
    for term in terms:
        sums = np.concatenate((sums, sums + term))
    return sums


def _array(values: Iterable[float]) -> Floats:
    return np.fromiter(values, dtype=np.float64)
