"""`midstream stats show`: the windows that have been gathered, and whether to believe them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from jobs import show as terminal
from jobs.commands.run import JobFile
from jobs.commands.stats.collect import moment
from jobs.errors import RefusedError

if TYPE_CHECKING:
    from stats.store import StatsStore, Window

Row = Mapping[str, Any]

At = Annotated[
    str | None,
    typer.Option("--window", help="Only the window of that time.", metavar="TIME",
                 show_default=False),
]  # fmt: skip
Last = Annotated[int, typer.Option(min=1, help="How many windows, the newest.")]
Quarantined = Annotated[
    bool, typer.Option("--quarantined", help="Only windows that no decision uses, and why.")
]


def show(  # noqa: PLR0913  # options, each by its name
    file: JobFile,
    *,
    window: At = None,
    last: Last = 12,
    quarantined: Quarantined = False,
    streams: Annotated[bool, typer.Option("--streams", help="Only these of a window.")] = False,
    edges: Annotated[bool, typer.Option("--edges", help="Only pairs of inputs.")] = False,
    selects: Annotated[bool, typer.Option("--selects", help="Only selects.")] = False,
    columns: Annotated[bool, typer.Option("--columns", help="Keys: how many, which most.")] = False,
    keys: Annotated[
        bool, typer.Option("--keys", help="What three inputs or more are joined on, most first.")
    ] = False,
    operators: Annotated[
        bool, typer.Option("--operators", help="What each did and keeps.")
    ] = False,
    errors: Annotated[
        bool, typer.Option("--errors", help="By how much predicted costs were wrong.")
    ] = False,
    json: terminal.Json = False,
) -> int:
    """Show the newest windows, and the last of them in detail."""
    from jobs import specs
    from jobs.tables.paths import local
    from stats.store import ERRORS, StatsStore

    job = specs.load(file)
    store = StatsStore.of(local(job.storage))
    found = _wanted(store, moment(window, "--window"), quarantined=quarantined)[-last:]
    if not store.windows():
        raise RefusedError(f"nothing is known of {job.job} yet: `midstream stats collect {file}`")
    if not found:
        raise RefusedError("no such window has been gathered" if window else "none is quarantined")
    asked = {"streams": streams, "edges": edges, "selects": selects, "columns": columns,
             "keys": keys, "operators": operators, "errors": errors}  # fmt: skip
    parts = [name for name, wanted in asked.items() if wanted]
    if json:
        terminal.as_json({"job": job.job, "windows": _as_json(store, found, parts)})
        return 0
    if not parts or len(found) > 1:
        _overview(store, found)
    for name in parts or ("streams", "edges", "selects"):
        _part(store, found, name)
    if errors and not store.rows(ERRORS, found):
        terminal.note(f"of these windows it is not known yet: `midstream stats calibrate {file}`")
    return 0


# --- which ---------------------------------------------------------------------------------------


def _wanted(store: "StatsStore", time: int | None, *, quarantined: bool) -> "list[Window]":
    windows = store.windows()
    if time is not None:
        windows = [window for window in windows if window.start <= time < window.end]
    verdicts = _verdicts(store, windows)
    return [
        w for w in windows if not quarantined or not verdicts.get(w.start, {"good": True})["good"]
    ]


def _verdicts(store: "StatsStore", windows: "Sequence[Window]") -> dict[int, Row]:
    from stats.store import VERDICTS

    return {row["window_start"]: row for row in store.rows(VERDICTS, windows)}


def _verdict(found: Row | None) -> Text:
    if found is None:
        return Text("not validated", "yellow")
    return Text("good", "green") if found["good"] else Text("quarantined", "red")


# --- for people ----------------------------------------------------------------------------------


def _overview(store: "StatsStore", windows: "Sequence[Window]") -> None:
    """A line a window."""
    from jobs.status import moment as written
    from stats.store import BATCHES, STREAMS

    verdicts = _verdicts(store, windows)
    batches = {row["window_start"]: row for row in store.rows(BATCHES, windows)}
    streams: dict[int, list[Row]] = {window.start: [] for window in windows}
    for row in store.rows(STREAMS, windows):
        streams[row["window_start"]].append(row)
    names = ("tuples/s", "aside", "busy", "CPU", "state", "lag")
    terminal.table(
        ("window", *names, "", ""),
        [
            (
                (written(window.start) or "")[5:19].replace("T", " "),
                f"{sum(row['rate'] or 0 for row in streams[window.start]):,.1f}",
                f"{sum((r['late'] or 0) + (r['rejected'] or 0) for r in streams[window.start]):,}",
                *_job(batches[window.start], window.seconds),
                _verdict(verdicts.get(window.start)),
                "" if batches[window.start]["batches"] else "no batch ran",
            )
            for window in windows
        ],
        right=" ".join(names),
    )
    for window in windows:
        for reason in verdicts.get(window.start, {}).get("reasons") or ():
            terminal.note(f"{(written(window.start) or '')[:19]}: {reason}")


def _job(row: Row, seconds: float) -> list[str]:
    """What the job did for a window."""
    from optimizer.explain import size

    return [
        "" if row["busy"] is None else f"{100 * row['busy']:.0f} %",
        "" if row["cpu"] is None else f"{row['cpu'] / seconds:.2f}",
        "" if row["state_bytes"] is None else size(row["state_bytes"]),
        "" if row["lag"] is None else f"{row['lag']:,.0f} s",
    ]


@dataclass(frozen=True)
class _Shown:
    """How a table is shown: its columns, those with figures in `right`, and a line of it."""

    columns: Sequence[str]
    right: str
    line: Callable[[Row], Sequence[str]]


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def _count(value: float | None, form: str = ",.0f", unit: str = "") -> str:
    """A figure; nothing where it is not known."""
    return "" if value is None else f"{value:{form}}{unit}"


def _error(row: Row) -> str:
    if row["selectivity"] is None:
        return "no pairs"
    return "exact" if row["method"] == "exact" else f"± {_count(row['error'], '.2g')}"


_PARTS: Mapping[str, _Shown] = {
    "streams": _Shown(
        ("stream", "rows", "rate", "burstiness", "bytes", "late", "rejected"),
        "rows rate burstiness bytes late rejected",
        lambda r: (
            r["stream"], _count(r["rows"]), _count(r["rate"], ",.1f", "/s"),
            _share(r["burstiness"]), _share(r["width"]), _count(r["late"]), _count(r["rejected"]),
        ),
    ),
    "edges": _Shown(
        ("query", "between", "pairs", "matches", "selectivity", ""),
        "pairs matches selectivity",
        lambda r: (
            r["query"], f"{r['one']} and {r['other']}", _count(r["pairs"]),
            _count(r["matches"]), _share(r["selectivity"]), _error(r),
        ),
    ),
    "selects": _Shown(
        ("query", "input", "select", "rows", "passed", "selectivity"),
        "rows passed selectivity",
        lambda r: (
            r["query"], r["alias"], r["predicate"], _count(r["rows"]), _count(r["passed"]),
            _share(r["selectivity"]),
        ),
    ),
    "columns": _Shown(
        ("stream", "value", "rows", "nulls", "distinct", "heaviest"),
        "rows nulls distinct",
        lambda r: (
            r["stream"], r["value"], _count(r["rows"]), _count(r["nulls"]), _count(r["distinct"]),
            ", ".join(f"{one['value']} ({one['rows']:,})" for one in (r["heavy"] or ())[:3]),
        ),
    ),
    "keys": _Shown(
        ("query", "input", "key", "rows", "heaviest", "rest", "others"),
        "rows rest others",
        lambda r: (
            r["query"], r["alias"], r["key"], _count(r["rows"]),
            ", ".join(f"{one['value']} ({one['rows']:,})" for one in (r["heavy"] or ())[:3]),
            _count(r["rest"]), _count(r["others"]),
        ),
    ),
    "operators": _Shown(
        ("operator", "batches", "rows", "state", "bytes", "ms"),
        "batches rows state bytes ms",
        lambda r: (
            r["operator"], _count(r["batches"]), _count(r["rows"]), _count(r["state_rows"]),
            _count(r["state_bytes"]), _count(r["ms"]),
        ),
    ),
    "errors": _Shown(
        ("query", "operator", "predicted", "measured", "error"),
        "predicted measured error",
        lambda r: (
            r["query"], r["operator"] or "the whole plan", _share(r["predicted"]),
            _share(r["measured"]), _count(r["error"] and 100 * r["error"], "+.0f", " %"),
        ),
    ),
}  # fmt: skip


def _part(store: "StatsStore", windows: "Sequence[Window]", name: str) -> None:
    """One kind of statistics of the last window; nothing if there are none.

    How wrong predictions were is known later than all else: of the last window that has it.
    """
    from jobs.status import moment as written
    from stats.store import ERRORS

    rows = store.rows(name, windows if name == ERRORS else windows[-1:])
    rows = [row for row in rows if row["window_start"] == rows[-1]["window_start"]]
    shown = _PARTS[name]
    if rows:
        terminal.heading(f"{name}, {(written(rows[0]['window_start']) or '')[:19]}")
        terminal.table(shown.columns, map(shown.line, rows), right=shown.right)


# --- for programs --------------------------------------------------------------------------------


def _as_json(
    store: "StatsStore", windows: "Sequence[Window]", parts: Sequence[str]
) -> list[dict[str, Any]]:
    """Windows with their verdicts and, of each kind asked for or of all, their rows."""
    from jobs.status import moment as written
    from stats.store import GATHERED

    verdicts = _verdicts(store, windows)
    found: dict[int, dict[str, Any]] = {
        window.start: {
            "start": written(window.start),
            "end": written(window.end),
            "verdict": _verdict(verdicts.get(window.start)).plain,
            "reasons": list(verdicts.get(window.start, {}).get("reasons") or ()),
            **{name: [] for name in parts or GATHERED},
        }
        for window in windows
    }
    for name in parts or GATHERED:
        for row in store.rows(name, windows):
            kept = {k: v for k, v in row.items() if not k.startswith("window_")}
            found[row["window_start"]][name].append(kept)
    return list(found.values())
