"""What our steps cost, by hand; and what people are shown of it."""

import json
from dataclasses import replace
from math import ceil

import pytest

from optimizer.cost.dual import price
from optimizer.estimate import Estimator
from optimizer.explain import share
from optimizer.migration import MIGRATIONS, compared
from optimizer.migration.cost import Beginning, Effort, Figures, Range, effort, spell
from optimizer.migration.matching import Context, States, name, young
from optimizer.migration.preview import preview
from optimizer.migration.steps import with_proof
from optimizer.plan import Plan, build, parse
from optimizer.query import Query
from optimizer.window import MICROSECONDS
from optimizer.workload import Method, UnitCosts
from tests.optimizer.builders import counts, joined, total, where, workload
from tests.optimizer.migration.by_hand import above, join, leaf, plan

COSTS = UnitCosts(statement=1.0, scan=1e-3, probe=2e-3, match=3e-3, write=5e-3, write_byte=1e-5)
CHAIN = joined("abc", [("a", "b"), ("b", "c")])
OLD, NEW = (build(CHAIN, parse(tree)) for tree in ("((a b) c)", "(a (b c))"))
LOAD = workload(
    {"a": 10, "b": 20, "c": 5}, {("a", "b"): 0.1, ("b", "c"): 0.02}, unit_costs=COSTS, batch=5.0
)
FIGURES = Figures(LOAD)
"""10 s windows: 100, 200 and 50 rows; (b c) has 200 * 50 * 0.02 = 200 rows."""


def of(strategy: str, figures: Figures = FIGURES, old: Plan = OLD, new: Plan = NEW) -> Effort:
    return effort(MIGRATIONS[strategy](old, new, Context()), old, new, figures)


def keys(query_plan: Plan) -> dict[str, str]:
    return {name(nodes[0]): key for key, nodes in States.of(query_plan).nodes.items()}


def test_a_join():
    """(b c): scan 250, probe with the 200 of b, match and write 200 of two streams' columns.

    Two inputs and a table are three statements' worth.
    """
    (fill,) = of("moving-state").fills
    assert (fill.scanned, fill.probed, fill.matched, fill.written) == pytest.approx(
        (250, 200, 200, 200)
    )
    width = 100 * 3 / 4 + 100 * 2 / 4  # of four columns alike: k, v, ts of b, v and ts of c
    seconds = 3 + 0.25 + 200 * 2e-3 + 200 * 3e-3 + 200 * (5e-3 + width * 1e-5)
    assert fill.seconds == pytest.approx(seconds)


def test_fills_as_a_share_of_a_batch():
    """5.5 s, and a batch is 5 s of input, by the cost model's own method."""
    a_batch = 5.0 * price(OLD, Estimator(CHAIN, replace(LOAD, method=Method.BATCH))).total.cpu
    assert of("background").takes == pytest.approx(5.5 / a_batch)
    assert of("parallel-track").takes == 0


def test_measured_rows_count_instead_of_estimates():
    """Twice as many rows of b, thrice of c: six times as many pairs."""
    names = keys(NEW)
    (fill,) = of("moving-state", Figures(LOAD, {names["b"]: 400, names["c"]: 150})).fills
    assert (fill.scanned, fill.probed, fill.matched, fill.written) == pytest.approx(
        (550, 400, 1200, 1200)
    )


def test_an_mjoin_is_probed_in_its_order():
    """d 30 rows; b finds 200 in c, then each of these 30 * 0.1 in d."""
    query = joined("abcd", [("a", "b"), ("b", "c"), ("c", "d")])
    load = workload(
        {"a": 10, "b": 20, "c": 5, "d": 3}, {("a", "b"): 0.1, ("b", "c"): 0.02, ("c", "d"): 0.1}
    )
    old, new = build(query, parse("(a b c d)")), build(query, parse("(a (b c d))"))
    (fill,) = of("moving-state", Figures(load), old, new).fills
    assert (fill.scanned, fill.probed, fill.matched, fill.written) == pytest.approx(
        (280, 200 + 200, 200 + 600, 600)
    )


def test_rows_that_were_tried_count_and_how_many_there_may_be():
    """6,000 of (b c) and 9,000 at most, where the workload has 200: each is matched and written."""
    made = {keys(NEW)["(b c)"]: Range(6000.0, 9000.0)}
    whole = of("moving-state", Figures(LOAD, made=made))
    (fill,) = whole.fills
    assert (fill.matched, fill.written, fill.most) == pytest.approx((6000, 6000, 9000))
    row = 3e-3 + 5e-3 + (100 * 3 / 4 + 100 * 2 / 4) * 1e-5
    fixed = 3 + 0.25 + 200 * 2e-3
    assert fill.seconds == whole.pause == pytest.approx(fixed + 6000 * row)
    assert fill.slowest == whole.longest == pytest.approx(fixed + 9000 * row)


def test_a_filled_state_feeds_the_next():
    query = joined("abcd", [("a", "b"), ("b", "c"), ("c", "d")])
    load = workload(
        {"a": 10, "b": 20, "c": 5, "d": 3}, {("a", "b"): 0.1, ("b", "c"): 0.02, ("c", "d"): 0.1}
    )
    old, new = build(query, parse("(a b c d)")), build(query, parse("(a ((b c) d))"))
    rows = {keys(old)["b"]: 400.0}
    low, high = of("moving-state", Figures(load, rows), old, new).fills
    assert low.written == pytest.approx(400)
    assert (high.scanned, high.probed, high.written) == pytest.approx((430, 400, 1200))


SELECTED = joined("abc", [("a", "b"), ("b", "c")], selects=[where("a.v")])


def selects(query: Query) -> tuple[Plan, Plan]:
    b, c = leaf(query, "b"), leaf(query, "c")
    raw = plan(query, above(join(query, leaf(query, "a"), b, c), where("a.v")))
    return raw, plan(query, join(query, leaf(query, "a", where("a.v")), b, c))


def test_a_filter():
    """100 rows of a, a quarter of which pass."""
    old, new = selects(SELECTED)
    load = workload(
        {"a": 10, "b": 20, "c": 5}, {("a", "b"): 0.1, ("b", "c"): 0.02},
        unit_costs=COSTS, selects={"a": 0.25},
    )  # fmt: skip
    (fill,) = of("moving-state", Figures(load), old, new).fills
    assert (fill.scanned, fill.probed, fill.matched, fill.written) == pytest.approx((100, 0, 0, 25))
    assert fill.seconds == pytest.approx(2 + 0.1 + 25 * (5e-3 + 100 * 1e-5))


def test_combining():
    """b brings 20 tuples a second, of which combining leaves 4; 300 are there instead of 200."""
    query = joined("ab", [("a", "b")], grouping=counts("a.k", total("t", "b.v")))
    old, new = build(query, parse("(a b)")), build(query, parse("(a [b])"))
    load = workload({"a": 10, "b": 20}, {("a", "b"): 0.1}, combine={"b": 4.0})
    (fill,) = of("moving-state", Figures(load, {keys(old)["b"]: 300}), old, new).fills
    assert (fill.scanned, fill.probed, fill.written) == pytest.approx((300, 300, 60))


# --- whole migrations ----------------------------------------------------------------------------


def test_moving_state_stops_the_job():
    made = of("moving-state")
    assert made.pause == made.lasts == made.work == made.fills[0].seconds


def usual() -> float:
    """What a batch takes by the old plan."""
    return 5.0 * price(OLD, Estimator(CHAIN, replace(LOAD, method=Method.BATCH))).total.cpu


def test_background_does_not():
    """What three quarters of a fifth of a batch bear is filled at once; 5.5 s here."""
    made = of("background")
    assert 0.75 * 0.2 * usual() > 5.5
    assert (made.pause, made.work, made.lasts) == (0, made.fills[0].seconds, made.work)


def test_background_in_what_batches_leave():
    """40 times the rows: each batch leaves a fifth of itself; (b c) is maintained all the while.

    Maintaining it: 1 s of statement a batch, 2 * 20 * 5 * 0.02 * 10 rows a second kept, two inputs
    probed with 25 rows a second and 250 scanned, each once a batch, and as many matched as kept.
    """
    names = keys(NEW)
    made = of("background", Figures(LOAD, {names["b"]: 8000.0}))
    seconds = made.fills[0].seconds
    batches = ceil(seconds / (0.2 * usual()))
    assert batches > 1
    assert made.lasts == pytest.approx(5 * batches)
    width = 100 * 3 / 4 + 100 * 2 / 4
    kept = 1 / 5 + 40 * (5e-3 + width * 1e-5)
    probes = 25 * 2e-3 + 250 * 1e-3 / 5 + 40 * 3e-3
    assert made.work == pytest.approx(seconds + 5 * batches * (kept + probes))


def test_a_trigger_leaves_time_for_slices():
    """Of 120 s less a batch, and a fifth of 100 s more."""
    names = keys(NEW)
    made = of("background", Figures(LOAD, {names["b"]: 80_000.0}, interval=100.0))
    room = 1.2 * 100 - usual()
    assert made.lasts == pytest.approx(5 * ceil(made.fills[0].seconds / room))


def test_what_is_forgone_until_the_cut_over():
    """The new plan saves what the old one takes more, but not before it runs."""
    made = of("parallel-track", Figures(LOAD, lateness=3 * MICROSECONDS))
    load = replace(LOAD, method=Method.BATCH)
    old, new = (price(plan, Estimator(CHAIN, load)).total.cpu for plan in (OLD, NEW))
    assert old > new
    assert made.forgone == pytest.approx(13 * (old - new))
    assert made.cost == made.work + made.forgone
    back = of("parallel-track", old=NEW, new=OLD)
    assert back.forgone == 0


def test_parallel_track_waits_for_the_window_and_the_lateness():
    """Beside the old plan: the state (b c), its join, the last join, and a statement of results."""
    made = of("parallel-track", Figures(LOAD, lateness=3 * MICROSECONDS))
    assert (made.pause, made.lasts, made.fills) == (0, 13, ())
    load = workload(
        {"a": 10, "b": 20, "c": 5}, {("a", "b"): 0.1, ("b", "c"): 0.02},
        method=Method.BATCH, unit_costs=COSTS, batch=5.0,
    )  # fmt: skip
    priced = price(NEW, Estimator(CHAIN, load)).total.cpu
    width = 75.0
    leaves = sum(1.0 / 5 + rate * (5e-3 + 1e-5 * width) for rate in (10, 20, 5))
    assert made.beside == pytest.approx(priced - leaves + 1.0 / 5)
    assert made.work == pytest.approx(13 * made.beside)


def test_a_track_stops_the_job_while_it_fills_what_is_younger():
    """Of 200 rows of b and 50 of c, 4 and 10 are past the newest of a: 4 * 10 * 0.02 of (b c)."""
    names = keys(NEW)
    fills = tuple(fill for fill in young(OLD, NEW, Context()).values() if fill)
    assert [fill.state for fill in fills] == [names["(b c)"]]
    begins = Beginning(fills, {names["a"]: 0.0, names["b"]: 4.0, names["c"]: 10.0})
    made, bare = of("parallel-track", Figures(LOAD, begins=begins)), of("parallel-track")
    width = 100 * 3 / 4 + 100 * 2 / 4
    rows = 4 * 10 * 0.02
    seconds = 3 + 0.25 + 4 * 2e-3 + rows * (3e-3 + 5e-3 + width * 1e-5)
    assert bare.pause == 0
    assert made.pause == made.longest == pytest.approx(seconds)
    assert made.lasts == pytest.approx(bare.lasts + seconds)
    assert made.work == pytest.approx(bare.work + seconds)
    figures = Figures(LOAD, begins=begins)
    options, _ = compared(OLD, NEW, Context(), figures)
    (track,) = (one for one in options if one.strategy == "parallel-track")
    told = f"first the job stops for {spell(seconds)}, {share(seconds, 5.0)} of a batch"
    assert track.told(5.0).endswith(told)
    shown = preview(MIGRATIONS["parallel-track"](OLD, NEW, Context()), OLD, NEW, figures)
    assert shown.to_json()["pause"] == pytest.approx(seconds)


def test_states_that_a_track_fills_feed_the_next_ones():
    query = joined("abcd", [("a", "b"), ("b", "c"), ("c", "d")])
    load = workload(
        {"a": 10, "b": 20, "c": 5, "d": 3}, {("a", "b"): 0.1, ("b", "c"): 0.02, ("c", "d"): 0.1},
        unit_costs=COSTS,
    )  # fmt: skip
    old, new = build(query, parse("(a b c d)")), build(query, parse("(a ((b c) d))"))
    names = keys(old)
    fills = tuple(fill for fill in young(old, new, Context()).values() if fill)
    rows = {names["a"]: 0.0, names["b"]: 20.0, names["c"]: 10.0, names["d"]: 6.0}
    made = of("parallel-track", Figures(load, begins=Beginning(fills, rows)), old, new)
    whole = {"b": 200.0, "c": 50.0, "d": 30.0}
    low = 20 * 10 * 0.02
    high = low * 6 * 0.1
    scans = (whole["b"] + whole["c"] + low + whole["d"]) * 1e-3
    nodes, estimator = States.of(new).nodes, Estimator(query, load)
    widths = [estimator.node(nodes[fill.state][0]).width for fill in fills]
    each = [3e-3 + 5e-3 + width * 1e-5 for width in widths]
    probes = (20 + low) * 2e-3
    assert made.pause == pytest.approx(6 + scans + probes + low * each[0] + high * each[1])


def test_what_is_computed_already_costs_nothing_beside():
    """With (b c) there, only the last join runs twice."""
    bc = keys(NEW)["(b c)"]
    steps = MIGRATIONS["parallel-track"](OLD, NEW, Context({bc: 10 * MICROSECONDS}))
    assert effort(steps, OLD, NEW, FIGURES).beside < of("parallel-track").beside


def test_a_proof_takes_its_batches():
    steps = with_proof(MIGRATIONS["moving-state"](OLD, NEW, Context()), 2)
    made, bare = effort(steps, OLD, NEW, FIGURES), of("moving-state")
    assert made.pause == bare.pause
    assert made.lasts == pytest.approx(bare.lasts + 2 * 5)
    assert made.work == pytest.approx(bare.work + 10 * made.beside)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 ms"), (0.0123, "12 ms"), (3.4, "3.4 s"), (300, "5 min"), (7200, "2 h")],
)
def test_times_as_people_read_them(seconds, text):
    assert spell(seconds) == text


# --- preview -------------------------------------------------------------------------------------


def test_what_people_are_shown():
    shown = preview(MIGRATIONS["moving-state"](OLD, NEW, Context()), OLD, NEW, FIGURES)
    assert sorted((line.state, round(line.rows)) for line in shown.kept) == [
        ("a", 100), ("b", 200), ("c", 50),
    ]  # fmt: skip
    (made,) = shown.rebuilt
    assert (made.state, made.how, made.sources, made.partial) == (
        "(b c)",
        "join",
        ("b", "c"),
        False,
    )
    assert (made.rows, made.seconds) == (200, shown.effort.pause)
    (gone,) = shown.dropped
    assert (gone.state, gone.rows) == ("(a b)", 2000)


def test_a_state_that_grows_by_itself():
    shown = preview(MIGRATIONS["parallel-track"](OLD, NEW, Context()), OLD, NEW, FIGURES)
    (made,) = shown.rebuilt
    assert (made.state, made.how, made.rows, made.seconds) == ("(b c)", "parallel", 200, 0)


def test_what_programs_are_told():
    shown = preview(MIGRATIONS["background"](OLD, NEW, Context()), OLD, NEW, FIGURES)
    data = json.loads(json.dumps(shown.to_json()))
    assert list(data) == [
        "kept", "rebuilt", "dropped", "pause", "longest_pause", "lasts", "work",
    ]  # fmt: skip
    assert data["rebuilt"][0] == {
        "state": "(b c)", "key": keys(NEW)["(b c)"], "rows": pytest.approx(200), "how": "join",
        "sources": ["b", "c"], "seconds": pytest.approx(data["work"]), "partial": False,
        "most": pytest.approx(200),
    }  # fmt: skip
