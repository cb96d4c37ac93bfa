"""Plans: immutable trees of operators that compute a query, any mix of binary and n-ary joins.

An invalid plan cannot be built, and equal subtrees are equal.  The short notation `((f b) c)` and
the tree it stands for (`Leaf`, `Branch`) say how the inputs are joined; `build` fills in the rest.
"""

from optimizer.plan.construction import (
    Plan,
    applied_by,
    as_written,
    build,
    combine,
    input_of,
    join_of,
    still_needed,
    tree_of,
)
from optimizer.plan.notation import PLACES, Branch, Leaf, Order, PlanError, Tree, leaves, parse
from optimizer.plan.operators import (
    WEIGHT,
    Combine,
    Emit,
    GroupBy,
    Join,
    Node,
    Project,
    Select,
    Source,
    Unary,
    walk,
)
from optimizer.plan.serialization import from_json, to_json

__all__ = [
    "PLACES",
    "WEIGHT",
    "Branch",
    "Combine",
    "Emit",
    "GroupBy",
    "Join",
    "Leaf",
    "Node",
    "Order",
    "Plan",
    "PlanError",
    "Project",
    "Select",
    "Source",
    "Tree",
    "Unary",
    "applied_by",
    "as_written",
    "build",
    "combine",
    "from_json",
    "input_of",
    "join_of",
    "leaves",
    "parse",
    "still_needed",
    "to_json",
    "tree_of",
    "walk",
]
