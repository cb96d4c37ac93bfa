"""`midstream plan-network`: join order and placement of many queries over many sites."""

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobs import show
from jobs.commands.pictures import check_pictures, picture, say_where
from jobs.commands.plan_job import plan_job
from jobs.errors import InputError
from jobs.words import unknown

if TYPE_CHECKING:
    from jobs.documents import Document
    from jobs.network.files import NetworkFile, QueriesFile
    from jobs.network.job_queries import Resolved
    from jobs.network.session import Place, Session

ALL = "all"
AUTO = "auto"
DEFAULT = "top-down"


def plan_network(  # noqa: PLR0913  # options, each by its name
    network: Annotated[
        Path | None,
        typer.Argument(help="Sites and links; or a job file that names them.", show_default=False),
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Argument(help="Streams, queries, and what happens.", show_default=False),
    ] = None,
    *,
    strategy: Annotated[
        str | None,
        typer.Option(
            help=f"One of `midstream strategies`, or all, side by side. [default: {DEFAULT}; "
            "of a job the best of all]",
            show_default=False,
        ),
    ] = None,
    max_cs: Annotated[
        str, typer.Option(help="The most sites of a cluster, or auto.", metavar="N|auto")
    ] = AUTO,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="For whatever is drawn.")] = 0,
    state: Annotated[
        Path | None, typer.Option(help="Keep deployments here, and go on from them.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Of a job: decide, but keep nothing.")
    ] = False,
    propose: Annotated[
        bool,
        typer.Option("--propose", help="Of a job: only if usage has drifted, and deploy nothing."),
    ] = False,
    reason: Annotated[
        str, typer.Option(help="Of a job: why, for those who read it later.", metavar="TEXT")
    ] = "",
    hierarchy: Annotated[bool, typer.Option("--hierarchy", help="Show the clusters.")] = False,
    svg: Annotated[Path | None, typer.Option(help="Draw what is deployed into this file.")] = None,
    generate: Annotated[
        str | None, typer.Option(help="Print a made-up network instead: transit-stub.")
    ] = None,
    sites: Annotated[
        int, typer.Option(min=1, max=4096, help="How many a made-up network has.")
    ] = 128,
    json: show.Json = False,
) -> int:
    """Plan queries over a network and place their operators, reusing what runs already."""
    if generate is not None:
        return _generated(generate, sites, seed, json=json)
    if network is None:
        raise InputError("name a network and a file of queries, or --generate", "NETWORK")
    size = _size(max_cs)
    if queries is None and not hierarchy and _is_job(network):
        _check_job(strategy, state)
        return plan_job(network, strategy, size, seed, dry_run=dry_run, propose=propose,
                        reason=reason, svg=svg, json=json)  # fmt: skip
    if dry_run or propose or reason:
        raise InputError("only of a job file: midstream plan-network JOB", _first(dry_run, propose))
    names = _strategies(strategy or DEFAULT)
    check_pictures(svg, len(names))
    if queries is None and not hierarchy:
        raise InputError("name a file of queries, or ask for --hierarchy", "QUERIES")
    if len(names) > 1 and state is not None:
        raise InputError("several strategies cannot share a state: name one", "--state")
    if queries is None:
        return _clusters(network, size, seed, json=json)
    task = _Task.of(network, queries, size, seed)
    if hierarchy:
        return _told_clusters(task.place, json=json)
    found = [task.run(name, state) for name in names]
    _tell(found, several=len(names) > 1, svg=svg, json=json)
    return 0


def _is_job(path: Path) -> bool:
    from jobs import specs
    from jobs.documents import read

    return specs.is_job(read(path))


def _check_job(strategy: str | None, state: Path | None) -> None:
    """What means nothing, or something else, where a job is planned."""
    if state is not None:
        raise InputError("a job keeps its deployments under its own storage", "--state")
    if strategy is not None:
        from optimizer.network.placement import NETWORK_PLACEMENTS

        if strategy not in NETWORK_PLACEMENTS:
            problem = unknown("strategy", strategy, NETWORK_PLACEMENTS)
            raise InputError(problem, "--strategy")


def _first(dry_run: bool, propose: bool) -> str:  # noqa: FBT001
    """The option that was given first."""
    return "--dry-run" if dry_run else "--propose" if propose else "--reason"


class _Task:
    """Both files, and the place that they describe."""

    def __init__(self, place: "Place", queries: "Resolved", setup: float) -> None:
        self.place, self.queries, self.setup = place, queries, setup

    @classmethod
    def of(cls, network: Path, queries: Path, max_cs: int | None, seed: int) -> "_Task":
        from jobs.network.files import load
        from jobs.network.job_queries import Resolved
        from jobs.network.session import Place
        from jobs.network.topology import warm

        sites, file, _, document = load(network, queries)
        _check_places(sites, file, document)
        queries_of = Resolved.of(file, document)
        with show.progress(f"{len(sites.sites):,} sites"):
            warm()
            begun = perf_counter()
            place = Place.of_file(sites, max_cs, seed)
            return cls(place, queries_of, perf_counter() - begun)

    def run(self, strategy: str, state: Path | None) -> "tuple[Session, dict[str, Any]]":
        """Carry out the events by a strategy; what it came to."""
        from jobs.network import state as kept
        from jobs.network.events import Script
        from jobs.network.session import Session
        from jobs.network.told import session

        deployed, optima = kept.read(state) if state is not None else (None, None)
        begun = Session.begin(self.place, self.queries.load, strategy, deployed, optima)
        script = Script(self.queries.file, self.queries.document, begun, self.queries.demands)
        script.catch_up()
        with show.progress(strategy) as told:
            done = script.run(told)
        if state is not None:
            kept.write(state, done)
        return done, session(done, self.setup, script.happened)


def _check_places(network: "NetworkFile", file: "QueriesFile", document: "Document") -> None:
    """Every stream comes in, and every result goes out, at a site that is there some time."""
    from jobs.errors import Problem

    joining = {event.join.site for event in file.events or () if event.join is not None}
    there = {*network.sites, *joining}
    named = [(("streams", name, "site"), s.site) for name, s in file.streams.items()]
    named += [(("queries", n, "sink"), q.sink) for n, q in enumerate(file.queries)]  # type: ignore[misc]
    problems = [
        Problem(unknown("site", site, network.sites), document.where(loc))
        for loc, site in named
        if site not in there
    ]
    if problems:
        raise InputError(problems[0].error, problems[0].where, more=problems[1:])


def _strategies(strategy: str) -> list[str]:
    from optimizer.network.placement import NETWORK_PLACEMENTS

    if strategy == ALL:
        return list(NETWORK_PLACEMENTS)
    if strategy not in NETWORK_PLACEMENTS:
        raise InputError(unknown("strategy", strategy, [*NETWORK_PLACEMENTS, ALL]), "--strategy")
    return [strategy]


def _size(text: str) -> int | None:
    if text == AUTO:
        return None
    if not text.isdecimal() or not 2 <= int(text) <= 10**6:
        raise InputError(
            f"found {text!r}; allowed: auto, or a whole number of at least 2", "--max-cs"
        )
    return int(text)


def _generated(kind: str, sites: int, seed: int, *, json: bool) -> int:
    import yaml

    from jobs.network.generate import GENERATORS, transit_stub

    if kind not in GENERATORS:
        raise InputError(unknown("generator", kind, GENERATORS), "--generate")
    made = transit_stub(sites, seed)
    if json:
        show.as_json(made)
    else:
        typer.echo(yaml.safe_dump(made, sort_keys=False, default_flow_style=None), nl=False)
    return 0


def _clusters(network: Path, max_cs: int | None, seed: int, *, json: bool) -> int:
    from jobs import specs
    from jobs.commands.plan_job import check as check_job
    from jobs.documents import check, read
    from jobs.network.files import NetworkFile
    from jobs.network.job_load import place_of
    from jobs.network.session import Place

    if _is_job(network):
        check_job(job := specs.load(network))
        return _told_clusters(place_of(job, max_cs, seed), json=json)
    return _told_clusters(Place.of_file(check(NetworkFile, read(network)), max_cs, seed), json=json)


def _told_clusters(place: "Place", *, json: bool) -> int:
    from jobs.network.report import clusters
    from jobs.network.told import hierarchy

    told = hierarchy(place.levels)
    if json:
        show.as_json(told)
    else:
        clusters(told)
    return 0


def _tell(
    found: "list[tuple[Session, dict[str, Any]]]",
    *, several: bool, svg: Path | None, json: bool,
) -> None:  # fmt: skip
    from jobs.network.report import report

    if svg is not None:
        _draw(found, svg)
    told = [one for _, one in found]
    if json:
        show.as_json(told if several else told[0])
        return
    report(told)
    say_where(svg)


def _draw(found: "list[tuple[Session, dict[str, Any]]]", svg: Path) -> None:
    from jobs.network.picture import as_svg
    from jobs.pictures import write

    for session, _ in found:
        write(picture(svg, session.strategy), as_svg(session))
