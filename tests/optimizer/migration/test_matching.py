"""What is kept, derived, combined and joined; what is refused, and why."""

import pytest

from optimizer.migration.matching import Context, match, recipe
from optimizer.migration.steps import Fill, How, Refused
from optimizer.plan import Plan, build, parse
from optimizer.query import Query
from tests.optimizer.builders import counts, cql, joined, stream, total, where
from tests.optimizer.migration.by_hand import above, join, key, leaf, plan, told

HIGH = where("a.v")
"""a.v > 5."""


def found(old: Plan, new: Plan, context: Context | None = None) -> list[str]:
    made = match(old, new, context)
    assert made.refused is None, made.refused
    return told(made.fills, old, new)


def refused(old: Plan, new: Plan, context: Context | None = None) -> str:
    made = match(old, new, context)
    assert made.refused is not None
    assert (made.kept, made.fills, made.dropped) == ((), (), ())
    return made.refused


def of(query: Query, tree: str) -> Plan:
    return build(query, parse(tree))


CHAIN = joined("abcd", [("a", "b"), ("b", "c"), ("c", "d")])


def test_figure_12_1():
    """S_A to S_D match; S_BC and S_BCD do not, nor S_AB and S_ABC."""
    old, new = of(CHAIN, "(((a b) c) d)"), of(CHAIN, "(a ((b c) d))")
    made = match(old, new)
    assert len(made.kept) == 4
    assert told(made.fills, old, new) == ["join (b c) from b, c", "join ((b c) d) from (b c), d"]
    assert len(made.dropped) == 2


def test_an_mjoin_needs_nothing():
    old, new = of(CHAIN, "(((a b) c) d)"), of(CHAIN, "(a b c d)")
    made = match(old, new)
    assert (len(made.kept), made.fills, len(made.dropped)) == (4, (), 2)


def test_an_inner_mjoin_is_joined_from_all_its_parts():
    assert found(of(CHAIN, "(((a b) c) d)"), of(CHAIN, "(a (d b c))")) == [
        "join (d b c) from d, b, c"
    ]


def test_a_group_by_is_kept_whatever_feeds_it():
    query = joined("ab", [("a", "b")], grouping=counts("a.k", total("t", "b.v")))
    old, new = of(query, "(a b)"), of(query, "(a [b])")
    made = match(old, new)
    assert told(made.fills, old, new) == ["combine [b] from b"]
    assert key(old.root.inputs[0]) in made.kept


# --- selects and projections (Zhu 13) ------------------------------------------------------------

SELECTED = joined("abc", [("a", "b"), ("b", "c")], selects=[HIGH])
B, C = leaf(SELECTED, "b", keep="b.k b.ts b.v"), leaf(SELECTED, "c", keep="c.k c.ts c.v")
RAW = leaf(SELECTED, "a")
NARROW = leaf(SELECTED, "a", keep="a.k a.ts a.v")
BELOW = leaf(SELECTED, "a", HIGH, keep="a.k a.ts a.v")
PUSHED = plan(SELECTED, join(SELECTED, BELOW, B, C))
PULLED = plan(SELECTED, above(join(SELECTED, NARROW, B, C), HIGH))
WIDE = plan(SELECTED, above(join(SELECTED, RAW, B, C), HIGH))


def test_a_select_pushed_down_filters_what_is_there():
    """The lower half of Fig. 13.2."""
    assert found(PULLED, PUSHED) == ["derive a from a"]
    made = recipe(PULLED, PUSHED, match(PULLED, PUSHED).fills[0])
    assert (made.selects, made.padded, made.stuffed) == ((HIGH,), (), ())


def test_a_select_pulled_up_leaves_nothing_to_do():
    """The upper half: the older rows have passed it, and pass again.  But others need them all."""
    assert found(PUSHED, PULLED) == ["derive a in part from a"]
    made = recipe(PUSHED, PULLED, match(PUSHED, PULLED).fills[0])
    assert (made.selects, made.padded, made.stuffed) == ((), (), (HIGH,))


def test_a_projection_pushed_down_drops_columns():
    assert found(WIDE, PULLED) == ["derive a from a"]


def test_a_projection_pulled_up_pads():
    """Fig. 13.3: nothing above reads a.w."""
    assert found(PULLED, WIDE) == ["derive a in part from a"]
    made = recipe(PULLED, WIDE, match(PULLED, WIDE).fills[0])
    assert list(map(str, made.padded)) == ["a.w"]


UNREAD = joined("abc", [("a", "b"), ("b", "c")], selects=[where("a.w")])
DROPPED = leaf(UNREAD, "a", where("a.w"), keep="a.k a.ts a.v")


def test_a_select_cannot_be_pulled_above_a_column_that_is_gone():
    """The rows have passed `a.w > 5`; with NULL for a.w they would not pass again."""
    b, c = leaf(UNREAD, "b"), leaf(UNREAD, "c")
    old = plan(UNREAD, join(UNREAD, DROPPED, b, c))
    new = plan(UNREAD, above(join(UNREAD, leaf(UNREAD, "a"), b, c), where("a.w")))
    assert refused(old, new) == (
        "the state of a cannot be made: the running plan has dropped a.w, "
        "which is yet to be selected on; parallel-track can do it"
    )


def test_a_select_cannot_be_pulled_above_a_column_that_was_gone():
    """Since it is back, but older rows still have NULL for it."""
    b, c, wide = leaf(UNREAD, "b"), leaf(UNREAD, "c"), leaf(UNREAD, "a", where("a.w"))
    first = plan(UNREAD, join(UNREAD, DROPPED, b, c))
    second = plan(UNREAD, join(UNREAD, wide, b, c))
    third = plan(UNREAD, above(join(UNREAD, leaf(UNREAD, "a"), b, c), where("a.w")))
    assert found(first, second) == ["derive a in part from a"]
    older = Context(partial={key(wide): "q"}, query="q")
    assert refused(second, third, older) == (
        "the state of a cannot be made: a plan before may have dropped a.w, "
        "which is yet to be selected on; parallel-track can do it"
    )
    assert found(second, third) == ["derive a in part from a"]
    assert found(second, first, older) == ["derive a in part from a"]


def test_deriving_goes_before_joining():
    """(a b) could be joined again, but is there, only wider."""
    a, b, c = (leaf(UNREAD, alias) for alias in "abc")
    high = where("a.w")
    old = plan(UNREAD, join(UNREAD, above(join(UNREAD, a, b), high), c))
    new = plan(
        UNREAD,
        join(UNREAD, above(join(UNREAD, a, b), high, keep="a.k a.ts a.v b.k b.ts b.v"), c),
    )
    assert found(old, new) == ["derive (a b) from (a b)"]


def test_joining_where_a_trap_forbids_deriving():
    """The old (a b) has lost a.w, the new one selects on it above; a and b are there in full."""
    a, b, c = (leaf(UNREAD, alias) for alias in "abc")
    high = where("a.w")
    narrow = above(join(UNREAD, a, b), high, keep="a.k a.ts a.v b.k b.ts b.v")
    old = plan(UNREAD, join(UNREAD, narrow, c))
    new = plan(UNREAD, above(join(UNREAD, join(UNREAD, a, b), c), high))
    assert found(old, new) == ["join (a b) from a, b"]


def test_what_is_made_from_a_part_is_a_part():
    narrow = "a.k a.ts a.v b.k b.ts b.v"
    new = plan(SELECTED, above(join(SELECTED, above(join(SELECTED, RAW, B), keep=narrow), C), HIGH))
    assert found(PUSHED, new) == ["derive a in part from a", "join (a b) in part from a, b"]


# --- group-bys pushed down (Zhu 14) --------------------------------------------------------------

GROUPED = joined(
    "abc", [("a", "b"), ("b", "c")], grouping=counts("a.k", total("t", "b.v")), selects=[HIGH]
)


def test_a_group_by_pushed_down():
    old, new = of(GROUPED, "((a b) c)"), of(GROUPED, "((a [b]) c)")
    assert found(old, new) == ["combine [b] from b", "join (a [b]) from a, [b]"]


def test_combined_tuples_are_not_taken_apart():
    why = refused(of(GROUPED, "((a [b]) c)"), of(GROUPED, "(a b c)"))
    assert why == (
        "the state of b cannot be made: the running plan has combined b, no tuple is left of it; "
        "parallel-track can do it"
    )


def test_combined_inputs_under_another_order():
    old, new = of(GROUPED, "((a [b]) c)"), of(GROUPED, "(a ([b] c))")
    assert found(old, new) == ["join ([b] c) from [b], c"]


# --- streams that meet themselves ----------------------------------------------------------------

TRADES = stream("t", "k", "v", "w")


def selfish(windows: dict[str, float], **settings) -> Query:
    names = list(windows)
    return joined(
        names, [("x", "y"), ("y", "z")], cql(windows),
        streams={"x": TRADES, "y": TRADES}, **settings,
    )  # fmt: skip


def test_inputs_that_share_a_state_need_it_whole():
    """x has been selected on, y has lost w: neither has what both will read."""
    high = where("x.w")
    query = selfish({"x": 10, "y": 10, "z": 10}, selects=[high])
    z = leaf(query, "z")
    old = plan(query, join(query, leaf(query, "x", high), leaf(query, "y", keep="y.k y.ts y.v"), z))
    new = plan(query, above(join(query, leaf(query, "x"), leaf(query, "y"), z), high))
    assert refused(old, new) == (
        "the state of x cannot be made: it would lack rows that others need of it, or of what is "
        "made of it; parallel-track can do it"
    )


def test_an_input_takes_over_anothers_state_if_it_is_kept_long_enough():
    """x keeps 10 s of k, v and w, y 30 s of k and v; then the other way round."""

    def narrow(query: Query, alias: str) -> Plan:
        x, y, z = (leaf(query, a, keep=f"{a}.k {a}.ts {a}.v" if a == alias else "") for a in "xyz")
        return plan(query, join(query, x, y, z))

    short = selfish({"x": 10, "y": 30, "z": 10})
    assert refused(narrow(short, "y"), narrow(short, "x")) == (
        "the state of y is kept for 10 s only, the new plan needs 30 s; parallel-track can do it"
    )
    alike = selfish({"x": 30, "y": 30, "z": 10})
    assert match(narrow(alike, "y"), narrow(alike, "x")).fills == ()


def test_a_part_made_for_one_input_does_not_serve_another():
    query = selfish({"x": 30, "y": 30, "z": 10})
    wide, narrow = leaf(query, "x"), leaf(query, "y", keep="y.k y.ts y.v")
    old = plan(query, join(query, wide, narrow, leaf(query, "z")))
    new = plan(
        query,
        join(query, leaf(query, "x", keep="x.k x.ts x.v"), leaf(query, "y"), leaf(query, "z")),
    )
    assert match(old, new).refused is None
    partial = Context(partial={key(wide): "q"}, query="q")
    assert refused(old, new, partial).endswith(
        "still holds only what another input needs; parallel-track can do it"
    )
    same = plan(query, join(query, join(query, wide, narrow), leaf(query, "z")))
    assert found(old, same, partial) == ["join (x y) in part from x, y"]


# --- other queries of the job --------------------------------------------------------------------

OLD, NEW = of(CHAIN, "(((a b) c) d)"), of(CHAIN, "(a ((b c) d))")
BC = match(OLD, NEW).fills[0].state


def test_what_another_query_keeps_is_kept():
    made = match(OLD, NEW, Context({BC: 10_000_000}))
    assert BC in made.kept
    assert told(made.fills, OLD, NEW) == ["join ((b c) d) from (b c), d"]


def test_but_not_if_it_is_kept_too_short():
    assert refused(OLD, NEW, Context({BC: 4_000_000})) == (
        "the state of (b c) is kept for 4 s only, the new plan needs 10 s; parallel-track can do it"
    )


def test_nor_if_it_is_a_part_only():
    made = Context({BC: 10_000_000}, {BC: "other"}, "mine")
    assert refused(OLD, NEW, made) == (
        "the state of (b c) still holds only what the query other needs of it; "
        "parallel-track can do it"
    )


def test_what_maintains_a_state_of_others_holds_all_that_they_need():
    """Another query shares (a b c), of all a: a state of the high ones will not do below it."""
    query = joined("abcd", [("a", "b"), ("b", "c"), ("c", "d")], selects=[HIGH])
    b, c, d = (leaf(query, alias) for alias in "bcd")
    low, all_a = leaf(query, "a", HIGH), leaf(query, "a")
    old = plan(query, join(query, join(query, join(query, low, b), c), d))
    abc = join(query, join(query, all_a, b), c)
    new = plan(query, above(join(query, abc, d), HIGH))
    assert found(old, new)[1] == "derive (a b) in part from (a b)"
    others = {key(node): 10_000_000 for node in (all_a, abc)}
    assert found(old, new, Context(others)) == ["join (a b) from a, b"]
    del others[key(all_a)]
    assert refused(old, new, Context(others)) == (
        "the state of a cannot be made: it would lack rows that others need of it, or of what is "
        "made of it; parallel-track can do it"
    )
    made = Context({key(abc): 10_000_000}, {key(all_a): "q"}, "q")
    assert refused(plan(query, above(join(query, all_a, b, c, d), HIGH)), new, made).startswith(
        "the state of a still holds only what the query q needs of it"
    )


def test_what_another_query_keeps_is_not_dropped():
    left = match(OLD, NEW).dropped
    assert match(OLD, NEW, Context({left[0]: 1})).dropped == left[1:]


def test_a_state_kept_longer_than_what_it_is_made_from_is_a_part():
    """(a b) waits 30 s for b's sake; of a, 10 s are there."""
    query = joined("abc", [("a", "b"), ("b", "c")], cql({"a": 10, "b": 30, "c": 10}))
    old, new = of(query, "(a b c)"), of(query, "((a b) c)")
    assert found(old, new) == ["join (a b) in part from a, b"]


# --- no migration --------------------------------------------------------------------------------


def test_no_difference():
    assert refused(OLD, OLD) == "the job runs this plan already"


def test_only_the_orders_differ():
    new = of(CHAIN, "(d ((a b) c))")
    made = match(OLD, new)
    assert (len(made.kept), made.fills, made.dropped) == (6, (), ())


def test_another_query():
    other = joined("abcd", [("a", "b"), ("b", "c"), ("c", "d")], 20)
    assert refused(OLD, of(other, "(a b c d)")) == "the two plans are not of one query"


def test_a_fill_of_other_plans():
    with pytest.raises(Refused, match="is not made from"):
        recipe(OLD, NEW, Fill("x", How.JOIN, ("y",)))
