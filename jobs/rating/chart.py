"""Curves in a terminal: results over time, a letter for each plan."""

from collections.abc import Sequence

import numpy as np
from rich.text import Text

from jobs.rating.report import Planned, Report
from optimizer.explain import compact

WIDTH, HEIGHT = 64, 14
COLOURS = ("cyan", "magenta", "yellow", "green", "blue", "red")
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def distinct(plans: Sequence[Planned]) -> list[Planned]:
    """Each plan once, by the first that proposed it."""
    return list({one.plan: one for one in plans}.values())


def letter(plan: Planned, plans: Sequence[Planned]) -> Text:
    """The plan's own."""
    position = [one.plan for one in distinct(plans)].index(plan.plan)
    return Text(LETTERS[position % len(LETTERS)], COLOURS[position % len(COLOURS)])


def chart(report: Report) -> list[Text]:
    """The lines of the picture; where curves lie upon each other, the first one is seen."""
    plans = distinct(report.plans)
    times = np.linspace(0.0, report.horizon, WIDTH)
    curves = [one.curve.at(times) for one in plans if one.curve is not None]
    top = max((float(curve[-1]) for curve in curves), default=0.0)
    if not 0 < top < float("inf"):
        return []
    cells = [[Text(" ") for _ in range(WIDTH)] for _ in range(HEIGHT)]
    for one, curve in reversed(list(zip(plans, curves, strict=True))):
        for column, made in enumerate(curve):
            row = HEIGHT - 1 - round(float(made) / top * (HEIGHT - 1))
            cells[row][column] = letter(one, plans)
    return [_line(row, cells[row], top) for row in range(HEIGHT)] + _axis(report.horizon)


def _line(row: int, cells: Sequence[Text], top: float) -> Text:
    known = row in (0, HEIGHT // 2, HEIGHT - 1)
    amount = compact(top * (HEIGHT - 1 - row) / (HEIGHT - 1)) if known else ""
    return Text.assemble((f"{amount:>8} ", "dim"), ("┤" if known else "│", "dim"), *cells)


def _axis(horizon: float) -> list[Text]:
    end = f"{horizon:.3g} s"
    line = Text(f"{'':9}└{'─' * WIDTH}", "dim")
    return [line, Text(f"{'':9}0{end:>{WIDTH}}", "dim")]
