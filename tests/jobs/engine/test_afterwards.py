"""What is left of a batch goes on beside Spark, but never beside the next batch."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from threading import Event, Thread

import pytest

from jobs.engine.afterwards import Afterwards
from jobs.engine.executors.duck import DuckExecutor
from jobs.engine.ingest import Ingest
from jobs.engine.microbatch import Engine, Job
from jobs.engine.progress import last
from jobs.engine.store import MemoryStore
from jobs.engine.upkeep import Limits, tidy
from optimizer.plan import build, parse
from tests.optimizer.builders import joined, stream
from tests.simulation.case import Row, relation

SECOND = 1_000_000
PATIENCE = 20
"""Seconds after which a test has failed."""


@pytest.fixture
def afterwards() -> Iterator[Afterwards]:
    made = Afterwards(threaded=True)
    yield made
    with suppress(ZeroDivisionError):
        made.close()


def test_without_threads_everything_happens_at_once():
    done: list[str] = []
    afterwards = Afterwards(threaded=False)
    afterwards.do(lambda: done.append("now"))
    assert done == ["now"]
    with pytest.raises(ZeroDivisionError):
        afterwards.do(_fail)


def test_one_thing_is_done_after_another(afterwards: Afterwards):
    begin = Event()
    done: list[int] = []

    def first() -> None:
        assert begin.wait(PATIENCE)
        done.append(1)

    afterwards.do(first)
    afterwards.do(lambda: done.append(2))
    afterwards.check()
    assert done == []
    begin.set()
    afterwards.wait()
    assert done == [1, 2]


def test_an_error_is_raised_each_time_and_ends_the_work(afterwards: Afterwards):
    done: list[int] = []
    afterwards.do(_fail)
    afterwards.do(lambda: done.append(1))
    for look in (afterwards.wait, afterwards.wait, afterwards.check, afterwards.close):
        with pytest.raises(ZeroDivisionError):
            look()
    assert done == []


def test_the_next_batch_waits():
    hold, reached = Event(), Event()

    def step(name: str) -> None:
        if name.startswith("purge:"):
            reached.set()
            assert hold.wait(PATIENCE)

    store = MemoryStore()
    engine = _engine(store, step)
    _run_until_purged(engine, reached)
    done = engine.progress.batch
    assert last(store).batch == done, "the batch is done before its states are purged"
    tidy(engine, lambda: True, Limits(files=1))
    following = Thread(target=engine.run, args=(done + 1, _input(done + 1)))
    following.start()
    following.join(0.2)
    assert following.is_alive()
    assert last(store).batch == done
    hold.set()
    following.join(PATIENCE)
    engine.close()
    assert last(store).batch == done + 1
    _is_as_without_threads(store, done + 1)


def test_an_error_surfaces_in_the_next_batch_and_at_the_end():
    reached = Event()

    def step(name: str) -> None:
        if name.startswith("purge:"):
            reached.set()
            raise OSError("no space")

    store = MemoryStore()
    engine = _engine(store, step)
    _run_until_purged(engine, reached)
    done = engine.progress.batch
    for _ in range(2):
        with pytest.raises(OSError, match="no space"):
            engine.run(done + 1, _input(done + 1))
    with pytest.raises(OSError, match="no space"):
        engine.run(done, _input(done))
    with pytest.raises(OSError, match="no space"):
        engine.close()
    assert last(store).batch == done
    again = _engine(store)
    again.run(done + 1, _input(done + 1))
    again.close()
    _is_as_without_threads(store, done + 1)


def _fail() -> None:
    raise ZeroDivisionError


def _run_until_purged(engine: Engine, reached: Event) -> None:
    for number in range(10):
        engine.run(number, _input(number))
        if reached.wait(0.5):
            return
    raise AssertionError("nothing is ever purged")


def _is_as_without_threads(store: MemoryStore, until: int) -> None:
    other = MemoryStore()
    engine = _engine(other, writers=0)
    for number in range(until + 1):
        engine.run(number, _input(number))
    engine.close()
    assert store.tables() == other.tables()
    for table in store.tables():
        if not table.startswith("control/"):
            rows, expected = (one.load(table).to_pylist() for one in (store, other))
            assert sorted(map(repr, rows)) == sorted(map(repr, expected)), table


def _engine(
    store: MemoryStore, step: Callable[[str], None] = lambda _: None, writers: int = 2
) -> Engine:
    plan = build(joined("ab", [("a", "b")]), parse("(a b)"))
    streams = {one.name: Ingest(one) for one in plan.query.streams.values()}
    job = Job("j", streams, {"q": plan}, bucket=SECOND)
    clock = count(100 * SECOND)
    return Engine(job, store, DuckExecutor(writers), clock.__next__, step=step, writers=writers)


def _input(batch: int):
    """Far enough from the batch before for its rows to be purged soon."""
    rows = [Row((n, n, n, (1 + 10 * batch + n) * SECOND)) for n in range(3)]
    return {name: relation(stream(name, "k", "v", "w"), rows) for name in "ab"}
