"""`midstream stats calibrate`: what units of work cost, from what the job's batches took."""

from time import time_ns
from typing import TYPE_CHECKING, Annotated

import typer

from jobs import show
from jobs.commands.run import JobFile

if TYPE_CHECKING:
    from jobs.calibration import Calibration


def calibrate(
    file: JobFile,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the fit, keep nothing.")] = False,
    json: show.Json = False,
) -> int:
    """Fit the costs of scans, probes, matches and writes to what validated windows took."""
    from jobs import specs
    from jobs.calibration import adopt
    from jobs.calibration import calibrate as fitted

    job = specs.load(file)
    with show.progress("windows") as report:
        found = fitted(job, report)
    if not dry_run:
        adopt(job, found, time_ns() // 1000)
    if json:
        show.as_json(found.to_json() | {"kept": not dry_run})
    else:
        _show(found, kept=not dry_run)
    return 0


def _show(found: "Calibration", *, kept: bool) -> None:
    data = found.to_json()
    before = "before" if found.before else "shipped"
    show.table(
        ("unit", before, "fitted", "from", "to"),
        [
            (name, *(f"{cost[key]:.2e}" for key in ("before", "value", "low", "high")))
            for name, cost in data["costs"].items()
        ],
        right=f"{before} fitted from to",
    )
    show.plain(
        f"\nCPU-seconds; from and to hold 90 %. {data['windows']} of {data['windows_good']} good "
        f"windows, {data['batches']} batches.\n"
        f"Predictions of these windows are wrong by {data['error_before']:.0%} with the costs "
        f"{before}, by {data['error']:.0%} with those fitted (median)."
    )
    show.note("These are in force now." if kept else "Nothing was kept: without --dry-run it is.")
