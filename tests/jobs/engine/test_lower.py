"""What a batch's statements say about the partitions of states."""

import pytest

from jobs.engine.lower import width
from optimizer.plan import Join, build, parse, walk
from optimizer.window import MICROSECONDS, everywhere
from tests.optimizer.builders import joined

BUCKET = 10 * MICROSECONDS


@pytest.mark.parametrize(("window", "seconds"), [(30, 10), (199, 10), (300, 30), (345, 30)])
def test_a_state_of_joined_tuples_has_about_ten_partitions(window: int, seconds: int):
    bounds = everywhere("abc", window * MICROSECONDS)
    query = joined("abc", [("a", "b"), ("b", "c")], bounds)
    parts = [
        part
        for node in walk(build(query, parse("((a b) c)")).root)
        if isinstance(node, Join)
        for part in node.parts
    ]
    found = {"".join(sorted(part.aliases)): width(query, part, BUCKET) for part in parts}
    assert found == {
        "a": BUCKET, "b": BUCKET, "c": BUCKET, "ab": seconds * MICROSECONDS
    }  # fmt: skip
