"""`midstream rate`: which plan has most results by a time, or the first so many soonest."""

from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from jobs import show
from jobs.errors import InputError
from jobs.pictures import write
from jobs.words import found, one_of

if TYPE_CHECKING:
    from jobs.rating.report import Planned, Report
    from optimizer.cost.rate.objective import Objective

MODELS = ("exact", "printed")
SERVERS = ("each", "one")


def rate(  # noqa: PLR0913  # options, each by its name
    workload: Annotated[Path, typer.Argument(help="Rates, selectivities and costs.")],
    *,
    plan: Annotated[
        list[str] | None, typer.Option(help="A plan to look at, such as '((A C) B)'; several.")
    ] = None,
    strategy: Annotated[
        str | None,
        typer.Option(help="rate-max, time-min, exact, cardinality or all, which compares them."),
    ] = None,
    by: Annotated[
        list[str] | None, typer.Option(help="A time, such as '10 seconds': most results by then.")
    ] = None,
    first: Annotated[
        list[str] | None, typer.Option(help="A number of results: the soonest to have them.")
    ] = None,
    model: Annotated[str, typer.Option(help="exact, or printed: the paper's equations.")] = "exact",
    servers: Annotated[
        str, typer.Option(help="each: one for every operator; one: a CPU for all.")
    ] = "each",
    simulate: Annotated[
        int | None, typer.Option(min=1, help="Simulate each plan so many times, event by event.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the simulation.")] = 0,
    svg: Annotated[Path | None, typer.Option(help="Draw the curves into this file.")] = None,
    json: show.Json = False,
) -> None:
    """Say which plan has most results by a time, or the first so many soonest."""
    from jobs.rating.planning import Asked, answer
    from jobs.rating.workload import load
    from optimizer.cost.rate.judge import Model
    from optimizer.cost.rate.tree import Servers

    objectives = _objectives(by or [], first or [])
    _known(model, MODELS, "--model")
    _known(servers, SERVERS, "--servers")
    asked = Asked(
        load(workload), plan or [], strategy, Servers(servers), Model(model), simulate or 0, seed
    )
    asked.check()
    reports = [answer(asked, objective) for objective in objectives]
    if svg is not None:
        _draw(reports, svg, workload.stem)
    if json:
        listed = [report.to_json() for report in reports]
        show.as_json(listed if len(listed) > 1 else listed[0])
    else:
        for report in reports:
            _show(report)
        if svg is not None:
            show.note(f"The picture is in {svg}")


def _known(name: str, names: Sequence[str], option: str) -> None:
    if name not in names:
        raise InputError(f"found {found(name)}; allowed: {one_of(names)}", option)


def _objectives(by: Sequence[str], first: Sequence[str]) -> "list[Objective]":
    from optimizer.cost.rate.objective import Objective

    wanted = [Objective(by=seconds(text, "--by")) for text in by]
    wanted += [Objective(first=_results(text)) for text in first]
    if not wanted:
        raise InputError("missing; needed: --by '10 seconds' or --first 1000", "--by or --first")
    return wanted


def seconds(text: str, where: str) -> float:
    """A time above zero: a number of seconds, or words such as 10 seconds."""
    from jobs.workloads import LONGEST
    from optimizer.query import QueryError
    from optimizer.sql import parse_duration
    from optimizer.window import MICROSECONDS

    try:
        length = float(text)
    except ValueError:
        try:
            length = parse_duration(text) / MICROSECONDS
        except QueryError:
            length = float("nan")
    if not 0 < length <= LONGEST:
        allowed = "a time above zero, such as 10 seconds or 2.5"
        raise InputError(f"found {found(text)}; allowed: {allowed}", where)
    return length


def _results(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not (isfinite(number) and number >= 1 and number == int(number)):
        raise InputError(f"found {found(text)}; allowed: a whole number above zero", "--first")
    return number


def _draw(reports: "Sequence[Report]", path: Path, name: str) -> None:
    from jobs.rating.picture import picture

    if len(reports) > 1:
        raise InputError("one picture is of one objective: give one of --by and --first", "--svg")
    write(path, picture(reports[0], f"{name}: {reports[0].judge.objective}"))


# --- what people see -----------------------------------------------------------------------------


def _show(report: "Report") -> None:
    from jobs.rating.chart import chart

    judge = report.judge
    work = "a server for each operator" if judge.servers == "each" else "one server for all"
    show.heading(f"{str(judge.objective).capitalize()}: {judge.model} model, {work}")
    _table(report)
    for name, why in report.left_out.items():
        show.note(f"without {name}: {why}")
    lines = chart(report)
    if lines:
        show.heading("Results over time")
        for line in lines:
            show.out.print(line, soft_wrap=True)
    _crossed(report)


def _table(report: "Report") -> None:
    from jobs.rating.chart import letter

    measure = "results" if report.judge.objective.by is not None else "seconds"
    columns = ["", "", "strategy", "plan", measure, "estimate"]
    simulated = any(one.simulated for one in report.plans)
    columns += ["simulated"] if simulated else []
    rows = []
    for one in report.plans:
        mark = Text("→" if one is report.chosen else " ", "green")
        row: list[str | Text] = [mark, letter(one, report.plans), Text(one.strategy, "cyan")]
        row += [str(one.plan), _number(one.value), _estimate(one)]
        row += [_spread(one)] if simulated else []
        rows.append([*row, _late(one)])
    show.table([*columns, "falls behind"], rows, right="results seconds estimate simulated")
    show.note(_took(report))


def _took(report: "Report") -> str:
    if report.chosen is None:
        return "no plan ever makes so many: results end before"
    if not report.examined:
        return "→ is the one to take"
    return f"→ is the one to take; {report.examined:,} looked at in {report.seconds:.2f} s"


def _estimate(one: "Planned") -> str:
    return "" if one.estimate is None else _number(one.estimate if isfinite(one.estimate) else None)


def _number(value: float | None) -> str:
    if value is None:
        return "never"
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.3g}"


def _spread(one: "Planned") -> str:
    if one.simulated is None or one.simulated.value.mean is None:
        return "never"
    value = one.simulated.value
    return f"{_number(value.mean)} ± {_number(value.deviation)}"


def _late(one: "Planned") -> str:
    late = one.curve.late if one.curve else ()
    return ", ".join(f"{o.operator} from {o.since:.3g} s" for o in late) or "nothing"


def _crossed(report: "Report") -> None:
    from jobs.rating.chart import letter

    plans, told = report.plans, set()
    for one in report.crossings:
        first, second = sorted((letter(plans[i], plans) for i in one.plans), key=str)
        text = f" cross at {one.results:,.0f} results, after {one.seconds:.3g} s"
        if (str(first), str(second), text) not in told:
            told.add((str(first), str(second), text))
            show.out.print(Text.assemble(first, " and ", second, text))
