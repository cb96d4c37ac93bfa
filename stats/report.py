"""What became of every expectation, as a page that any browser shows: no network, no scripts."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

from stats.store import VALIDATIONS, VERDICTS, StatsStore, Window

NEWEST = 60
"""Of how many windows the page tells, besides those in quarantine."""

_STYLE = """
:root { --ink: #1c2430; --dim: #687385; --line: #e3e7ee; --paper: #fff; --back: #f5f7fa;
        --good: #1a7f4b; --bad: #b42318; --badback: #fdf0ee; --goodback: #e9f6ef; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e8ef; --dim: #97a1b2; --line: #2d3542; --paper: #1a2029; --back: #12161d;
          --good: #5cc893; --bad: #ff8b7e; --badback: #3a1f1e; --goodback: #17332a; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2.5rem 1.5rem 4rem; max-width: 68rem; background: var(--back);
       color: var(--ink); font: 15px/1.5 system-ui, "DejaVu Sans", sans-serif; }
h1 { margin: 0; font-size: 1.6rem; }
h2 { margin: 2.2rem 0 .7rem; font-size: 1.1rem; }
h3 { margin: 1.2rem 0 .3rem; font-size: .95rem; }
p { margin: .2rem 0; } .dim { color: var(--dim); }
.strip { display: flex; flex-wrap: wrap; gap: 4px; margin: 1.2rem 0 .4rem; }
.strip a { width: 15px; height: 24px; border-radius: 3px; background: var(--good); }
.strip a.bad { background: var(--bad); } .strip a.none { background: var(--line); }
details { margin: .5rem 0; border: 1px solid var(--line); border-radius: 8px;
          background: var(--paper); }
details.bad { border-color: var(--bad); }
summary { padding: .55rem .9rem; cursor: pointer; }
details > div { padding: 0 .9rem .9rem; }
.mark { display: inline-block; min-width: 6.4rem; margin-right: .6rem; padding: 0 .5rem;
        border-radius: 99px; text-align: center; font-size: .82rem;
        color: var(--good); background: var(--goodback); }
.mark.bad { color: var(--bad); background: var(--badback); }
.mark.none { color: var(--dim); background: var(--back); }
ul.reasons { margin: .1rem 0 .6rem; padding-left: 1.2rem; color: var(--bad); }
table { width: 100%; border-collapse: collapse; font-size: .88rem; }
td { padding: .22rem .6rem .22rem 0; border-top: 1px solid var(--line); vertical-align: top;
     overflow-wrap: anywhere; }
td:first-child { width: 13.5rem; } td:nth-child(2) { width: 22rem; color: var(--dim); }
tr.bad td { color: var(--bad); background: var(--badback); }
time { font-variant-numeric: tabular-nums; }
"""


def write(store: StatsStore, job: str, directory: Path) -> Path:
    """Put the page into a directory; where it is."""
    directory.mkdir(parents=True, exist_ok=True)
    page = directory / "index.html"
    draft = directory / "index.html.draft"
    draft.write_text(render(store, job), encoding="utf-8")
    draft.replace(page)
    return page


def render(store: StatsStore, job: str) -> str:
    """The page: a mark a window, the quarantined first, then the newest, each with its findings."""
    windows = store.windows()
    verdicts = {row["window_start"]: row for row in store.rows(VERDICTS, windows)}
    bad = [w for w in windows if w.start in verdicts and not verdicts[w.start]["good"]]
    newest = [window for window in windows[-NEWEST:] if window not in bad]
    findings = _by_window(store.rows(VALIDATIONS, [*bad, *newest]))
    strip = "".join(_mark(window, verdicts.get(window.start)) for window in windows[-NEWEST:])

    def listed(some: Iterable[Window]) -> str:
        return "".join(
            _window(window, verdicts.get(window.start), findings.get(window.start, []))
            for window in some
        )

    good = sum(verdict["good"] for verdict in verdicts.values())
    return _PAGE.format(
        style=_STYLE,
        job=escape(job),
        windows=f"{len(windows):,}",
        good=f"{good:,}",
        bad=f"{len(bad):,}",
        none=f"{len(windows) - len(verdicts):,}",
        strip=strip,
        quarantined=f"<h2>Quarantined</h2>{listed(reversed(bad))}" if bad else "",
        newest=listed(reversed(newest)) or "<p class=dim>None.</p>",
    )


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{job}: statistics, validated</title><style>{style}</style></head><body>
<h1>Statistics of {job}, validated</h1>
<p class="dim">{windows} windows: {good} good, {bad} quarantined, {none} not validated.
Decisions use the good ones only.</p>
<div class="strip">{strip}</div>
<p class="dim">The newest windows, by event time, the oldest first.</p>
{quarantined}
<h2>Newest</h2>
{newest}
</body></html>
"""


def _by_window(rows: Iterable[Mapping[str, Any]]) -> dict[int, list[Mapping[str, Any]]]:
    ordered = sorted(rows, key=lambda row: row["window_start"])
    return {start: list(some) for start, some in groupby(ordered, lambda row: row["window_start"])}


def _mark(window: Window, verdict: Mapping[str, Any] | None) -> str:
    word = _word(verdict)
    title = f"{_moment(window.start)}, {word}"
    return f'<a href="#w{window.start}" class="{_style(verdict)}" title="{title}"></a>'


def _window(
    window: Window, verdict: Mapping[str, Any] | None, findings: Sequence[Mapping[str, Any]]
) -> str:
    style, word = _style(verdict), _word(verdict)
    when = f"<time>{_moment(window.start)}</time> to <time>{_moment(window.end)[11:]}</time>"
    checked = f", {verdict['checked']} expectations" if verdict else ""
    said = "".join(f"<li>{escape(text)}</li>" for text in (verdict or {}).get("reasons") or ())
    reasons = f'<ul class="reasons">{said}</ul>' if said else ""
    return (
        f'<details class="{style}" id="w{window.start}"{" open" if style == "bad" else ""}>'
        f'<summary><span class="mark {style}">{word}</span>{when}'
        f'<span class="dim">{checked}</span></summary><div>'
        f"{reasons}{_tables(findings)}</div></details>"
    )


def _tables(findings: Sequence[Mapping[str, Any]]) -> str:
    """The expectations of each table, those that failed first."""
    tables: dict[str, list[Mapping[str, Any]]] = {}
    for finding in sorted(findings, key=lambda one: one["passed"]):
        tables.setdefault(finding["table"], []).append(finding)
    return "".join(
        f"<h3>{escape(table)}</h3><table>{''.join(map(_finding, some))}</table>"
        for table, some in tables.items()
    )


def _finding(finding: Mapping[str, Any]) -> str:
    style = "good" if finding["passed"] else "bad"
    said = finding["reason"] or finding["observed"]
    cells = (finding["rule"].replace("-", " "), finding["expectation"], said)
    return f'<tr class="{style}">{"".join(f"<td>{escape(cell)}</td>" for cell in cells)}</tr>'


def _style(verdict: Mapping[str, Any] | None) -> str:
    if verdict is None:
        return "none"
    return "good" if verdict["good"] else "bad"


def _word(verdict: Mapping[str, Any] | None) -> str:
    return {"none": "not validated", "good": "good", "bad": "quarantined"}[_style(verdict)]


def _moment(micros: int) -> str:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return (epoch + timedelta(microseconds=micros)).strftime("%Y-%m-%d %H:%M:%S")
