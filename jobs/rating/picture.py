"""Curves as an SVG picture: predictions, where they cross, and the simulated runs behind them."""

from collections.abc import Iterator, Sequence

import numpy as np

from jobs.rating.chart import distinct
from jobs.rating.report import GIVEN, Planned, Report
from optimizer.explain import compact
from optimizer.picture.svg import EDGE, FAINT, FONT, INK, PAPER, Line, label

COLOURS = ("#0e8a9c", "#9447bd", "#e2700f", "#1b9a4b", "#dc2647", "#334155")
LEFT, TOP, WIDTH, HEIGHT = 78.0, 64.0, 640.0, 360.0
STEPS = 160
RUNS = 20
"""Simulated curves that are drawn of each plan, at most."""


def picture(report: Report, title: str) -> str:
    """The whole picture."""
    plans = distinct(report.plans)
    top = max((float(one.curve.made[-1]) for one in plans if one.curve), default=0.0) or 1.0
    scale = _Scale(report.horizon, top * 1.06)
    bottom = TOP + HEIGHT + 46 + 20 * len(plans)
    parts = [
        label(LEFT, 32, Line(title, 17, bold=True), anchor="start"),
        label(LEFT, 50, Line(_about(report), 12), FAINT, anchor="start"),
        *scale.axes(),
        *(line for i, one in enumerate(plans) for line in _behind(one, i, scale)),
        *(_curve(one, i, scale) for i, one in enumerate(plans)),
        *_crossings(report, scale),
        *(element for i, one in enumerate(plans) for element in _legend(report, one, i)),
    ]
    size = f"{LEFT + WIDTH + 40:g}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size} {bottom:g}" '
        f'width="{size}" height="{bottom:g}" font-family="{FONT}">'
        f'<rect width="100%" height="100%" fill="{PAPER}"/>{"".join(parts)}</svg>\n'
    )


def _about(report: Report) -> str:
    judge = report.judge
    servers = "a server for each operator" if judge.servers == "each" else "one server for all"
    runs = max((len(one.simulated.runs) for one in report.plans if one.simulated), default=0)
    behind = f", {runs} simulated runs behind" if runs else ""
    return f"results over time, {judge.model} model, {servers}{behind}"


class _Scale:
    """From seconds and results to points."""

    def __init__(self, seconds: float, results: float) -> None:
        self.seconds, self.results = seconds, results

    def point(self, seconds: float, results: float) -> tuple[float, float]:
        x = LEFT + WIDTH * min(seconds / self.seconds, 1.0)
        return x, TOP + HEIGHT * (1 - min(results / self.results, 1.0))

    def path(self, times: Sequence[float], made: Sequence[float]) -> str:
        points = (self.point(t, r) for t, r in zip(times, made, strict=True))
        return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)

    def axes(self) -> Iterator[str]:
        for amount in _ticks(self.results):
            _, y = self.point(0, amount)
            yield f'<path d="M{LEFT} {y:.1f}h{WIDTH}" stroke="{EDGE}" stroke-opacity="0.4"/>'
            yield label(LEFT - 8, y + 4, Line(compact(amount), 11.5), FAINT, anchor="end")
        for seconds in _ticks(self.seconds):
            x, y = self.point(seconds, 0)
            yield f'<path d="M{x:.1f} {y:.1f}v5" stroke="{EDGE}"/>'
            yield label(x, y + 19, Line(f"{seconds:g} s", 11.5), FAINT)


def _ticks(most: float) -> list[float]:
    """Four to eight round numbers."""
    rough = most / 5
    power = 10.0 ** np.floor(np.log10(rough))
    step = next(power * f for f in (1, 2, 5, 10) if power * f >= rough)
    return [float(step * i) for i in range(int(most / step) + 1)]


def _curve(one: Planned, position: int, scale: _Scale) -> str:
    assert one.curve is not None
    times = np.linspace(0, scale.seconds, STEPS)
    path = scale.path(list(times), list(one.curve.at(times)))
    dashes = ' stroke-dasharray="9 5"' if position % 2 else ""
    colour = COLOURS[position % len(COLOURS)]
    return f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2.4"{dashes}/>'


def _behind(one: Planned, position: int, scale: _Scale) -> Iterator[str]:
    """The simulated runs, faint."""
    times = np.linspace(0, scale.seconds, STEPS)
    for run in one.simulated.runs[:RUNS] if one.simulated else ():
        path = scale.path(list(times), list(run.curve(times)))
        colour = COLOURS[position % len(COLOURS)]
        yield f'<path d="{path}" fill="none" stroke="{colour}" stroke-opacity="0.22"/>'


def _crossings(report: Report, scale: _Scale) -> Iterator[str]:
    seen = set()
    for crossing in report.crossings:
        x, y = scale.point(crossing.seconds, crossing.results)
        if (round(x), round(y)) in seen:
            continue
        seen.add((round(x), round(y)))
        yield (
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5.5" fill="{PAPER}" stroke="{INK}" '
            'stroke-width="1.8"/>'
        )
        text = f"{compact(crossing.results)} at {crossing.seconds:.3g} s"
        side = "end" if x > LEFT + WIDTH * 0.7 else "start"
        below = y + 20 if y < TOP + HEIGHT - 30 else y - 12
        yield label(x + (-9 if side == "end" else 9), below, Line(text, 11.5), INK, anchor=side)


def _legend(report: Report, one: Planned, position: int) -> Iterator[str]:
    y = TOP + HEIGHT + 50 + 20 * position
    colour = COLOURS[position % len(COLOURS)]
    dashes = ' stroke-dasharray="9 5"' if position % 2 else ""
    yield f'<path d="M{LEFT} {y - 4:.1f}h30" stroke="{colour}" stroke-width="2.4"{dashes}/>'
    known = [p.strategy for p in report.plans if p.plan == one.plan and p.strategy != GIVEN]
    who = ", ".join(known)
    yield label(LEFT + 40, y, Line(f"{one.plan}   {who}", 12.5), INK, anchor="start")
