"""Rebuilding a state from those that are there: at once, or slice by slice between batches.

A slice is a range of event times of one source, and a commit of its own that says which it is: so
whoever comes after a crash finds how far it got.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from jobs.engine.executors import Executor
from jobs.engine.ingest import ALWAYS
from jobs.engine.lower import width
from jobs.engine.migration import Migration, coming
from jobs.engine.pace import Pace
from jobs.engine.rebuild import Slice, statement
from jobs.engine.states import States, table_of
from jobs.engine.store import Store
from optimizer.identity import identity
from optimizer.migration.matching import recipe
from optimizer.migration.steps import CutOver, Fill
from optimizer.plan import Plan


@dataclass
class Filler:
    """Fills the state of a migration's step as its pace allows."""

    store: Store
    executor: Executor
    states: States
    bucket: int
    pace: Pace
    timer: Callable[[], float]

    def build(self, m: Migration, batch: int, plans: Mapping[str, Plan]) -> tuple[Migration, bool]:
        """Fill a state before a batch, at once or, if batches maintain it already, in slices.

        The migration as it stands then, and whether the state is whole.
        """
        if not all(source in self.states.files for source in _fill(m).sources):
            return m, True  # no batch has been yet, so there is nothing in it
        if m.slices is None:
            m = replace(m, boundary=batch - 1)
            if _fill(m).state not in m.tracked:
                self._fill_whole(m, plans)
                return m, True
            m = self._sliced(m, plans)
            self.fill_some(m, plans)
        done = not self.lacks(m)
        return (replace(m, slices=None) if done else m), done

    def fill_some(self, m: Migration, plans: Mapping[str, Plan]) -> None:
        """As many slices as there is time for."""
        at, rows, last = self.filled(m), self._rows(m), _is_last(m)
        while more := self.pace.next(rows[at:], first=at == 0, last=last):
            began = self.timer()
            table = self._fill_slices(m, plans, at, at + more)
            took = self.timer() - began
            self.pace.filled(sum(rows[at : at + more]), took, first=at == 0, table=table)
            at += more

    def lacks(self, m: Migration) -> bool:
        """Whether a slice is missing that still has rows: nobody needs what is purged."""
        return any(self._rows(m)[self.filled(m) :])

    def filled(self, m: Migration) -> int:
        """How many slices are part of the state."""
        return self.store.last_batch(table_of(_fill(m).state), _writer(m)) + 1

    def _sliced(self, m: Migration, plans: Mapping[str, Plan]) -> Migration:
        """Cut the largest source at the ends of its partitions."""
        made = recipe(plans[m.request.query], coming(m.request, plans), _fill(m))
        keys = [identity(source).key for source in made.sources]
        source = max(range(len(keys)), key=lambda at: self.states.rows(keys[at]))
        ends = {file.until for file in self.states.files.get(keys[source], ())}
        return replace(m, source=source, slices=tuple(sorted(e for e in ends if e is not None)))

    def _rows(self, m: Migration) -> list[int]:
        """About how many rows of the source each slice has; what is purged has none."""
        rows: Counter[int | None] = Counter()
        for file in self.states.files.get(_fill(m).sources[m.source], ()):
            rows[file.until] += file.rows
        return [rows[end] for end in m.slices or ()]

    def _fill_slices(self, m: Migration, plans: Mapping[str, Plan], at: int, until: int) -> float:
        """Those from one up to another, as one that has the number of its last."""
        slices = m.slices or ()
        start = slices[at - 1] if at else ALWAYS
        return self._fill(m, plans, until - 1, Slice(m.source, start, slices[until - 1]))

    def _fill_whole(self, m: Migration, plans: Mapping[str, Plan]) -> None:
        """All at once; what an interrupted attempt left is thrown away."""
        self.states.drop(_fill(m).state)
        self._fill(m, plans, 0, None)

    def _fill(self, m: Migration, plans: Mapping[str, Plan], at: int, only: Slice | None) -> float:
        """Fill a slice; how many seconds of that its table has taken, if it is a new one."""
        fill, new = _fill(m), coming(m.request, plans)
        how = recipe(plans[m.request.query], new, fill)
        bucket = width(new.query, how.target, self.bucket)
        relation = f"fill_{fill.state}"
        self.states.step(f"fill:{fill.state}")
        self.executor.run(relation, statement(how, m.boundary, bucket, only))
        made = self._make_table(fill.state, relation, m.boundary + 1)
        table = table_of(fill.state)
        files = self.executor.write(relation, self.store, table, m.boundary)()
        self.store.commit(table, files, at, writer=_writer(m))
        self.states.add(fill.state, relation, files, m.boundary)
        self.executor.release()
        return made

    def _make_table(self, state: str, relation: str, before: int) -> float:
        if state in self.states.files:
            return 0.0
        began = self.timer()
        self.states.create(state, relation, before)
        return self.timer() - began


def _fill(m: Migration) -> Fill:
    assert isinstance(m.step, Fill)
    return m.step


def _is_last(m: Migration) -> bool:
    """Whether the new plan takes over once the state under way is filled."""
    return isinstance(m.steps[m.at + 1], CutOver) and not m.held


def _writer(m: Migration) -> str:
    return f"midstream-fill-{m.request.id}"
