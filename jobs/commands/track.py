"""`midstream track`: tells MLflow of decisions, and of what became of them."""

from dataclasses import asdict

from jobs import show
from jobs.commands.run import JobFile


def track(file: JobFile, *, json: show.Json = False) -> int:
    """Write every decision to MLflow that is not there yet, and what its migration came to."""
    from jobs import specs
    from jobs.tracking.ledger import catch_up

    job = specs.load(file)
    with show.progress("telling MLflow"):
        told = catch_up(job)
    if json:
        show.as_json(asdict(told))
        return 0
    for decision, page in told.runs.items():
        show.plain(f"{decision}  {page}")
    if told.missed:
        show.plain(f"{told.waiting} decisions wait, MLflow does not answer: {told.missed}")
    elif not told.runs:
        show.plain("MLflow knows everything already.")
    return 0
