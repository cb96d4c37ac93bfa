"""Plans: the notation both ways, what cannot be built, and JSON that people edit."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimizer.cost.dual import price
from optimizer.estimate import Estimator
from optimizer.explain import as_json
from optimizer.plan import (
    Branch,
    Combine,
    Emit,
    GroupBy,
    Join,
    Leaf,
    Node,
    Plan,
    PlanError,
    Project,
    Select,
    Source,
    Unary,
    as_written,
    build,
    from_json,
    leaves,
    parse,
    to_json,
    walk,
)
from optimizer.query import Query
from optimizer.workload import Workload
from tests.optimizer.builders import (
    counts,
    joined,
    names_of,
    random_tree,
    ref,
    stream,
    total,
    trees,
    where,
    window,
)

# --- the notation --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("f", Leaf("f")),
        ("[f]", Leaf("f", combined=True)),
        ("(f b)", Branch((Leaf("f"), Leaf("b")))),
        ("((f b) c)", Branch((Branch((Leaf("f"), Leaf("b"))), Leaf("c")))),
        ("(f b c)", Branch((Leaf("f"), Leaf("b"), Leaf("c")))),
        ("((f b)@db [c])", Branch((Branch((Leaf("f"), Leaf("b")), place="db"), Leaf("c", True)))),
    ],
)
def test_notation_both_ways(text, tree):
    assert parse(text) == tree
    assert str(tree) == text


@pytest.mark.parametrize("text", ["  ( f  b )", "(f b)\n", "(f\tb)"])
def test_white_space_does_not_matter(text):
    assert str(parse(text)) == "(f b)"


@given(st.integers(2, 12), st.data())
def test_every_tree_is_read_as_it_is_written(count, data):
    tree = data.draw(trees(names_of(count)))
    assert str(parse(str(tree))) == str(tree)
    assert {leaf.alias for leaf in leaves(tree)} == set(names_of(count))


@given(st.text(alphabet="ab12()[]@ ,", max_size=12))
def test_any_text_is_a_tree_or_refused(text):
    try:
        tree = parse(text)
    except PlanError:
        return
    assert parse(str(tree)) == tree


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' is not one plan: put parentheses around it"),
        ("f b", "'f b' is not one plan: put parentheses around it"),
        ("(f b) c", "'(f b) c' is not one plan: put parentheses around it"),
        ("((f b) c", "a parenthesis is not closed in '((f b) c'"),
        ("(f b))", "a parenthesis too many in '(f b))'"),
        ("(f)", "a join needs two inputs in '(f)'"),
        ("()", "a join needs two inputs in '()'"),
        ("(f, b)", "unexpected ',' at 3 in '(f, b)'"),
        ("(f  ; b)", "unexpected ';' at 5 in '(f  ; b)'"),
        ("([f b)", "unexpected '[' at 2 in '([f b)'"),
        ("(f b)@", "unexpected '@' at 6 in '(f b)@'"),
    ],
)
def test_notation_that_is_refused(text, message):
    with pytest.raises(PlanError) as refused:
        parse(text)
    assert str(refused.value) == message


# --- building ------------------------------------------------------------------------------------

ABC = joined("ABC", [("A", "B"), ("B", "C")], selects=[where("A.v")])
GROUPED = joined("AB", [("A", "B")], grouping=counts("A.v", total("s", "B.w")))


def built(text: str, query: Query = ABC) -> Plan:
    return build(query, parse(text))


def only(kind: type[Node], plan: Plan) -> Any:
    (node,) = (node for node in walk(plan.root) if isinstance(node, kind))
    return node


def replaced(node: Node, old: Node, new: Node) -> Node:
    """The operators, one of them replaced by another."""
    if node == old:
        return new
    if isinstance(node, Join):
        return replace(node, parts=tuple(replaced(part, old, new) for part in node.parts))
    return replace(node, input=replaced(node.input, old, new)) if isinstance(node, Unary) else node


def test_a_plan_drops_columns_as_soon_as_nobody_reads_them():
    plan = built("((A B) C)")
    below = [part for node in walk(plan.root) if isinstance(node, Join) for part in node.parts]
    kept = [" ".join(map(str, part.columns)) for part in below]
    assert kept == ["A.k A.ts A.v", "B.k B.ts B.v", "A.ts A.v B.k B.ts B.v", "C.k C.ts C.v"]


def test_a_plan_is_written_as_its_tree():
    assert str(built("((A B)@db C)")) == "((A B)@db C)"
    assert str(build(ABC, as_written(ABC))) == "((A B) C)"
    assert str(built("(A [B])", GROUPED)) == "(A [B])"


def test_equal_plans_are_equal():
    assert built("((A B) C)") == built("((A B) C)")
    assert hash(built("((A B) C)")) == hash(built("((A B) C)"))
    assert built("((A B) C)") != built("(A B C)")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(A B)", "(A B) leaves out C"),
        ("(A B C D)", "the query has no stream D; it has A, B, C"),
        ("((A B) (A C))", "a stream appears twice in ((A B) (A C))"),
        ("(A A B C)", "a stream appears twice in (A A B C)"),
        ("([A] B C)", "only a query with a group-by can combine its inputs"),
    ],
)
def test_trees_that_do_not_compute_the_query(text, message):
    with pytest.raises(PlanError) as refused:
        built(text)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("orders", "message"),
    [
        (((1,),), "a join needs a probe order for each input"),
        (((0,), (0,)), "input 0 must probe each of [1] once, not (0,)"),
        (((1,), (0, 0)), "input 1 must probe each of [0] once, not (0, 0)"),
        (((1,), ()), "input 1 must probe each of [0] once, not ()"),
    ],
)
def test_probe_orders_that_are_refused(orders, message):
    with pytest.raises(PlanError) as refused:
        build(joined("AB", [("A", "B")]), Branch((Leaf("A"), Leaf("B")), orders))
    assert str(refused.value) == message


def test_a_select_may_be_applied_above_a_join():
    plan = built("((A B) C)")
    select, emit = only(Select, plan), plan.root
    without = replaced(emit, select, select.input)
    assert isinstance(without, Emit)
    raised = Plan(ABC, replace(without, input=Select(without.input, select.predicate)))
    assert str(raised) == "((A B) C)"
    assert from_json(ABC, json.loads(json.dumps(to_json(raised.root)))) == raised


def wrong(change: Callable[[Plan], Node], plan: Plan | None = None) -> str:
    """What is said of a plan after a change that breaks it."""
    plan = plan or built("((A B) C)")
    with pytest.raises(PlanError) as refused:
        Plan(plan.query, change(plan))
    return str(refused.value)


def test_each_predicate_is_applied_once():
    def dropped(plan: Plan) -> Node:
        select = only(Select, plan)
        return replaced(plan.root, select, select.input)

    def twice(plan: Plan) -> Node:
        select = only(Select, plan)
        return replaced(plan.root, select, Select(select, select.predicate))

    message = "the plan does not apply each predicate of the query once"
    assert wrong(dropped) == message
    assert wrong(twice) == message


def test_a_predicate_is_applied_where_its_streams_meet():
    def late(plan: Plan) -> Node:
        upper = next(n for n in walk(plan.root) if isinstance(n, Join) and len(n.aliases) == 3)
        lower = next(n for n in walk(plan.root) if isinstance(n, Join) and len(n.aliases) == 2)
        held = replaced(upper, lower, replace(lower, predicates=()))
        assert isinstance(held, Join)
        return replaced(plan.root, upper, replace(held, predicates=ABC.predicates[:2]))

    assert wrong(late) == "join reads A.k, which is not there"


def test_a_join_predicate_is_no_select():
    plan = built("(A B C)")
    with pytest.raises(PlanError, match=r"a select is on one stream, not A.k = B.k"):
        Select(only(Join, plan), ABC.predicates[0])


def test_the_result_is_the_query_s():
    def bare(plan: Plan) -> Node:
        return plan.root.inputs[0]

    def renamed(plan: Plan) -> Node:
        return Emit(plan.root.inputs[0], plan.query.output[:1])

    assert wrong(bare) == "a plan must end in what it emits"
    assert wrong(renamed) == "the plan does not emit the query's result"


def test_windows_streams_and_event_times_are_the_query_s():
    def wider(plan: Plan) -> Node:
        join = only(Join, plan)
        return replaced(plan.root, join, replace(join, bounds=window("ABC", 11)))

    def other_stream(plan: Plan) -> Node:
        source = next(node for node in walk(plan.root) if isinstance(node, Source))
        return replaced(plan.root, source, Source("A", stream("other", "k", "v", "w")))

    flat = built("(A B C)")
    assert wrong(wider, flat) == "a join's windows are not the query's"
    assert wrong(other_stream, flat) == "A is A, not other"


def test_a_join_needs_the_event_times_of_its_inputs():
    def timeless(plan: Plan) -> Node:
        join = only(Join, plan)
        parts = [
            Project(part, tuple(c for c in part.columns if c.name != "ts")) for part in join.parts
        ]
        return Emit(replace(join, parts=tuple(parts)), plan.query.output)

    assert wrong(timeless, built("(A B C)")) == "a join needs the event time A.ts"


def test_projections_that_are_refused():
    source = Source("A", stream("A", "k"))
    with pytest.raises(PlanError, match=r"project reads A\.x, which is not there"):
        Project(source, (ref("A.x"),))
    with pytest.raises(PlanError, match="project keeps a column twice"):
        Project(source, (ref("A.k"), ref("A.k")))
    combined = only(Combine, built("(A [B])", GROUPED))
    with pytest.raises(PlanError, match="which the group-by above reads"):
        Project(combined, (ref("B.k"), ref("B.ts")))


def test_a_group_by_comes_last_and_once():
    plan = built("(A B)", GROUPED)
    group_by = only(GroupBy, plan)
    with pytest.raises(PlanError, match="which is not there"):
        GroupBy(group_by, group_by.grouping)
    with pytest.raises(PlanError, match="the plan does not emit the query's result"):
        Plan(replace(GROUPED, grouping=counts("A.v", total("s", "B.w"), size=61)), plan.root)


def test_an_input_is_combined_once_and_alone():
    plan = built("(A [B])", GROUPED)
    combined = only(Combine, plan)
    message = "only a stream's own tuples can be combined, and only once"
    for below in (combined, only(Join, plan)):
        with pytest.raises(PlanError, match=message):
            Combine(below, combined.grouping, combined.pinned)

    def loose(plan: Plan) -> Node:
        return replaced(plan.root, combined, replace(combined, pinned=frozenset({ref("B.ts")})))

    with pytest.raises(PlanError):
        Plan(GROUPED, loose(plan))


# --- JSON ----------------------------------------------------------------------------------------


@given(st.integers(1, 6), st.randoms(use_true_random=False), st.booleans())
def test_json_both_ways(count, random, grouped):
    names = names_of(count)
    edges = [(names[0], name) for name in names[1:]]
    grouping = counts("A.v", total("s", f"{names[-1]}.w")) if grouped else None
    query = joined(names, edges, 5, selects=[where("A.w")], grouping=grouping)
    plan = build(query, random_tree(names, random))
    assert from_json(query, json.loads(json.dumps(to_json(plan.root)))) == plan


@pytest.mark.parametrize("text", ["(A B)", "(A [B])", "(A B)@db"])
def test_explained_json_is_a_plan_too(text):
    plan = built(text, GROUPED)
    priced = price(plan, Estimator(GROUPED, Workload.assume(GROUPED)))
    assert from_json(GROUPED, json.loads(json.dumps(as_json(priced)))) == plan


def edited(path: str, value: object, plan: Plan | None = None) -> dict[str, Any]:
    """The JSON of a plan with one field changed, as a person might."""
    data = to_json((plan or built("(A B C)")).root)
    *steps, last = path.split(".")
    at: Any = data
    for step in steps:
        at = at[int(step) if step.isdigit() else step]
    at[int(last) if last.isdigit() else last] = value
    return data


JOIN = "inputs.0.inputs.0"
PARTS = f"{JOIN}.inputs"
"""Where the join of `(A B C)` is in its JSON, and the join's inputs."""


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("op", "emits", "not a plan of this query: 'emits' over 1 inputs"),
        ("op", 3, "3 needs op as a str"),
        ("inputs", [], "not a plan of this query: 'emit' over 0 inputs"),
        ("inputs", "C", "emit needs inputs as a list"),
        ("inputs.0", None, "an operator must be an object with its `op`, not None"),
        ("inputs.0", {"op": "group-by"}, "not a plan of this query: 'group-by' over 0 inputs"),
        (f"{JOIN}.orders", "12", "join needs orders as a list"),
        (f"{JOIN}.orders", [[1, 2], [0, "2"], [0, 1]], "the orders of a join must be lists of "
         "positions, not [[1, 2], [0, '2'], [0, 1]]"),
        (f"{JOIN}.orders", [[1, 2], [0, 2]], "a join needs a probe order for each input"),
        (f"{JOIN}.orders", [[1, 2], [0, 2], [0, 2]],
         "input 2 must probe each of [0, 1] once, not (0, 2)"),
        (f"{JOIN}.predicates", ["A.k = B.k"],
         "the plan does not apply each predicate of the query once"),
        (f"{JOIN}.predicates", ["A.k = C.k"],
         "the plan speaks of predicate A.k = C.k, which is not there"),
        (f"{JOIN}.predicates", [["A.k"]],
         "the plan speaks of predicate ['A.k'], which is not there"),
        (f"{JOIN}.place", 1, "join needs place as a str"),
        (f"{PARTS}.1", {"op": "source"}, "source needs alias as a str"),
        (f"{PARTS}.1", {"op": "source", "alias": "D"},
         "the plan speaks of stream D, which is not there"),
        (f"{PARTS}.1", {"op": "source", "alias": "A"}, "a stream appears on two sides of a join"),
        (f"{PARTS}.1", {"op": "source", "alias": "B", "stream": "C"}, "B is B, not C"),
        (f"{PARTS}.1.columns", ["B.k", "B.v"],
             "the plan speaks of column B.ts, which is not there"),
        (f"{PARTS}.1.columns", ["B.x"], "the plan speaks of column B.x, which is not there"),
        (f"{PARTS}.1.columns", ["B.k", "B.k", "B.ts", "B.v"], "project keeps a column twice"),
        (f"{PARTS}.1.columns", None, "project needs columns as a list"),
    ],
)  # fmt: skip
def test_json_that_is_refused(path, value, message):
    with pytest.raises(PlanError) as refused:
        from_json(ABC, edited(path, value))
    assert str(refused.value) == message


def test_json_may_leave_out_what_can_be_guessed():
    data = edited(f"{JOIN}.place", "")
    del data["inputs"][0]["inputs"][0]["place"]
    assert from_json(ABC, data) == built("(A B C)")


def test_a_place_is_kept_as_it_is_written():
    assert str(built("((A B)@db C)@spark")) == "((A B)@db C)@spark"


@pytest.mark.parametrize("text", ["(f b)@mars", "((f b)@DB c)", "((f b)@db c)@duckdb"])
def test_an_unknown_place_is_refused_with_what_is_allowed(text: str):
    with pytest.raises(
        PlanError, match=r"there is no place '(mars|DB|duckdb)'; allowed: spark, db"
    ):
        parse(text)


def test_an_unknown_place_in_json_is_refused():
    plan = to_json(built("((A B) C)").root)
    for node in _nodes(plan):
        if node["op"] == "join":
            node["place"] = "mars"
    with pytest.raises(PlanError, match="there is no place 'mars'; allowed: spark, db"):
        from_json(built("((A B) C)").query, plan)


def _nodes(node):
    yield node
    for below in node.get("inputs", ()):
        yield from _nodes(below)


@pytest.mark.parametrize(
    "text", ["(" * 10_000 + "a" + ")" * 10_000, "(a " * 10_000 + "b" + ")" * 10_000, "x y" * 10_000]
)
def test_a_text_without_end_is_refused_in_a_short_line(text: str):
    with pytest.raises(PlanError) as refused:
        parse(text)
    assert len(str(refused.value)) < 300
