"""The rates of a job's query: windows and selects, streams without an end, one server."""

from math import prod

from optimizer.cost.rate.judge import Judge
from optimizer.cost.rate.load import Feed, Filter, Match, RateLoad, UnitCosts
from optimizer.cost.rate.objective import Objective
from optimizer.cost.rate.tree import Servers
from optimizer.query import Query
from optimizer.workload import Method, Workload


def judge(query: Query, workload: Workload, objective: Objective) -> Judge:
    """For the searches by rates: what they find is priced and compared as all other plans are."""
    feeds = {alias: _feed(query, workload, alias) for alias in query.aliases}
    joins = {edge: Match(workload.joins[edge]) for edge in query.graph.edges}
    load = RateLoad(feeds, joins, _costs(workload), query.bounds)
    return Judge(load, objective, Servers.ONE)


def _feed(query: Query, workload: Workload, alias: str) -> Feed:
    passing = prod(workload.select(query, predicate) for predicate in query.selects(alias))
    selects = (Filter("WHERE", passing, of=alias),) if query.selects(alias) else ()
    return Feed(workload.streams[alias].rate, selects=selects)


def _costs(workload: Workload) -> UnitCosts:
    """Seconds to keep a tuple and to probe with it, as near as each method comes to Table 3."""
    costs = workload.unit_costs
    match workload.method:
        case Method.NESTED_LOOP:
            return UnitCosts(move=costs.insert + costs.delete, comp=costs.join, nested=True)
        case Method.BATCH:
            return UnitCosts(move=costs.write, probe=costs.probe + costs.match)
        case _:
            return UnitCosts(move=costs.insert + costs.delete, probe=costs.join)
