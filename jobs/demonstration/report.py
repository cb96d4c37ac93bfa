"""What the demonstration came to: measured from the job's own tables, checked by another route."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from json import dumps
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from jobs import show, streaming
from jobs.commands.explain import draw, write
from jobs.commands.task import Task, from_job
from jobs.decisions import Decision
from jobs.demonstration.look import Look
from jobs.engine.layout import JobStore, local
from jobs.engine.progress import Progress, history, last
from jobs.engine.verify import Verdict, verify
from jobs.migrations import Record
from jobs.specs import Job
from optimizer.cost.dual import price
from optimizer.estimate import Estimator
from optimizer.identity import states
from optimizer.picture import diff
from optimizer.plan import from_json, tree_of

if TYPE_CHECKING:
    from optimizer.cost.dual import Priced

BATCHES = 8
"""Over how many batches the job is measured before a migration, and after it."""

SECOND = 1_000_000


@dataclass(frozen=True)
class Speed:
    """What some batches took."""

    rows: int
    """Taken in."""
    ms: float
    """Of work, by the clock."""
    state: int
    """Rows kept after the last one."""

    @classmethod
    def of(cls, batches: Sequence[Progress]) -> "Speed":
        """Of these."""
        rows = sum(flow.rows for one in batches for flow in one.streams.values())
        ms = sum(sum(one.ms.values()) for one in batches)
        return cls(rows, ms, sum(work.state_rows for work in batches[-1].operators.values()))

    @property
    def throughput(self) -> float:
        """Rows in a second of work."""
        return 1000 * self.rows / self.ms


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
            "throughput": {"before": self.before.throughput, "after": self.after.throughput},
            "state_rows": {"before": self.before.state, "after": self.after.state},
            "missing": sum(verdict.missing for verdict in self.verdicts),
            "duplicate": sum(verdict.duplicate for verdict in self.verdicts),
            "wrong": sum(verdict.wrong for verdict in self.verdicts),
            "results": sum(verdict.actual for verdict in self.verdicts),
            "pictures": [str(path) for path in self.pictures],
        }


def settled(now: Look) -> bool:
    """Whether a migration is over, and enough batches followed it to measure them."""
    if now.job is None or now.migration is None or now.migration.phase != "done":
        return False
    batch: int = now.job["batch"]
    return batch > now.migration.event("done").batch + BATCHES


def report(job: Job, decision: Decision, migration: Record, pictures: Path) -> Report:
    """Measure, verify and draw."""
    store = JobStore(local(job.storage))
    done = {one.batch: one for one in history(store)}
    first, cut = migration.events[0].batch, migration.event("done").batch
    gaps = {b: (done[b].finished - done[b - 1].finished) / SECOND for b in done if b - 1 in done}
    task = _task(job, decision, pictures)
    old, new = (_priced(task, plan) for plan in (decision.running_plan, decision.chosen_plan))
    before, after = states(old.plan.root), states(new.plan.root)
    return Report(
        decision=decision,
        kept=_named(after, [key for key in after if key in before]),
        rebuilt=_named(after, [key for key in after if key not in before]),
        dropped=_named(before, [key for key in before if key not in after]),
        silence=max(gaps[b] for b in range(first, cut + 2) if b in gaps),
        usual=median(gap for b, gap in gaps.items() if b < first),
        before=Speed.of([done[b] for b in range(first - BATCHES, first) if b in done]),
        after=Speed.of([done[b] for b in sorted(done) if b > cut][-BATCHES:]),
        verdicts=tuple(_verified(job)),
        pictures=tuple(_drawn(old, new, task, pictures)),
    )


def _task(job: Job, decision: Decision, directory: Path) -> Task:
    """The query under the workload that the decision rests on."""
    file = directory / "workload.json"
    write(file, dumps(decision.workload, indent=2))
    return from_job(job, decision.query, file)


def _priced(task: Task, plan: Mapping[str, Any]) -> "Priced":
    return price(from_json(task.query, plan), Estimator(task.query, task.workload))


def _named(found: Mapping[str, Any], keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(tree_of(found[key])) for key in keys)


def _verified(job: Job) -> "Sequence[Verdict]":
    store = streaming.job_store(job)
    queries = {name: job.query(name) for name in job.queries}
    return list(verify(queries, streaming.streams(job), store, last(store)))


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
            ("rows in a second of work", *_pair(found, "throughput"), _times(found)),
            ("rows in state", *_pair(found, "state"), ""),
        ],
        right="before after",
    )
    show.plain(
        f"  longest wait for a batch while migrating {found.silence:.1f} s, "
        f"usually {found.usual:.1f} s"
    )
    show.heading("Whether the results are right")
    for verdict in found.verdicts:
        show.plain(
            f"  {verdict.query}: {verdict.actual:,} results, {verdict.missing} missing, "
            f"{verdict.duplicate} duplicate, {verdict.wrong} wrong"
        )
    show.heading("Pictures")
    for path in found.pictures:
        show.plain(f"  {path}")


def _pair(found: Report, what: str) -> tuple[str, str]:
    return f"{getattr(found.before, what):,.0f}", f"{getattr(found.after, what):,.0f}"


def _times(found: Report) -> str:
    return f"{found.after.throughput / found.before.throughput:.2f} times"
