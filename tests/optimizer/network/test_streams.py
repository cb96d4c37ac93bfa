"""What implies what, and what covers what."""

import pytest

from optimizer.network.implication import implies, normal
from optimizer.network.load import Source, WindowLoad, volume
from optimizer.network.streams import Content, Part, Predicate, interned


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("num = 7", "NUM=7", True),
        ("num = 7", "num < 10", True),
        ("num < 10", "num = 7", False),
        ("num < 5", "num <= 5", True),
        ("num <= 5", "num < 5", False),
        ("num > 5", "num < 10", False),
        ("num between 2 and 3", "num >= 2", True),
        ("num between 2 and 3", "num > 2", False),
        ("num = 7", "size < 10", False),
        ("num = -1", "num < 0", True),
        ("dest = 'ATL'", "dest = 'atl'", False),
        ("dest = 'ATL'", "dest  =  'ATL'", True),
        ("dest = 'a = 7'", "a = 7", False),
        ("num = 7 or num = 8", "num < 9", False),
    ],
)
def test_implication(one: str, other: str, expected: bool):
    assert implies(normal(one), normal(other)) is expected


def content(width: float, *where: str) -> Content:
    return Content((Part("A", width, frozenset(map(Predicate.of, where))), Part("B", 10)))


def test_weaker_predicates_and_more_columns_cover():
    assert content(40, "num < 10").covers(content(20, "num = 7"))
    assert not content(40, "num = 7").covers(content(20, "num < 10"))
    assert not content(20).covers(content(40))
    assert not content(40, "num < 10", "gate = 1").covers(content(40, "num = 7"))


def test_the_widened_keeps_what_both_say():
    one, other = content(40, "num = 7", "gate = 1"), content(60, "num < 10", "gate = 1")
    assert one.widened(other) == content(60, "num < 10", "gate = 1")
    assert content(1, "num = 7").widened(content(1, "num = 8")) == content(1)
    assert one.widened(other).covers(one)
    assert one.widened(other).covers(other)


def test_what_passes_may_change_from_one_load_to_the_next():
    """Equal predicates are one whatever passes; a stream's bytes go by what passes of its own."""
    load = WindowLoad({"A": Source(10.0, 100.0, "n")}, 1.0)
    half, tenth = (
        Content((Part("A", 100.0, frozenset({Predicate.of("x < 5", share)})),))
        for share in (0.5, 0.1)
    )
    assert half == tenth
    assert [volume(load, one) for one in (half, tenth, half)] == [500.0, 100.0, 500.0]
    assert [volume(load, one.widened(one)) for one in (half, tenth)] == [500.0, 100.0]
    assert [volume(load, one.of("A")) for one in (half, tenth)] == [500.0, 100.0]


def test_equal_streams_are_one_object_while_the_same_share_of_them_passes():
    def of(share: float) -> Content:
        return Content((Part("A", 100.0, frozenset({Predicate.of("x < 5", share)})),))

    assert interned(of(0.5)) is interned(of(0.5))
    assert interned(of(0.5)) is not interned(of(0.1))
    assert interned(of(0.1)).shares == (0.1,)
