"""Plans as JSON, as control tables and requests hold them."""

from collections.abc import Mapping
from typing import Any, TypeVar

from optimizer.plan.construction import Plan, combine
from optimizer.plan.notation import PLACES, PlanError, checked_place
from optimizer.plan.operators import Combine, Emit, GroupBy, Join, Node, Project, Select, Source
from optimizer.query import (
    Predicate,
    Query,
)

T = TypeVar("T")


def to_json(node: Node) -> dict[str, Any]:
    """The operator as plain data; predicates and outputs are named by their text."""
    inputs = [to_json(below) for below in node.inputs]
    match node:
        case Source(alias, stream):
            return {"op": "source", "alias": alias, "stream": stream.name}
        case Select(_, predicate):
            return {"op": "select", "predicate": str(predicate), "inputs": inputs}
        case Project(_, kept):
            return {"op": "project", "columns": [str(column) for column in kept], "inputs": inputs}
        case Combine():
            keys = [str(column) for column in node.keys]
            return {"op": "combine", "keys": keys, "inputs": inputs}
        case Join(_, predicates, _, orders, place):
            return {
                "op": "join",
                "predicates": [str(predicate) for predicate in predicates],
                "orders": [list(order) for order in orders],
                "place": place,
                "inputs": inputs,
            }
        case GroupBy(_, grouping, place):
            keys = [str(key) for key in grouping.keys]
            aggregates = [str(aggregate) for aggregate in grouping.aggregates]
            return {"op": "group-by", "keys": keys, "aggregates": aggregates, "place": place,
                    "size": grouping.size, "slide": grouping.slide, "inputs": inputs}  # fmt: skip
        case Emit(_, output):
            return {"op": "emit", "columns": [str(named) for named in output], "inputs": inputs}
    raise PlanError(f"unknown operator {type(node).__name__}")


def from_json(query: Query, data: Mapping[str, Any]) -> Plan:
    """The plan of that query which `to_json` or `explain` wrote, and a person may have edited."""
    return Plan(query, _node(query, data.get("root", data)))


def _node(query: Query, data: Any) -> Node:
    op = _field(data, "op", str)
    inputs = tuple(_node(query, below) for below in _field(data, "inputs", list, []))
    match op, inputs:
        case "source", ():
            return _source(query, data)
        case "select", (below,):
            return Select(below, _predicate(query, _field(data, "predicate", str)))
        case "project", (below,):
            names = {str(column): column for column in below.columns}
            columns = _field(data, "columns", list)
            return Project(below, tuple(_known(names, name, "column") for name in columns))
        case "combine", (below,):
            return combine(query, below)
        case "join", (_, _, *_):
            return _join(query, data, inputs)
        case "group-by", (below,) if query.grouping is not None:
            return GroupBy(below, query.grouping, _place_of(data))
        case "emit", (below,):
            return Emit(below, query.output)
    raise PlanError(f"not a plan of this query: {op!r} over {len(inputs)} inputs")


def _source(query: Query, data: Mapping[str, Any]) -> Source:
    alias = _field(data, "alias", str)
    stream = _known(query.streams, alias, "stream")
    if (name := _field(data, "stream", str, stream.name)) != stream.name:
        raise PlanError(f"{alias} is {stream.name}, not {name}")
    return Source(alias, stream)


def _join(query: Query, data: Mapping[str, Any], parts: tuple[Node, ...]) -> Join:
    predicates = tuple(_predicate(query, text) for text in _field(data, "predicates", list))
    orders = _field(data, "orders", list)
    if not all(isinstance(o, list) and all(type(i) is int for i in o) for o in orders):
        raise PlanError(f"the orders of a join must be lists of positions, not {orders}")
    inside = [alias for alias in query.aliases if any(alias in part.aliases for part in parts)]
    bounds = query.bounds.restrict(inside)
    place = _place_of(data)
    return Join(parts, predicates, bounds, tuple(map(tuple, orders)), place)


def _place_of(data: Mapping[str, Any]) -> str:
    """Where it is carried out; `explain` writes what it is without a place, too."""
    place = checked_place(_field(data, "place", str, ""))
    return "" if place == PLACES[0] else place


def _predicate(query: Query, text: Any) -> Predicate:
    return _known({str(predicate): predicate for predicate in query.predicates}, text, "predicate")


def _known(names: Mapping[str, T], name: Any, kind: str) -> T:
    if not isinstance(name, str) or name not in names:
        raise PlanError(f"the plan speaks of {kind} {name}, which is not there")
    return names[name]


def _field(data: Any, name: str, kind: type[T], default: T | None = None) -> T:
    """A field of an operator, of the kind that it must be."""
    if not isinstance(data, Mapping):
        raise PlanError(f"an operator must be an object with its `op`, not {data!r}")
    value = data.get(name, default)
    if not isinstance(value, kind):
        raise PlanError(f"{data.get('op', 'an operator')} needs {name} as a {kind.__name__}")
    return value
