"""When a window is complete, and what belongs to it."""

from stats.store import Window
from stats.windows import at, complete, portions, stretches, within

W = [Window(10 * i, 10 * i + 10) for i in range(6)]


def test_a_window_is_complete_once_the_watermark_has_passed_it():
    assert complete(13, 29, 10) == [W[1]]
    assert complete(13, 30, 10) == [W[1], W[2]]
    assert complete(13, 19, 10) == []
    assert complete(None, None, 10) == []


def test_windows_start_at_multiples_of_their_size():
    assert at(29, 10) == Window(20, 30)
    assert at(30, 10) == Window(30, 40)
    assert at(-1, 10) == Window(-10, 0)


def test_a_range_has_the_windows_that_share_time_with_it():
    assert within(W, 10, 30) == W[1:3]
    assert within(W, 19, 31) == W[1:4]
    assert within(W, None, 20) == W[:2]
    assert within(W, 45, None) == W[4:]


def test_gaps_part_windows():
    assert list(stretches([*W[:2], *W[3:]], 64)) == [W[:2], W[3:]]
    assert list(stretches(W, 4)) == [W[:4], W[4:]]
    assert list(stretches([], 4)) == []


def test_portions_have_no_more_rows_than_fit():
    rows = dict(zip(W, [3, 3, 9, 1, 1, 1], strict=True))
    assert list(portions(W, rows, 6)) == [W[:2], W[2:3], W[3:]]
