"""States by what they hold: what must not matter, and what must."""

from dataclasses import replace
from hashlib import sha256
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimizer.identity import identity, ids, states
from optimizer.plan import (
    Combine,
    Emit,
    GroupBy,
    Join,
    Node,
    Plan,
    Select,
    Unary,
    build,
    parse,
    walk,
)
from optimizer.query import Aggregate, ColumnRef, Predicate, Query
from tests.optimizer.builders import (
    between,
    column,
    counts,
    cql,
    equal,
    joined,
    less,
    names_of,
    ref,
    stream,
    total,
    trees,
    where,
)


def plan_of(query: Query, tree: str) -> Plan:
    return build(query, parse(tree))


def result(query: Query, tree: str) -> Node:
    """What is emitted of: all the query's joins, and its group-by."""
    return plan_of(query, tree).root.inputs[0]


def key_of(node: Node) -> str:
    return identity(node).key


def renamed(query: Query, aliases: dict[str, str]) -> Query:
    """The same query with other names for its streams."""
    rows = query.bounds.matrix
    return Query(
        tuple((aliases[alias], s) for alias, s in query.inputs),
        tuple(predicate.rename(aliases) for predicate in query.predicates),
        type(query.bounds)(tuple(aliases[name] for name in query.bounds.names), rows),
        tuple(replace(n, expression=n.expression.rename(aliases)) for n in query.output),
    )


ABC = joined("ABC", [("A", "B"), ("B", "C")], cql({"A": 5, "B": 7, "C": 9}), selects=[where("A.v")])


# --- what does not matter ------------------------------------------------------------------------


@given(st.integers(2, 6), st.data())
def test_all_plans_of_a_query_have_the_same_result(count, data):
    names = names_of(count)
    pairs = list(combinations(names, 2))
    edges = data.draw(st.lists(st.sampled_from(pairs), unique=True))
    query = joined(names, edges, cql({n: data.draw(st.integers(1, 9)) for n in names}))
    one, other = (build(query, data.draw(trees(names))).root.inputs[0] for _ in range(2))
    assert identity(one) == identity(other)


@pytest.mark.parametrize("tree", ["(A B C)", "((A B) C)", "(A (B C))", "((A C) B)"])
def test_names_do_not_matter(tree):
    aliases = {"A": "z", "B": "y", "C": "x"}
    other = renamed(ABC, aliases)
    theirs = plan_of(other, "".join(aliases.get(character, character) for character in tree))
    assert states(theirs.root).keys() == states(plan_of(ABC, tree).root).keys()


def test_a_state_names_its_columns_alike_for_everyone():
    other = renamed(ABC, {"A": "z", "B": "y", "C": "x"})
    ours = identity(result(ABC, "(A B C)"))
    theirs = identity(result(other, "(z y x)"))
    assert ours.column(ref("A.v")) == theirs.column(ref("z.v")) == "A.v"


def test_where_a_select_is_applied_does_not_matter():
    below = plan_of(ABC, "((A B) C)")
    (select,) = (node for node in walk(below.root) if isinstance(node, Select))

    def without(node: Node) -> Node:
        if node == select:
            return select.input
        if isinstance(node, Join):
            return replace(node, parts=tuple(map(without, node.parts)))
        return replace(node, input=without(node.input)) if isinstance(node, Unary) else node

    raised = Select(without(below.root.inputs[0]), select.predicate)
    plan = Plan(ABC, Emit(raised, ABC.output))
    assert key_of(plan.root.inputs[0]) == key_of(below.root.inputs[0])
    assert states(plan.root).keys() != states(below.root).keys()


def test_where_an_input_is_combined_does_not_matter_to_the_groups():
    query = joined("AB", [("A", "B")], grouping=counts("A.v", total("s", "B.w")))
    assert key_of(result(query, "(A B)")) == key_of(result(query, "([A] [B])"))


# --- streams that meet themselves ----------------------------------------------------------------


def self_join(names: str, *predicates: Predicate) -> Query:
    """A query that joins one stream with itself."""
    same = {name: stream("s", "k", "v", "w") for name in names}
    query = joined(names, [], 10, streams=same)
    return replace(query, predicates=predicates)


def test_self_joins_are_canonical():
    one = self_join("ab", equal("a.k", "b.v"))
    other = self_join("ab", equal("b.k", "a.v"))
    straight = self_join("ab", equal("a.k", "b.k"))
    assert key_of(result(one, "(a b)")) == key_of(result(other, "(a b)"))
    assert key_of(result(one, "(a b)")) == key_of(result(one, "(b a)"))
    assert key_of(result(one, "(a b)")) != key_of(result(straight, "(a b)"))


def test_a_self_join_keeps_one_state_if_its_sides_hold_the_same():
    assert len(states(plan_of(self_join("ab", equal("a.k", "b.k")), "(a b)").root)) == 1
    # one side needs v to join on, but both emit it: so the columns are the same here too
    assert len(states(plan_of(self_join("ab", equal("a.k", "b.v")), "(a b)").root)) == 2


def test_a_self_join_s_columns_keep_apart():
    found = identity(result(self_join("ab", equal("a.k", "b.v")), "(a b)"))
    assert {found.column(ref("a.v")), found.column(ref("b.v"))} == {"s#1.v", "s#2.v"}


@given(st.permutations("abc"))
def test_self_joins_of_three_are_canonical(order):
    a, b, c = order
    chain = self_join("abc", less(f"{a}.k", f"{b}.k"), less(f"{b}.k", f"{c}.k"))
    usual = self_join("abc", less("a.k", "b.k"), less("b.k", "c.k"))
    assert key_of(result(chain, "(a b c)")) == key_of(result(usual, "(a b c)"))


# --- what matters --------------------------------------------------------------------------------

PLAIN = joined("AB", [("A", "B")])

DIFFERENT = {
    "bounds": joined("AB", [("A", "B")], 11),
    "bounds one way": joined("AB", [("A", "B")], between("AB", {("A", "B"): (-10, 11)})),
    "predicates": replace(PLAIN, predicates=(equal("A.k", "B.v"),)),
    "more predicates": replace(PLAIN, predicates=(*PLAIN.predicates, less("A.v", "B.v"))),
    "no predicates": replace(PLAIN, predicates=()),
    "selects": joined("AB", [("A", "B")], selects=[where("A.v")]),
    "columns": replace(PLAIN, output=(*PLAIN.output[:1],)),
    "streams": joined("AB", [("A", "B")], streams={"B": stream("C", "k", "v", "w")}),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_different_content_is_another_state(what):
    assert key_of(result(DIFFERENT[what], "(A B)")) != key_of(result(PLAIN, "(A B)"))


def test_a_select_and_its_opposite_differ():
    one = joined("AB", [("A", "B")], selects=[where("A.v", "> 5")])
    other = joined("AB", [("A", "B")], selects=[where("A.v", "<= 5")])
    assert key_of(result(one, "(A B)")) != key_of(result(other, "(A B)"))


GROUPINGS = [
    counts("A.v"),
    counts("A.w"),
    counts("A.v", size=61),
    counts("A.v", size=60, slide=10),
    counts("B.v"),
    counts("A.v", total("s", "B.w")),
    counts("A.v", total("t", "B.w")),
    counts("A.v", total("s", "A.w")),
    counts("A.v", Aggregate("s", "max", column("B.w"))),
    counts("A.v", Aggregate("n", "count", column("B.w"))),
    counts("A.v", Aggregate("n", "count", condition=column("B.w"))),
    replace(counts("A.v"), time=ColumnRef("B", "ts")),
]


def test_different_groups_are_different_states():
    found = [
        key_of(result(joined("AB", [("A", "B")], grouping=grouping), "(A B)"))
        for grouping in GROUPINGS
    ]
    assert len(set(found)) == len(GROUPINGS)


def test_combined_states_differ():
    query = joined("AB", [("A", "B")], grouping=counts("A.v", total("s", "B.w")))
    other = joined("AB", [("A", "B")], grouping=counts("A.v", Aggregate("s", "max", column("B.w"))))
    plain, combined = plan_of(query, "(A B)"), plan_of(query, "(A [B])")
    largest = plan_of(other, "(A [B])")

    def b(plan: Plan) -> str:
        (join,) = (node for node in walk(plan.root) if isinstance(node, Join))
        return key_of(next(part for part in join.parts if part.aliases == {"B"}))

    assert len({b(plain), b(combined), b(largest)}) == 3


# --- sharing -------------------------------------------------------------------------------------


def test_queries_share_the_state_of_a_join_that_both_need():
    """One joins on with C, the other with D; both need A with B, and call them differently."""
    with_c = joined("ABC", [("A", "B"), ("B", "C")], 10)
    aliases = {"x": "A", "y": "B", "z": "D"}
    streams = {alias: stream(name, "k", "v", "w") for alias, name in aliases.items()}
    with_d = joined("xyz", [("x", "y"), ("y", "z")], 10, streams=streams)
    ours = states(plan_of(with_c, "((A B) C)").root)
    theirs = states(plan_of(with_d, "((x y) z)").root)
    shared = [ours[key].aliases for key in ours.keys() & theirs.keys()]
    assert sorted(map(sorted, shared)) == [["A"], ["A", "B"], ["B"]]


def test_plans_share_the_states_that_both_keep():
    query = joined("ABCD", [("A", "B"), ("B", "C"), ("C", "D")])
    old = states(plan_of(query, "(((A B) C) D)").root)
    new = states(plan_of(query, "((A B) (C D))").root)
    kept = {"".join(sorted(old[key].aliases)) for key in old.keys() & new.keys()}
    assert kept == {"A", "B", "C", "D", "AB"}


def test_states_are_the_inputs_of_joins_and_the_groups():
    query = joined("ABC", [("A", "B"), ("B", "C")], grouping=counts("A.v"))
    plan = plan_of(query, "((A B) [C])")
    kept = states(plan.root)
    assert sorted("".join(sorted(node.aliases)) for node in kept.values()) == [
        "A", "AB", "ABC", "B", "C",
    ]  # fmt: skip
    assert sum(isinstance(node, GroupBy) for node in kept.values()) == 1
    assert sum(isinstance(node, Combine) for node in kept.values()) == 1


def test_keys_are_the_same_in_every_version():
    """Tables are named by them, so a new version must find the states that an old one left."""
    content = (
        '{"columns":["A.ts","A.v","B.ts","B.v"],"partials":[],"streams":["A","B"],'
        '"where":["A.k = B.k"],"within":[["A","B",10000000],["B","A",10000000]]}'
    )
    found = identity(result(PLAIN, "(A B)"))
    assert found.content == content
    assert found.key == sha256(content.encode()).hexdigest()[:16]


# --- ids -----------------------------------------------------------------------------------------

WITH_SELECTS = joined(
    "ABC", [("A", "B"), ("B", "C")], 5, selects=[where("A.v"), where("A.w")], grouping=counts("A.v")
)


def test_ids_say_what_an_operator_does():
    plan = build(WITH_SELECTS, parse("((A B) C)"))
    assert {name for name in ids(plan.root).values() if not name.startswith("project")} == {
        "source:A", "source:B", "source:C", "select:A", "select:A#2", "join:A+B", "join:A+B+C",
        "group-by:A+B+C", "emit:A+B+C",
    }  # fmt: skip


@pytest.mark.parametrize("tree", ["(C (B A))", "(C (A B))", "((A C) B)", "(B C A)"])
def test_an_operator_that_is_kept_keeps_its_id(tree: str):
    """What the same operator is called does not depend on what is around it."""
    one, other = (ids(build(WITH_SELECTS, parse(text)).root) for text in ("((A B) C)", tree))
    assert len(set(other.values())) == len(other)
    kept = [node for node in one if node in other]
    assert kept
    assert all(one[node] == other[node] for node in kept)
    names = set(one.values()) & set(other.values())
    assert {"select:A", "select:A#2", "join:A+B+C", "group-by:A+B+C"} <= names
    assert ("join:A+B" in names) == ("(B A)" in tree or "(A B)" in tree)
