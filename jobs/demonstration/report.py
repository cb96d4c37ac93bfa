"""What the demonstration came to: measured from the job's own tables, checked by another route."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from jobs import show
from jobs.deciding.decisions import Decision
from jobs.demonstration.look import Look
from jobs.migrations import Record
from jobs.pictures import draw, write
from jobs.planning_task import Task
from jobs.specs import Job
from jobs.tables.history import History
from jobs.tables.job_store import JobStore
from jobs.tables.names import PROGRESS
from jobs.tables.paths import local
from jobs.tables.phases import Phase
from jobs.tracking.account import priced, task_of
from jobs.tracking.outcome import gaps
from jobs.verify import Verdict, judge
from optimizer.identity import states
from optimizer.picture import diff
from optimizer.plan import tree_of

if TYPE_CHECKING:
    from optimizer.cost.dual import Priced

BATCHES = 8
"""Over how many batches the job is measured before a migration, and after it."""


@dataclass(frozen=True)
class Speed:
    """What some batches took."""

    throughput: float
    """Rows taken in for each CPU-second of the job, all its processes counted."""
    joining: float
    """Rows taken in for each second that the plan's operators worked."""
    state: int
    """Rows kept after the last one."""

    @classmethod
    def of(cls, batches: Sequence[Mapping[str, Any]]) -> "Speed":
        """Of these."""
        rows = sum(flow["rows"] for one in batches for flow in one["streams"].values())
        cpu = sum(one["cpu"] or 0.0 for one in batches)
        ms = sum(work["ms"] for one in batches for work in one["operators"].values())
        state = sum(work["state_rows"] for work in batches[-1]["operators"].values())
        return cls(rows / cpu, 1000 * rows / ms, state)


@dataclass(frozen=True)
class Report:
    """Everything that is told at the end."""

    decision: Decision
    kept: tuple[str, ...]
    rebuilt: tuple[str, ...]
    dropped: tuple[str, ...]
    silence: float
    """The longest time between two batches while the job migrated, in seconds."""
    usual: float
    """The usual time between two batches."""
    before: Speed
    after: Speed
    verdicts: tuple[Verdict, ...]
    pictures: tuple[Path, ...]

    @property
    def right(self) -> bool:
        """Whether not a result is missing, duplicate or wrong."""
        return all(verdict.right for verdict in self.verdicts)

    def to_json(self) -> dict[str, Any]:
        """As programs read it."""
        return {
            "decision": self.decision.id,
            "reasons": list(self.decision.reasons),
            "from": self.decision.running,
            "to": self.decision.chosen,
            "kept": list(self.kept),
            "rebuilt": list(self.rebuilt),
            "dropped": list(self.dropped),
            "silence_seconds": self.silence,
            "usual_seconds": self.usual,
            "before": asdict(self.before),
            "after": asdict(self.after),
            "verdicts": {one.query: one.verdict for one in self.verdicts},
            "missing": sum(verdict.missing or 0 for verdict in self.verdicts),
            "duplicate": sum(verdict.duplicate or 0 for verdict in self.verdicts),
            "wrong": sum(verdict.wrong or 0 for verdict in self.verdicts),
            "results": sum(verdict.actual or 0 for verdict in self.verdicts),
            "pictures": [str(path) for path in self.pictures],
        }


def settled(now: Look) -> bool:
    """Whether a migration is over, and enough batches followed it to measure them."""
    if now.job is None or now.migration is None or now.migration.phase != Phase.DONE:
        return False
    batch: int = now.job["batch"]
    return batch > now.migration.event(Phase.DONE).batch + BATCHES


def report(job: Job, decision: Decision, migration: Record, pictures: Path) -> Report:
    """Measure, verify and draw."""
    first, cut = migration.events[0].batch, migration.event(Phase.DONE).batch
    progress = History(JobStore(local(job.storage)), PROGRESS)
    done = {one["batch"]: one for one in progress.between(first - BATCHES - 1, cut + BATCHES)}
    waits = gaps(done.values())
    task, verdicts = task_of(job, decision), judge(job).verdicts
    old, new = (priced(task, plan) for plan in (decision.running_plan, decision.chosen_plan))
    before, after = states(old.plan.root), states(new.plan.root)
    return Report(
        decision=decision,
        kept=_named(after, [key for key in after if key in before]),
        rebuilt=_named(after, [key for key in after if key not in before]),
        dropped=_named(before, [key for key in before if key not in after]),
        silence=max(gap for number, gap in waits.items() if first <= number <= cut + 1),
        usual=median(gap for number, gap in waits.items() if number < first),
        before=Speed.of(
            [one for number, one in done.items() if number in waits and number < first]
        ),
        after=Speed.of([one for number, one in done.items() if number > cut]),
        verdicts=verdicts,
        pictures=tuple(_drawn(old, new, task, pictures)),
    )


def _named(found: Mapping[str, Any], keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(tree_of(found[key])) for key in keys)


def _drawn(old: "Priced", new: "Priced", task: Task, directory: Path) -> "Sequence[Path]":
    paths = [directory / f"{name}.svg" for name in ("before", "after", "change")]
    draw(old, paths[0], title=f"{task.name}, before", budget=task.budget)
    draw(new, paths[1], title=f"{task.name}, after", budget=task.budget)
    write(paths[2], diff(old, new, title=f"{task.name}: what changed"))
    return paths


def tell(found: Report) -> None:
    """The report as people read it."""
    decision = found.decision
    show.heading("What drifted, and what was decided")
    for reason in decision.reasons:
        show.plain(f"  {reason}")
    show.plain(f"  {decision.query}: {decision.running}  →  {decision.chosen}")
    show.heading("What the migration did to the states")
    for word, names in (
        ("kept", found.kept),
        ("rebuilt", found.rebuilt),
        ("dropped", found.dropped),
    ):
        if names:
            show.plain(f"  {word:<8} {', '.join(names)}")
    show.heading("What it cost, and what it brought")
    show.table(
        ("", "before", "after", ""),
        [
            _line("rows a CPU-second of the whole job", found, "throughput"),
            _line("rows a second of the joins' work", found, "joining"),
            _line("rows kept in states", found, "state"),
        ],
        right="before after",
    )
    show.plain(
        f"  longest wait for a batch while migrating {found.silence:.1f} s, "
        f"usually {found.usual:.1f} s"
    )
    show.heading("Whether the results are right")
    for verdict in found.verdicts:
        show.plain(f"  {verdict}")
    show.heading("Pictures")
    for path in found.pictures:
        show.plain(f"  {path}")


def _line(words: str, found: Report, what: str) -> tuple[str, str, str, str]:
    before, after = getattr(found.before, what), getattr(found.after, what)
    return words, f"{before:,.0f}", f"{after:,.0f}", f"{after / before:.2f} times"
