"""Rebuilding a state from those that are there: at once, or slice by slice between batches.

A slice is a range of event times of one source, and a commit of its own that says which it is: so
whoever comes after a crash finds how far it got.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from jobs.backends import SqlBackend
from jobs.engine.migration.backfill_budget import BackfillBudget
from jobs.engine.migration.definition import Migration, target_plan
from jobs.engine.migration.rebuild import Slice, statement
from jobs.engine.states import States
from jobs.tables.columns import ALWAYS
from jobs.tables.names import state_table
from jobs.tables.partitions import Partitioning, Widths
from jobs.tables.store import Store
from optimizer.identity import identity, retention
from optimizer.migration.matching import recipe
from optimizer.migration.steps import CutOver, Fill
from optimizer.plan import Plan

_SLICES = 64
"""Into how many a source is cut, about."""


@dataclass(frozen=True)
class _Span:
    """Rows whose oldest event times, in microseconds, lie in `[begin, end)`."""

    begin: int
    end: int
    rows: int

    def share(self, begin: int, end: int) -> float:
        """About how many of them lie in another range."""
        common = min(end, self.end) - max(begin, self.begin)
        return self.rows * max(0, common) / (self.end - self.begin)

    def ends(self, rows: float) -> Iterator[int]:
        """Where parts end that have about so many rows each."""
        parts = min(max(1, round(self.rows / rows)), self.end - self.begin)
        for part in range(1, parts + 1):
            yield self.begin + (self.end - self.begin) * part // parts


def _ends(spans: Sequence[_Span]) -> Iterator[int]:
    """Where slices end."""
    rows = sum(span.rows for span in spans) / _SLICES
    for span in spans:
        yield from span.ends(max(1, rows))


@dataclass
class Backfiller:
    """Fills the state of a migration's step as its pace allows."""

    store: Store
    backend: SqlBackend
    states: States
    widths: Widths
    pace: BackfillBudget
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
        cutoff = self.states.cutoff(_fill(m).sources[m.source])
        return any(end > cutoff for end in (m.slices or ())[self.filled(m) :])

    def filled(self, m: Migration) -> int:
        """How many slices are part of the state."""
        return self.store.last_batch(state_table(_fill(m).state), _writer(m)) + 1

    def _sliced(self, m: Migration, plans: Mapping[str, Plan]) -> Migration:
        """Cut the largest source into ranges of time that have about as many rows each."""
        made = recipe(plans[m.request.query], target_plan(m.request, plans), _fill(m))
        keys = [identity(source).key for source in made.sources]
        source = max(range(len(keys)), key=lambda at: self.states.rows(keys[at]))
        return replace(m, source=source, slices=tuple(_ends(list(self._spans(keys[source])))))

    def _spans(self, key: str) -> Iterator[_Span]:
        """The ranges of time in which the rows of a state lie, as far as its files tell."""
        rows: Counter[int] = Counter()
        for file in self.states.files.get(key, ()):
            rows[file.until or 0] += file.rows
        cutoff = self.states.cutoff(key)
        ends = sorted(end for end in rows if end > cutoff)
        begin = max(cutoff, 2 * ends[0] - ends[-1] - 1) if ends else cutoff
        for end in ends:
            yield _Span(begin, end, rows[end])
            begin = end

    def _rows(self, m: Migration) -> list[int]:
        """About how many rows of the source each slice has; none only if it is purged."""
        source = _fill(m).sources[m.source]
        spans, cutoff = list(self._spans(source)), self.states.cutoff(source)
        return [
            max(1, round(sum(s.share(begin, end) for s in spans))) if end > cutoff else 0
            for begin, end in pairwise((ALWAYS, *(m.slices or ())))
        ]

    def _fill_slices(self, m: Migration, plans: Mapping[str, Plan], at: int, until: int) -> float:
        """Those from one up to another, as one that has the number of its last."""
        slices = m.slices or ()
        start = slices[at - 1] if at else ALWAYS
        return self._fill(m, _fill(m), plans, until - 1, Slice(m.source, start, slices[until - 1]))

    def _fill_whole(self, m: Migration, plans: Mapping[str, Plan]) -> None:
        """All at once; what an interrupted attempt left is thrown away."""
        self._fill_at_once(m, _fill(m), plans)

    def fill_young(self, m: Migration, fills: Sequence[Fill], plans: Mapping[str, Plan]) -> None:
        """What is there already of the tuples that the new plan takes, at once."""
        for fill in fills:
            if all(source in self.states.files for source in fill.sources):
                self._fill_at_once(m, fill, plans)

    def _fill_at_once(self, m: Migration, fill: Fill, plans: Mapping[str, Plan]) -> None:
        self.states.drop(fill.state)
        self._fill(m, fill, plans, 0)

    def _fill(
        self,
        m: Migration,
        fill: Fill,
        plans: Mapping[str, Plan],
        at: int,
        only: Slice | None = None,
    ) -> float:
        """Fill a slice; how many seconds of that its table has taken, if it is a new one."""
        new, since = target_plan(m.request, plans), ALWAYS if m.since is None else m.since
        how = recipe(plans[m.request.query], new, fill)
        by = Partitioning(self.widths.of(how.target, retention(new.query, how.target)))
        relation = f"fill_{fill.state}"
        self.states.step(f"fill:{fill.state}")
        self.backend.run(relation, statement(how, m.boundary, only, since))
        made = self._make_table(fill.state, relation, m.boundary + 1)
        table = state_table(fill.state)
        files = self.backend.write(relation, self.store, table, m.boundary, by)()
        self.store.commit(table, files, at, writer=_writer(m))
        self.states.add(fill.state, relation, files, m.boundary)
        self.backend.release()
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
