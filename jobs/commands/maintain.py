"""`midstream maintain`: fewer and smaller files, without a row less."""

from dataclasses import asdict
from typing import Annotated

import typer

from jobs import show
from jobs.commands.run import JobFile


def maintain(
    file: JobFile,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be done.")
    ] = False,
    json: show.Json = False,
) -> None:
    """Merge small files, remove unused ones, forget old statistics; the job may run meanwhile."""
    from jobs import specs
    from jobs.maintenance import maintain as tidy_up

    job = specs.load(file)
    with show.progress("tidying up"):
        tables, plans = tidy_up(job, dry_run=dry_run)
    if json:
        data = {"job": job.job, "dry_run": dry_run, "plans_forgotten": plans}
        show.as_json(data | {"tables": [asdict(one) for one in tables]})
        return
    show.table(
        ("table", "files", "merged", "forgotten", "removed", ""),
        [
            (one.table, f"{one.files:,}", f"{one.merged:,}", f"{one.forgotten:,}",
             f"{one.removed:,}", one.busy)
            for one in tables
        ],
        right="files merged forgotten removed",
    )  # fmt: skip
    show.note(f"{plans} plans of the library forgotten" + (", or would be" if dry_run else ""))
