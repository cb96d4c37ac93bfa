"""Deployments over a network as people read them."""

from collections.abc import Sequence
from typing import Any

from rich.text import Text

from jobs import show
from optimizer.explain import compact


def report(found: Sequence[dict[str, Any]]) -> None:
    """The queries of one strategy, or several strategies side by side."""
    first = found[0]
    show.plain(
        f"{counted(first['sites'], 'site')} in clusters of at most {first['max_cs']}, "
        f"{counted(first['height'], 'level')}; "
        f"distances and clusters took {time(first['setup_seconds'])}."
    )
    if len(found) > 1:
        show.heading("Strategies")
        side_by_side(found)
        return
    show.heading(first["strategy"])
    queries(first["queries"])
    show.plain(
        f"Deployed: {counted(first['joins_deployed'], 'join')} and "
        f"{counted(first['filters_deployed'], 'filter')} for "
        f"{counted(len(first['deployed']), 'query', 'queries')}, "
        f"usage {figure(first['total_usage'])}."
    )


def queries(found: Sequence[dict[str, Any]]) -> None:
    """One line a query."""
    columns = ("query", "plan", "at", "reused", "usage", "over", "space", "time")
    show.table(columns, [_query(one) for one in found], right="usage over space time")


def _query(one: dict[str, Any]) -> list[str | Text]:
    reused = [
        f"{' '.join(r['streams'])} of {r['query']}{', relaxed' if r['relaxed'] else ''}"
        for r in one["reused"]
    ]
    return [
        Text(one["name"], "cyan" if one["deployed"] else "dim"),
        one["plan"],
        " ".join(operator["site"] for operator in one["operators"]) or "-",
        "; ".join(reused) or "-",
        figure(one["usage"]),
        share(one["over_optimum"]),
        share(one["examined"] / one["space"]),
        time(one["seconds"]),
    ]


def side_by_side(found: Sequence[dict[str, Any]]) -> None:
    """One line a strategy."""
    columns = ("strategy", "usage", "over", "space", "joins", "filters", "reused", "time")
    rows = [_strategy(one) for one in found]
    show.table(columns, rows, right="usage over space joins filters reused time")
    show.note(
        "over: above the exact least of each query, given what that strategy has deployed before; "
        "space: the share of the plans that Lemma 1 counts; time: of a query"
    )


def _strategy(one: dict[str, Any]) -> list[str | Text]:
    queries, least = one["queries"], sum(q["optimum"] for q in one["queries"])
    usage = sum(q["usage"] for q in queries)
    space = sum(q["space"] for q in queries)
    return [
        Text(one["strategy"], "cyan"),
        figure(one["total_usage"]),
        share(usage / least - 1 if least > 0 else (0.0 if usage <= 0 else None)),
        share(sum(q["examined"] for q in queries) / space if space else 0.0),
        f"{one['joins_deployed']:,}",
        f"{one['filters_deployed']:,}",
        f"{sum(len(q['reused']) for q in queries):,}",
        time(sum(q["seconds"] for q in queries) / max(1, len(queries))),
    ]


def clusters(told: dict[str, Any]) -> None:
    """The clusters of every level."""
    for number, level in enumerate(told["levels"], 1):
        far = figure(told["d"][number - 1])
        show.heading(f"Level {number}: {counted(len(level), 'cluster')}, none wider than {far}")
        rows = [
            (Text(c["coordinator"], "cyan"), f"{len(c['members']):,}", " ".join(c["members"]))
            for c in level
        ]
        show.table(("coordinator", "size", "members"), rows, right="size")


def counted(number: int, one: str, many: str = "") -> str:
    """`1 join`, `2 joins`."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def figure(value: float) -> str:
    """A number of three digits or so."""
    return compact(value) if value >= 1000 else f"{value:,.3g}"


def share(value: float | None) -> str:
    """A share in percent, small ones as a power of ten."""
    if value is None:
        return "no end"
    percent = 100 * value
    if abs(percent) < 1e-13:
        return "0 %"
    return f"{percent:,.1f} %" if abs(percent) >= 0.1 else f"{percent:.0e} %"


def time(seconds: float) -> str:
    """Seconds or milliseconds."""
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.1f} ms"
