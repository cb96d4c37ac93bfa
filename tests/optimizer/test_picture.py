"""Pictures: well-formed whatever the names, and nothing on top of anything else."""

import re
from itertools import combinations, pairwise
from random import Random
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimizer.cost.dual import Priced, price
from optimizer.estimate import Estimator
from optimizer.picture import as_svg, diff
from optimizer.picture.svg import fit, text_width
from optimizer.plan import build, parse
from optimizer.query import Query
from optimizer.workload import Budget, Workload
from tests.optimizer.builders import (
    cases,
    counts,
    joined,
    names_of,
    random_case,
    stream,
    total,
    trees,
    where,
)

SVG = "{http://www.w3.org/2000/svg}"


def priced(query: Query, tree: str, load: Workload | None = None) -> Priced:
    return price(build(query, parse(tree)), Estimator(query, load or Workload.assume(query)))


Rectangle = tuple[float, float, float, float]


def texts(element: ET.Element, x: float = 0, y: float = 0) -> list[tuple[Rectangle, str]]:
    """Where each line of text is, at its widest."""
    if moved := re.match(r"translate\((\S+) (\S+)\)", element.get("transform", "")):
        x, y = x + float(moved[1]), y + float(moved[2])
    found = []
    if element.tag == f"{SVG}text":
        font, text = float(element.get("font-size", 0)), element.text or ""
        width = text_width(text, font, bold=element.get("font-weight") is not None)
        part = {"start": 0, "middle": 0.5, "end": 1}[element.get("text-anchor", "start")]
        left, base = x + float(element.get("x", 0)) - part * width, y + float(element.get("y", 0))
        found.append(((left, base - 0.8 * font, left + width, base + 0.2 * font), text))
    for child in element:
        found += texts(child, x, y)
    return found


def overlap(one: Rectangle, other: Rectangle) -> bool:
    return (
        one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
    )  # fmt: skip


def check(svg: str) -> None:
    """Nothing overlaps, nothing is outside."""
    root = ET.fromstring(svg)
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    found = texts(root)
    assert found
    for (left, top, right, bottom), text in found:
        assert left >= 0, text
        assert top >= 0, text
        assert right <= width, text
        assert bottom <= height, text
    for (one, first), (other, second) in combinations(found, 2):
        assert not overlap(one, other), (first, second)


@settings(max_examples=60)
@given(cases(2, 12), st.data())
def test_no_text_overlaps_or_is_clipped(case, data):
    query, load = case
    plan = build(query, data.draw(trees(query.aliases)))
    check(as_svg(price(plan, Estimator(query, load)), "A title", Budget(cpu=1, tuples=100)))


NAMES = ("temperature_readings_of_every_sensor_in_the_house_and_garden", "W" * 40, "名前" * 20)


def test_long_names_are_shortened():
    query = joined(
        NAMES, pairwise(NAMES), selects=[where(f"{NAMES[0]}.v", "IN (" + "1, " * 50 + "2)")]
    )
    svg = as_svg(priced(query, f"(({NAMES[0]} {NAMES[1]}) {NAMES[2]})"), "A very long title " * 20)
    check(svg)
    assert "…" in svg
    for name in NAMES:
        assert name in svg  # in full where the pointer rests


def test_grouped_and_crossed_plans():
    grouped = joined("ABC", [("A", "B")], grouping=counts("A.v", total("s", "B.w"), slide=10))
    check(as_svg(priced(grouped, "((A [B])@db C)", Workload.assume(grouped, combine={"B": 5.0}))))
    check(as_svg(priced(joined("ABC", [("A", "B")]), "((A C) B)")))
    check(as_svg(priced(joined("A", []), "A")))


@pytest.mark.parametrize(
    "text", ["= '<b>&\"\\''", "= '\x00\x1b\x7f'", "= 'a]]>b'", "= '\ud800\uffff'"]
)
def test_any_text_is_escaped(text):
    query = joined("AB", [("A", "B")], selects=[where("A.v", text.replace("\0", "\x01"))],
                   streams={"A": stream("<A> & co", "k", "v", "w")})  # fmt: skip
    svg = as_svg(priced(query, "(A B)"), "<title> & 'more' \x07")
    ET.fromstring(svg.encode())
    check(svg)


def test_a_budget_that_is_exceeded_says_so():
    query, load = random_case(3, Random(1))
    svg = as_svg(priced(query, "((A B) C)", load), budget=Budget(cpu=1e-6, bytes=1))
    assert "times of 1e-06" in svg
    check(svg)


def test_what_a_migration_keeps_rebuilds_and_drops():
    names = names_of(4)
    query = joined(names, pairwise(names))
    svg = diff(priced(query, "(((A B) C) D)"), priced(query, "((A B) (C D))"), "Moved")
    found = [text for _, text in texts(ET.fromstring(svg))]
    assert {"5 kept", "1 rebuilt", "1 dropped"} <= set(found)
    check(svg)


def test_pictures_do_not_change_from_run_to_run():
    query, load = random_case(6, Random(2))
    tree = "((A B C) ((D E) F))"
    assert as_svg(priced(query, tree, load)) == as_svg(priced(query, tree, load))


@given(st.text(max_size=60), st.floats(20, 300))
def test_texts_are_cut_to_fit(text, width):
    cut = fit(text, width, 12)
    assert text_width(cut, 12) <= max(width, text_width("…", 12))
    assert cut == text or cut.endswith("…")
