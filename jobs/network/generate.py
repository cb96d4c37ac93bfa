"""Made-up networks: transit-stub, as Internet topologies are drawn (GT-ITM, section 4.1).

Transit domains of four sites are far apart.  Each transit site has four stub domains of up to eight
sites, which are near one another.  So 128 sites, as the paper counts them, are the stubs of 132.
"""

from itertools import combinations
from random import Random
from typing import Any

TRANSIT, DOMAINS, STUBS = 4, 4, 8
"""Sites of a transit domain, stub domains of a transit site, sites of a stub domain."""

WITHIN, UPWARD, ACROSS = (1.0, 5.0), (5.0, 15.0), (20.0, 50.0)
"""Latencies: inside a stub domain, from one to its transit site, between transit sites."""

DENSE = {TRANSIT: 0.6, STUBS: 0.42}
"""The share of pairs in a domain that have a link, besides those that hold it together."""

GENERATORS = ("transit-stub",)


def transit_stub(stubs: int, seed: int) -> dict[str, Any]:
    """A network file with that many stub sites."""
    dice = Random(seed)  # noqa: S311  # made up, and nobody's secret
    backbone = -(-stubs // (DOMAINS * STUBS))
    transit = [f"t{i + 1}" for i in range(backbone)]
    links = _backbone(dice, transit)
    sizes = _shares(stubs, backbone * DOMAINS)
    names = [f"s{i + 1}" for i in range(stubs)]
    for number, size in enumerate(size for size in sizes if size):
        start = sum(sizes[:number])
        domain = names[start : start + size]
        links += _domain(dice, domain, WITHIN, DENSE[STUBS])
        links.append(_link(dice, dice.choice(domain), transit[number % backbone], UPWARD))
    return {"sites": transit + names, "links": links}


def _backbone(dice: Random, transit: list[str]) -> list[dict[str, Any]]:
    """Domains of transit sites in a row, two links between neighbours where there are two."""
    domains = [transit[i : i + TRANSIT] for i in range(0, len(transit), TRANSIT)]
    links: list[dict[str, Any]] = []
    for number, domain in enumerate(domains):
        links += _domain(dice, domain, ACROSS, DENSE[TRANSIT])
        if number:
            other = domains[dice.randrange(number)]
            links.append(_link(dice, dice.choice(domain), dice.choice(other), ACROSS))
    return links


def _domain(
    dice: Random, sites: list[str], latency: tuple[float, float], dense: float
) -> list[dict[str, Any]]:
    """Sites held together by a random tree, and more links between them."""
    tree = {(sites[dice.randrange(i)], sites[i]) for i in range(1, len(sites))}
    more = [two for two in combinations(sites, 2) if two not in tree and dice.random() < dense / 2]
    return [_link(dice, one, other, latency) for one, other in [*sorted(tree), *more]]


def _link(dice: Random, one: str, other: str, latency: tuple[float, float]) -> dict[str, Any]:
    return {"between": [one, other], "latency": round(dice.uniform(*latency), 3)}


def _shares(total: int, parts: int) -> list[int]:
    """A number in parts as equal as can be, the larger ones first."""
    return [total // parts + (i < total % parts) for i in range(parts)]
