"""What a plan takes of a network, site by site, as a table with bars under its picture."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from optimizer.explain import compact, size
from optimizer.picture.svg import (
    EDGE,
    STREAM,
    Drawing,
    Line,
    bar,
    fit,
    label,
)

WIDTH, ROW, HEAD = 560.0, 24.0, 30.0
NAME, WHAT, IN, OUT, USAGE, BAR = 0.0, 90.0, 340.0, 420.0, 480.0, 490.0
"""Where columns begin; those of figures, where they end."""


@dataclass(frozen=True)
class SiteUsage:
    """A site: what stands there, the bytes a second that come and go, and what coming costs."""

    site: str
    holds: Sequence[str]
    bytes_in: float
    bytes_out: float
    usage: float


def panel(sites: Sequence[SiteUsage], measure: str) -> Drawing:
    """One line a site; the bar is its share of the usage."""
    total = sum(one.usage for one in sites)
    title = f"Network: {compact(total)} bytes/s x {measure}, by the site that reads"
    elements = [label(0, 14, Line(title, 12.5, bold=True), anchor="start")]
    for number, one in enumerate(sites):
        elements += _row(HEAD + ROW * (number + 1), one, total)
    return Drawing(tuple(elements), WIDTH, HEAD + ROW * (len(sites) + 1) - 6)


def _row(y: float, one: SiteUsage, total: float) -> Iterator[str]:
    yield f'<path d="M0 {y - 17:.1f}h{WIDTH:g}" stroke="{EDGE}" stroke-opacity="0.3"/>'
    yield label(
        NAME, y, Line(fit(one.site, WHAT - 8, 12, bold=True), 12, bold=True), anchor="start"
    )
    holds = fit(", ".join(one.holds), IN - WHAT - 70, 11)
    yield label(WHAT, y, Line(holds, 11, faint=True), anchor="start")
    for at, text in ((IN, f"in {size(one.bytes_in)}/s"), (OUT, f"out {size(one.bytes_out)}/s")):
        yield label(at, y, Line(text, 11), anchor="end")
    yield label(USAGE, y, Line(compact(one.usage), 11, bold=True), anchor="end")
    yield from bar(BAR, y - 8, WIDTH - BAR, one.usage / total if total else 0.0, STREAM)
