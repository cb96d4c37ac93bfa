"""Whether a state is filled at once, before any batch has to maintain it."""

import pytest

from jobs.engine.migration.backfill_budget import BackfillBudget

USUAL = 1.0
ROWS = [1000] * 4


def pace(interval: float = 0.0) -> BackfillBudget:
    made = BackfillBudget(interval)
    for took in (9.0, USUAL, USUAL):
        made.rest(took)
    return made


def filled(
    made: BackfillBudget, price: float, row: float, states: int = 1, table: float = 0.0
) -> list[list[int]]:
    """What is filled of so many states, one after another, if it takes that long."""
    done: list[list[int]] = []
    for _ in range(states):
        done.append([])
        while more := made.next(ROWS[sum(done[-1]) :], first=not done[-1], last=False):
            rows = more * ROWS[0]
            new = 0.0 if done[-1] else table
            made.filled(rows, price + row * rows + new, first=not done[-1], table=new)
            done[-1].append(more)
    return done


def test_what_the_next_batch_bears_is_filled_at_once():
    made = pace()
    made.before(saves=0.0)
    assert filled(made, price=0.0, row=0.04 / 1000) == [[1, 3]]


def test_what_it_does_not_bear_waits():
    made = pace()
    made.before(saves=0.0)
    assert filled(made, price=0.0, row=0.06 / 1000) == [[1]]


def test_three_quarters_of_what_the_new_plan_is_said_to_save_are_counted_on():
    made = pace()
    made.before(saves=0.4)
    assert filled(made, price=0.0, row=0.12 / 1000) == [[1, 3]]
    made.before(saves=0.4)
    assert filled(made, price=0.0, row=0.13 / 1000) == [[1]]


def test_what_is_said_to_fit_well_is_filled_without_a_try():
    made = pace()
    made.before(saves=0.4, takes=0.37)
    assert filled(made, price=0.1, row=0.02 / 1000, states=2) == [[4], [4]]
    made.before(saves=0.4, takes=0.38)
    assert filled(made, price=0.1, row=0.02 / 1000, states=2) == [[1, 3], [4]]


def test_what_takes_more_than_was_said_is_not_gone_on_with():
    made = pace()
    made.before(saves=0.4, takes=0.1)
    assert filled(made, price=0.0, row=0.13 / 1000, states=2) == [[4], []]


def test_of_the_second_state_the_price_of_a_slice_is_known():
    made = pace()
    made.before(saves=0.0)
    assert filled(made, price=0.04, row=0.0, states=2) == [[1, 3], [4]]


def test_a_table_is_made_once_for_each_state():
    made = pace()
    made.before(saves=0.0)
    assert filled(made, price=0.0, row=0.01 / 1000, table=0.06) == [[1, 3]]
    assert filled(made, price=0.0, row=0.01 / 1000, table=0.06) == [[4]]
    made.before(saves=0.0)
    assert filled(made, price=0.0, row=0.01 / 1000, states=2, table=0.07) == [[1, 3], []]


def test_without_a_usual_batch_nothing_is():
    made = BackfillBudget()
    made.before(saves=0.5)
    assert filled(made, price=0.0, row=0.0) == [[]]


def test_time_until_the_next_batch_is_filled_with_more():
    made = pace(interval=3.0)
    assert made.rests
    made.before(saves=0.0, took=USUAL)
    assert filled(made, price=0.0, row=0.5 / 1000) == [[1, 3]]
    made.before(saves=0.0, took=USUAL)
    assert filled(made, price=0.0, row=0.7 / 1000) == [[1, 1]]


@pytest.mark.parametrize("interval", [0.0, 1.1])
def test_a_busy_job_does_not_rest(interval):
    assert not pace(interval).rests


def test_slices_may_last_until_the_next_batch():
    made = pace(interval=3.0)
    made.after(took=USUAL)
    assert filled(made, price=0.0, row=0.6 / 1000) == [[1, 3]]
    made.after(took=USUAL)
    assert filled(made, price=0.0, row=1.0 / 1000) == [[1, 1]]
