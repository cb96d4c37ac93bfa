"""`midstream stats show`: the windows that have been gathered, and whether to believe them."""

from typing import TYPE_CHECKING, Any

from jobs import show as terminal
from jobs.commands.run import JobFile
from jobs.errors import RefusedError

if TYPE_CHECKING:
    from stats.store import StatsStore, Window


def show(file: JobFile, *, json: terminal.Json = False) -> int:
    """Show the streams' windows, the newest last, and which of them decisions may use."""
    from jobs import specs
    from jobs.engine.layout import local
    from jobs.status import moment
    from stats.store import StatsStore

    job = specs.load(file)
    store = StatsStore.of(local(job.storage))
    windows = store.windows()
    if not windows:
        raise RefusedError(f"nothing is known of {job.job} yet: `midstream stats collect {file}`")
    rows = _rows(store, windows)
    if json:
        terminal.as_json(rows)
        return 0
    terminal.table(
        ("window", "stream", "rows", "rate", "late", "rejected", ""),
        [
            (
                moment(row["window_start"]) or "",
                row["stream"],
                f"{row['rows']:,}",
                f"{row['rate']:,.1f}/s",
                f"{row['late']:,}",
                f"{row['rejected']:,}",
                row["verdict"],
            )
            for row in rows
        ],
        right="rows rate late rejected",
    )
    return 0


def _rows(store: "StatsStore", windows: "list[Window]") -> list[dict[str, Any]]:
    from stats.store import STREAMS, VERDICTS

    verdicts = {row["window_start"]: row for row in store.rows(VERDICTS, windows)}
    return [
        row | {"verdict": _verdict(verdicts.get(row["window_start"]))}
        for row in store.rows(STREAMS, windows)
    ]


def _verdict(found: dict[str, Any] | None) -> str:
    if found is None:
        return "not validated"
    return "good" if found["good"] else f"quarantined: {'; '.join(found['reasons'])}"
