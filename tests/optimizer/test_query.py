"""Queries as values: what can be built, what cannot and why, and how they are looked at."""

from dataclasses import replace

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimizer.query import (
    HOLE,
    RESULT,
    WINDOW_END,
    WINDOW_START,
    Aggregate,
    Column,
    ColumnRef,
    Expression,
    Grouping,
    JoinGraph,
    Named,
    Predicate,
    Query,
    QueryError,
    Stream,
)
from optimizer.window import MICROSECONDS, everywhere

COLUMNS = (Column("k", "INT"), Column("x", "INT"), Column("ts", "TIMESTAMP"))
ALIASES = ("a", "b", "c", "d")


def column(text: str) -> Expression:
    """`a.k`, or a result's column without alias."""
    alias, _, name = ("", "", text) if text in (WINDOW_START, WINDOW_END) else text.rpartition(".")
    return Expression.of(ColumnRef(alias, name))


def equal(left: str, right: str) -> Predicate:
    return Predicate.equality(column(left), column(right))


def condition(template: str, *columns: str) -> Predicate:
    refs = tuple(ref for text in columns for ref in column(text).columns)
    return Predicate(Expression(template.replace("?", HOLE), refs))


def query(aliases: str = "abc", *predicates: Predicate) -> Query:
    inputs = tuple((alias, Stream(f"stream_{alias}", COLUMNS, "ts")) for alias in aliases)
    bounds = everywhere(tuple(aliases), 10 * MICROSECONDS)
    output = (Named("k", column(f"{aliases[0]}.k")),)
    return Query(inputs, predicates, bounds, output)


def grouped(*aggregates: Aggregate, time: str = "a.ts") -> Grouping:
    ref = column(time).columns[0]
    return Grouping((Named("k", column("a.k")),), aggregates, ref, 60, 20)


COUNT = Aggregate("n", "count")

# --- what cannot be built ------------------------------------------------------------------------

INVALID = {
    "a condition over three streams": (
        lambda: condition("? = ? + ?", "a.k", "b.k", "c.k"),
        "a predicate must read one or two streams: a.k = b.k + c.k",
    ),
    "a condition over none": (
        lambda: condition("1 = 1"),
        "a predicate must read one or two streams: 1 = 1",
    ),
    "sides of one stream": (
        lambda: equal("a.k", "a.x"),
        "not an equality between two streams: a.k = a.x",
    ),
    "more holes than columns": (
        lambda: Expression("? = ?".replace("?", HOLE), (ColumnRef("a", "k"),)),
        "an expression of 1 columns has other holes",
    ),
    "a repeated column": (
        lambda: Stream("s", (*COLUMNS, Column("k", "STRING")), "ts"),
        "stream s has two columns named k",
    ),
    "no event time": (
        lambda: Stream("s", COLUMNS[:2], "ts"),
        "stream s has no column ts to tell event time",
    ),
    "an unknown aggregate": (
        lambda: Aggregate("m", "median", column("a.x")),
        "median is not one of count, sum, min, max, avg",
    ),
    "an aggregate of nothing": (lambda: Aggregate("s", "sum"), "sum needs an argument"),
    "two results of one name": (
        lambda: grouped(Aggregate("k", "count")),
        "two columns of the group-by are named k",
    ),
    "a result called like the window": (
        lambda: grouped(Aggregate(WINDOW_END, "count")),
        "two columns of the group-by are named window.end",
    ),
    "a slide longer than the window": (
        lambda: replace(grouped(), slide=61),
        "a window's slide must be positive and at most its size",
    ),
    "no slide": (
        lambda: replace(grouped(), slide=0),
        "a window's slide must be positive and at most its size",
    ),
    "no streams": (
        lambda: replace(query(), inputs=()),
        "a query needs at least one stream and one output column",
    ),
    "no output": (
        lambda: replace(query(), output=()),
        "a query needs at least one stream and one output column",
    ),
    "two streams of one name": (
        lambda: replace(query("ab"), inputs=query("a").inputs * 2),
        "two streams are called a",
    ),
    "two outputs of one name": (
        lambda: replace(query(), output=query().output * 2),
        "two output columns are named k",
    ),
    "bounds of other streams": (
        lambda: replace(query("ab"), bounds=everywhere(("a", "c"), 1)),
        "the bounds are not about the query's streams",
    ),
    "an unknown column in a predicate": (
        lambda: query("ab", equal("a.k", "b.q")),
        "no column b.q",
    ),
    "an unknown stream in a predicate": (
        lambda: query("ab", equal("a.k", "c.k")),
        "no column c.k",
    ),
    "an unknown column in the output": (
        lambda: replace(query(), output=(Named("q", column("a.q")),)),
        "no column a.q",
    ),
    "an output that is not grouped by": (
        lambda: replace(query(), grouping=grouped(COUNT)),
        "a.k is neither grouped by nor aggregated",
    ),
    "an unknown column in an aggregate": (
        lambda: replace(
            query(),
            grouping=grouped(Aggregate("n", "sum", column("a.q"))),
            output=(Named("n", column("n")),),
        ),
        "no column a.q",
    ),
    "windows over no event time": (
        lambda: replace(
            query(), grouping=grouped(COUNT, time="a.x"), output=(Named("n", column("n")),)
        ),
        "window() must be over an event time, not a.x",
    ),
}


@pytest.mark.parametrize(
    ("build", "message"), [pytest.param(*case, id=name) for name, case in INVALID.items()]
)
def test_an_invalid_query_cannot_be_built(build, message):
    with pytest.raises(QueryError) as caught:
        build()
    assert str(caught.value) == message


# --- expressions and predicates ------------------------------------------------------------------


def test_an_expression_renders_its_columns():
    expression = condition("? + ? * ?", "a.k", "a.x", "a.k").expression
    assert expression.sql() == "a.k + a.x * a.k"
    assert expression.sql(lambda ref: f'"{ref.alias}_{ref.name}"') == '"a_k" + "a_x" * "a_k"'
    assert expression.aliases == {"a"}


def test_a_result_has_no_alias():
    assert str(column("n")) == "n"
    assert column("n").aliases == {RESULT}


def test_an_equality_knows_no_sides():
    assert equal("b.k", "a.x") == equal("a.x", "b.k")
    assert str(equal("b.k", "a.x")) == "a.x = b.k"
    assert equal("b.k", "a.x").sides == (column("a.x"), column("b.k"))


@given(st.permutations(ALIASES), st.permutations(ALIASES))
def test_renaming_is_canonical_and_undone(one, other):
    names = dict(zip(one, other, strict=True))
    back = {new: old for old, new in names.items()}
    for predicate in (
        equal("a.k", "b.x"),
        condition("? < ?", "a.k", "b.k"),
        condition("? > 1", "c.k"),
    ):
        renamed = predicate.rename(names)
        assert renamed.aliases == {names[alias] for alias in predicate.aliases}
        assert renamed.rename(back) == predicate
    assert equal("a.k", "b.x").rename(names) == equal(f"{names['a']}.k", f"{names['b']}.x")


# --- looking at a query --------------------------------------------------------------------------


def example() -> Query:
    return query(
        "abcd",
        equal("a.k", "b.k"),
        condition("? < ?", "b.x", "c.x"),
        condition("? > 5", "b.x"),
        equal("b.x", "c.k"),
    )


def test_predicates_are_found_by_their_streams():
    one = example()
    assert one.selects("b") == (condition("? > 5", "b.x"),)
    assert one.selects("a") == ()
    assert one.between("a", "b") == (equal("a.k", "b.k"),)
    assert one.between("b", "c") == (condition("? < ?", "b.x", "c.x"), equal("b.x", "c.k"))
    assert one.between(["a", "b"], ["c"]) == one.between("b", "c")
    assert one.between("a", ["c", "d"]) == ()


def test_columns_are_needed_by_what_is_outside():
    one = example()
    assert one.needed(frozenset("d")) == {ColumnRef("d", "ts")}
    assert one.needed(frozenset("b")) == {ColumnRef("b", name) for name in ("k", "x", "ts")}
    assert one.needed(frozenset("bc")) == {
        ColumnRef("b", "k"), ColumnRef("b", "ts"), ColumnRef("c", "ts"),
    }  # fmt: skip
    assert one.needed(frozenset("abcd")) == {
        ColumnRef("a", "k"), *one.event_times.values(),
    }  # fmt: skip


def test_a_group_by_needs_what_it_reads():
    aggregates = (COUNT, Aggregate("s", "sum", column("c.x"), column("b.k")))
    one = replace(
        example(), grouping=grouped(*aggregates), output=(Named("late", column(WINDOW_END)),)
    )
    assert one.grouping is not None
    assert one.grouping.names == ("k", "n", "s", "window.start", "window.end")
    assert one.needed(frozenset("abcd")) == {
        ColumnRef("a", "k"), ColumnRef("b", "k"), ColumnRef("c", "x"), *one.event_times.values(),
    }  # fmt: skip


def test_a_filter_may_read_the_window_itself():
    recent = condition("? >= ? - INTERVAL '1' MINUTE", "a.ts", WINDOW_END).expression
    grouping = grouped(Aggregate("n", "count", None, recent))
    assert grouping.columns == {ColumnRef("a", "k"), ColumnRef("a", "ts")}
    assert str(grouping.aggregates[0]) == (
        "count(*) FILTER (WHERE a.ts >= window.end - INTERVAL '1' MINUTE) AS n"
    )


# --- the join graph, against networkx ------------------------------------------------------------

edges = st.lists(
    st.tuples(st.sampled_from(ALIASES), st.sampled_from(ALIASES)).filter(lambda e: e[0] != e[1]),
    max_size=8,
)


def reference(pairs: list[tuple[str, str]]) -> "nx.Graph[str]":
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(ALIASES)
    graph.add_edges_from(pairs)
    return graph


def joined(pairs: list[tuple[str, str]]) -> JoinGraph:
    return query("abcd", *(equal(f"{one}.k", f"{other}.k") for one, other in pairs)).graph


@given(edges)
def test_components(pairs):
    found = joined(pairs).components
    assert set(found) == {frozenset(c) for c in nx.connected_components(reference(pairs))}
    assert sum(map(len, found)) == len(ALIASES)


@given(edges)
def test_acyclic(pairs):
    assert joined(pairs).acyclic == nx.is_forest(reference(pairs))


@given(edges, st.sampled_from(ALIASES))
def test_neighbours(pairs, vertex):
    assert joined(pairs).neighbours(vertex) == set(reference(pairs).neighbors(vertex))


@given(edges)
def test_star(pairs):
    graph = reference(pairs)
    central = [v for v in ALIASES if graph.degree(v) == graph.number_of_edges() > 0]
    assert joined(pairs).star == bool(central)


def test_edges_carry_their_predicates():
    graph = example().graph
    assert set(graph.edges) == {frozenset("ab"), frozenset("bc")}
    assert graph.edges[frozenset("bc")] == (
        condition("? < ?", "b.x", "c.x"), equal("b.x", "c.k"),
    )  # fmt: skip
