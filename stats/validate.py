"""Whether a window of statistics is to be believed: what is expected of it, and the verdict.

A window that breaks an expectation is quarantined: it stays where it is, with the reasons, and no
decision uses it until it has been gathered again.  docs/validation.md says why each rule is there.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from typing import Any

import duckdb
import great_expectations as gx
import great_expectations.expectations as gxe
import pandas as pd
import pyarrow as pa
from deltalake import DeltaTable
from great_expectations.data_context.types.base import ProgressBarsConfig

from stats.frames import HISTORY, Expected, figures, frame, presences
from stats.store import (
    BATCHES,
    COLUMNS,
    COMBINED,
    EDGES,
    GATHERED,
    GROUPS,
    KEYS,
    OPERATORS,
    SELECTS,
    STREAMS,
    TABLES,
    VALIDATIONS,
    VERDICTS,
    StatsStore,
    Window,
    load,
    readable,
    strange,
)

SUBJECTS = 3
"""How many of those that break a rule are named; the others are counted."""
ROUNDING = 1e-6
"""By what share figures may differ that were computed in another order."""
ANOTHER = 100
"""Tuples that are wider or narrower by such a factor are not the same stream."""
TOGETHER = 100
"""So many windows are judged at once."""
STALE = "-stale"

_Described = Mapping[Any, list[dict[str, Any]]]
"""Rows, by table or by window."""


# --- the rules -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    """An expectation, and how to say for one row that it is broken."""

    name: str
    says: str
    """With a row's figures in braces."""
    expectation: type[gxe.Expectation]
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def build(self) -> gxe.Expectation:
        """As Great Expectations takes it; its results come in another order, so it is named."""
        return self.expectation(**self.arguments, meta={"rule": self.name})


def _between(name: str, says: str, column: str, least: float | None, most: float | None) -> Rule:
    arguments = {"column": column, "min_value": least, "max_value": most}
    return Rule(name, says, gxe.ExpectColumnValuesToBeBetween, arguments)


def _not_negative(column: str, what: str) -> Rule:
    says = f"{what} of {{subject}} is {{{column}}}, below 0"
    return _between(f"{column}-not-negative", says, column, 0, None)


def _known(column: str, what: str) -> Rule:
    says = f"{what} of {{subject}} is not known"
    return Rule(f"{column}-known", says, gxe.ExpectColumnValuesToNotBeNull, {"column": column})


def _close(name: str, says: str, column: str) -> Rule:
    return _between(name, says, column, 0, ROUNDING)


def _equal(name: str, says: str, column: str) -> Rule:
    return _between(name, says, column, 0, 0)


def _once() -> Rule:
    columns = ["window_start", "subject"]
    kind = gxe.ExpectCompoundColumnsToBeUnique
    return Rule("once", "{subject} is there more than once", kind, {"column_list": columns})


def _streams() -> list[Rule]:
    return [
        _once(),
        _known("rows", "the number of rows"),
        _not_negative("rows", "the number of rows"),
        _known("rate", "the rate"),
        _close("rate-of-rows", "the rate of {subject} is {rate}/s, but {rows} rows in {seconds} s"
               " are {found}/s", "rate_off"),
        _not_negative("burstiness", "the burstiness"),
        _not_negative("width", "the bytes a tuple"),
        _not_negative("accepted", "the number of accepted rows"),
        _not_negative("late", "the number of late rows"),
        _not_negative("rejected", "the number of rejected rows"),
        _equal("all-accounted-for", "{taken} rows of {subject} were taken, but {accepted} accepted,"
               " {late} late and {rejected} rejected make {told}", "unaccounted"),
        _between("rows-that-moved-on", "{subject} has {rows} rows, where batches moved its newest"
                 " event time on {least} times", "rows_lacking", None, 0),
        _between("rows-as-accepted", "{subject} has {rows} rows, more than the {most} that the job"
                 " accepted in all batches that may have taken any", "rows_beyond", None, 0),
        _between("width-as-before", "a tuple of {subject} has {width} bytes, where it has had"
                 f" {{width_before}}: a factor beyond {ANOTHER}", "width_by_before",
                 1 / ANOTHER, ANOTHER),
    ]  # fmt: skip


def _columns() -> list[Rule]:
    return [
        _once(),
        _known("rows", "the number of rows"),
        _equal("rows-of-stream", "{rows} rows were looked at for {subject}, but its stream has"
               " {stream_rows}", "rows_off"),
        _not_negative("nulls", "the number of nulls"),
        _known("distinct", "the number of distinct values"),
        _not_negative("distinct", "the number of distinct values"),
        _between("values-within-rows", "{subject} has {nulls} nulls and {distinct} distinct values"
                 " in {rows} rows", "beyond", None, 0),
        _between("heavy-within-rows", "the heaviest values of {subject} have {heavy_rows} rows and"
                 " {nulls} are null, of {rows}", "heavy_beyond", None, 0),
    ]  # fmt: skip


def _edges() -> list[Rule]:
    within = "the selectivity of {subject} is {selectivity}, not within 0..1"
    return [
        _once(),
        _known("pairs", "the number of pairs"),
        _not_negative("pairs", "the number of pairs"),
        _close("pairs-of-rows", "{subject} has {pairs} pairs, but {one_rows} rows by {other_rows}"
               " make another number", "pairs_off"),
        _between("pairs-within-rows", "{subject} has {pairs} pairs, more than {one_rows} rows by"
                 " {other_rows} can make", "pairs_beyond", None, 0),
        _between("selectivity-is-a-share", within, "selectivity", 0, 1),
        Rule("selectivity-if-pairs", "the selectivity of {subject} is not known, though it has"
             " {pairs} pairs", gxe.ExpectColumnValuesToNotBeNull,
             {"column": "selectivity_if_pairs"}),
        _close("matches-of-pairs", "{subject} has {matches} matches, but {selectivity} of {pairs}"
               " pairs are {found}", "matches_off"),
        _not_negative("error", "the error of the selectivity"),
        _equal("exact-without-error", "the selectivity of {subject} is called exact, with an error"
               " of {error}", "error_if_exact"),
        Rule("method-known", "the method for {subject} is {method}, not exact or sampled",
             gxe.ExpectColumnValuesToBeInSet,
             {"column": "method", "value_set": ["exact", "sampled"]}),
    ]  # fmt: skip


def _keys() -> list[Rule]:
    return [
        _once(),
        _not_negative("rest", "the number of rows of other values"),
        _not_negative("others", "the number of other values"),
        _equal("heavy-and-rest", "{subject} has {rows} rows, but {nulls} without the key,"
               " {heavy_rows} of heavy values and {rest} of others", "rows_off"),
    ]  # fmt: skip


def _selects() -> list[Rule]:
    return [
        _once(),
        _known("rows", "the number of rows"),
        _equal("rows-of-stream", "{rows} rows were looked at for {subject}, but {stream} has"
               " {stream_rows}", "rows_off"),
        _known("passed", "the number of rows that pass"),
        _not_negative("passed", "the number of rows that pass"),
        _between("passed-within-rows", "{passed} rows pass {subject}, of {rows}", "beyond", None,
                 0),
        _close("selectivity-of-rows", "the selectivity of {subject} is {selectivity}, but {passed}"
               " of {rows} rows are {found}", "selectivity_off"),
    ]  # fmt: skip


def _operators() -> list[Rule]:
    return [
        _once(),
        _between("batches-at-least-one", "the number of batches of {subject} is {batches}, below 1",
                 "batches", 1, None),
        _between("batches-within-window", "{subject} worked in {batches} batches, but the window"
                 " has {of}", "batches_beyond", None, 0),
        _not_negative("rows", "the number of rows"),
        _not_negative("state_rows", "the number of rows in the state"),
        _not_negative("state_bytes", "the size of the state"),
        _not_negative("ms", "the time"),
    ]  # fmt: skip


def _batches() -> list[Rule]:
    return [
        _once(),
        _not_negative("batches", "the number of batches"),
        _between("operators-at-work", "{batches} batches, but nothing of any operator", "operators",
                 1, None),
        *(_not_negative(column, what) for column, what in (
            ("ms", "the time"), ("cpu", "the CPU time"), ("memory", "the memory"),
            ("state_rows", "the number of rows in the states"),
            ("state_bytes", "the size of the states"), ("backlog", "the backlog"),
            ("busy", "the busy share"), ("results", "the number of results"),
        )),
        _between("gathered-in-time", "the next window has been complete for {delay} s, and is not"
                 " gathered: more than {limit} s", "late_by", None, 0),
    ]  # fmt: skip


RULES: Mapping[str, Sequence[Rule]] = {
    STREAMS: _streams(),
    COLUMNS: _columns(),
    EDGES: _edges(),
    KEYS: _keys(),
    SELECTS: _selects(),
    GROUPS: [_once(), _not_negative("groups", "the number of groups")],
    COMBINED: [_once(), _not_negative("rate", "the rate")],
    OPERATORS: _operators(),
    BATCHES: _batches(),
}
"""What is expected of the rows of each table."""

COMPLETE = Rule("complete", "there is nothing of {subject}", gxe.ExpectColumnValuesToNotBeNull,
                {"column": "there"})  # fmt: skip
"""What is expected of that which a job must have."""


def _layout(table: str) -> Rule:
    arguments = {"column": "column", "value_set": [*TABLES[table].names]}
    says = "not of the types that they should be: {column}"
    return Rule("layout", says, gxe.ExpectColumnValuesToBeInSet, arguments)


# --- the verdicts --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Finding:
    """What became of one expectation."""

    table: str
    rule: str
    expectation: str
    passed: bool
    observed: str
    reason: str | None


@dataclass(frozen=True)
class Verdict:
    """What is to be thought of a window."""

    window: Window
    findings: Sequence[Finding]

    @property
    def good(self) -> bool:
        """Whether decisions may use it."""
        return all(finding.passed for finding in self.findings)

    @property
    def reasons(self) -> list[str]:
        """Why not, in words and figures."""
        return [f"{one.table}: {one.reason}" for one in self.findings if not one.passed]


def validate(
    store: StatsStore,
    expected: Expected,
    *,
    at: int,
    again: bool = False,
    report: Callable[[int, int], None] = lambda _done, _total: None,
) -> list[Verdict]:
    """Judge the windows that are new or have changed since they were judged, or all `again`."""
    windows = store.windows()
    prints = _fingerprints(store)
    if windows and expected.delay and expected.delay.too_long:
        prints[windows[-1].start] += STALE
    known = {row["window_start"]: row for row in store.rows(VERDICTS)}
    judged = {} if again else {start: row["fingerprint"] for start, row in known.items()}
    due = [window for window in windows if judged.get(window.start) != prints[window.start]]
    judge = _Judge(store, windows, expected)
    verdicts: list[Verdict] = []
    for first in range(0, len(due), TOGETHER):
        report(first, len(due))
        some = judge.verdicts(due[first : first + TOGETHER])
        _keep(store, some, prints, at)
        verdicts += some
    return verdicts


def _fingerprints(store: StatsStore) -> dict[int, str]:
    """What each window holds, in a few letters, whatever the order of rows and files."""
    found: dict[int, Any] = defaultdict(lambda: blake2b(digest_size=12))
    each = "SELECT epoch_us(window_start), sum(hash(content)) FROM content GROUP BY 1"
    with duckdb.connect() as engine:
        for table in GATHERED:
            content, columns = _content(store, table)
            engine.register("content", content)
            for start, total in engine.execute(each).fetchall():
                found[start].update(f"{table} {columns} {total} ".encode())
    return {start: content.hexdigest() for start, content in found.items()}


def _content(store: StatsStore, table: str) -> tuple[pa.Table, list[str]]:
    """A table as it is read, whatever columns it has; as it is, where it cannot be read."""
    path = store.path(table)
    if not DeltaTable.is_deltatable(str(path)):
        return TABLES[table].empty_table(), []
    with readable(path):
        stored = DeltaTable(path)
        if wrong := strange(stored, TABLES[table]):
            return load(stored), wrong
    return store.read(table), []


def _keep(
    store: StatsStore, verdicts: Sequence[Verdict], prints: Mapping[int, str], at: int
) -> None:
    """The verdicts last: where there is one, its findings are there too."""
    store.replace_all(VALIDATIONS, {v.window: map(asdict, v.findings) for v in verdicts})
    summaries = {
        verdict.window: [
            {
                "good": verdict.good,
                "reasons": verdict.reasons,
                "checked": len(verdict.findings),
                "at": at,
                "fingerprint": prints[verdict.window.start],
            }
        ]
        for verdict in verdicts
    }
    store.replace_all(VERDICTS, summaries)


# --- Great Expectations --------------------------------------------------------------------------


class _Judge:
    """Great Expectations over frames, everything of it in memory.

    What it takes is for the expectations, hardly for rows: so many windows are judged together.
    """

    def __init__(self, store: StatsStore, windows: Sequence[Window], expected: Expected) -> None:
        context = gx.get_context(mode="ephemeral")
        context.variables.progress_bars = ProgressBarsConfig(globally=False)
        source = context.data_sources.add_or_update_pandas("statistics")
        asset = source.add_dataframe_asset("frame")
        self._whole = asset.add_batch_definition_whole_dataframe("whole")
        self._store, self._windows, self._expected = store, windows, expected
        self._layouts = [one for table in GATHERED for one in self._laid_out(table)]
        broken = {one.table for one in self._layouts if not one.passed}
        self._readable = [table for table in GATHERED if table not in broken]

    def verdicts(self, windows: Sequence[Window]) -> list[Verdict]:
        """Judge windows; a table that is laid out otherwise is not read."""
        findings = {window.start: [*self._layouts] for window in windows}
        rows, present = self._described(windows)
        for table in self._readable:
            for some, wanted in ((present[table], [COMPLETE]), (rows[table], RULES[table])):
                if some:
                    for start, finding in self._found(table, frame(table, some), wanted):
                        findings[start].append(finding)
        return [Verdict(window, findings[window.start]) for window in windows]

    def _described(self, windows: Sequence[Window]) -> tuple[_Described, _Described]:
        """The windows' rows with what they must agree with, and what they must have rows of."""
        rows: dict[str, list[Any]] = defaultdict(list)
        present: dict[str, list[Any]] = defaultdict(list)
        gathered = {table: self._by_window(table, windows) for table in self._readable}
        for window in windows:
            streams = gathered.get(STREAMS, {})
            past = [row for b in self._before(window) for row in streams.get(b.start, ())]
            own = {table: some[window.start] for table, some in gathered.items()}
            newest = window == self._windows[-1]
            full = figures(window, own, past, self._expected, newest=newest)
            for total, part in ((rows, full), (present, presences(window, full, self._expected))):
                for table, some in part.items():
                    total[table].extend(some)
        return rows, present

    def _by_window(self, table: str, windows: Sequence[Window]) -> _Described:
        wanted = {*windows}
        if table == STREAMS:
            wanted.update(before for window in windows for before in self._before(window))
        found: dict[int, list[Any]] = defaultdict(list)
        for row in self._store.rows(table, list(wanted)):
            found[row["window_start"]].append(row)
        return found

    def _before(self, window: Window) -> Sequence[Window]:
        place = bisect_left(self._windows, window.start, key=_start)
        return self._windows[max(0, place - HISTORY) : place]

    def _laid_out(self, table: str) -> list[Finding]:
        """Whether a table's columns have the types that they should; nothing without a table."""
        path = self._store.path(table)
        if not DeltaTable.is_deltatable(str(path)):
            return []
        columns = [*TABLES[table].names, *strange(DeltaTable(path), TABLES[table])]
        content = pd.DataFrame({"column": columns, "window_start": 0})
        return [finding for _, finding in self._found(table, content, [_layout(table)])]

    def _found(
        self, table: str, content: pd.DataFrame, wanted: Sequence[Rule]
    ) -> Iterator[tuple[int, Finding]]:
        """What became of each expectation in each window."""
        suite = gx.ExpectationSuite(table, expectations=[rule.build() for rule in wanted])
        batch = self._whole.get_batch({"dataframe": content})
        results = batch.validate(suite, result_format="COMPLETE").results
        named = {result.expectation_config.meta["rule"]: result for result in results}
        for _, part in content.groupby("window_start"):
            for rule in wanted:
                start = int(part["window_start"].iloc[0])
                yield start, _finding(table, part, rule, named[rule.name])


def _start(window: Window) -> int:
    return window.start


def _finding(table: str, part: pd.DataFrame, rule: Rule, result: Any) -> Finding:
    """What a result says of the rows of one window."""
    reason = None if result.success else _reason(part, rule, result)
    kind = result.expectation_config.type
    return Finding(table, rule.name, kind, reason is None, _observed(part, rule), reason)


# --- words ---------------------------------------------------------------------------------------


def _reason(part: pd.DataFrame, rule: Rule, result: Any) -> str | None:
    """What is wrong in a window, if it is in this one, for each of the first rows to blame."""
    found = result.result
    if not found:
        return f"{rule.name} could not be judged: {result.exception_info}"
    rows = part.loc[part.index.isin(found["unexpected_index_list"])].to_dict("records")
    said = (rule.says.format(**{str(k): _figure(v) for k, v in row.items()}) for row in rows)
    texts = list(dict.fromkeys(said))
    more = [f"and {len(texts) - SUBJECTS} more"] if len(texts) > SUBJECTS else []
    return "; ".join([*texts[:SUBJECTS], *more]) or None


def _observed(part: pd.DataFrame, rule: Rule) -> str:
    """The values that were judged, or the range of them."""
    values = part[rule.arguments.get("column", "subject")].dropna()
    if values.empty:
        return "nothing to compare"
    if values.dtype == "float64":
        ends = dict.fromkeys((_figure(values.min()), _figure(values.max())))
        return " .. ".join(ends)
    return _listed(sorted(values.unique()))


def _listed(values: Sequence[str] | None) -> str:
    shown = list(values or ())
    more = [f"{len(shown) - 10} more"] if len(shown) > 10 else []
    return ", ".join([*shown[:10], *more]) or "nothing"


def _figure(value: Any) -> str:
    if not isinstance(value, int | float):
        return str(value)
    if value != value:  # noqa: PLR0124  # what is not known is not a number
        return "unknown"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.4g}"
