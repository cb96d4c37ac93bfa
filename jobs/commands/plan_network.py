"""`midstream plan-network`: join order and placement of many queries over many sites."""

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobs import show
from jobs.commands.pictures import check_pictures, picture, say_where
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
        Path | None, typer.Argument(help="Sites and links.", show_default=False)
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Argument(help="Streams, queries, and what happens.", show_default=False),
    ] = None,
    *,
    strategy: Annotated[
        str, typer.Option(help="One of `midstream strategies`, or all, side by side.")
    ] = DEFAULT,
    max_cs: Annotated[
        str, typer.Option(help="The most sites of a cluster, or auto.", metavar="N|auto")
    ] = AUTO,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="For whatever is drawn.")] = 0,
    state: Annotated[
        Path | None, typer.Option(help="Keep deployments here, and go on from them.")
    ] = None,
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
    names, size = _strategies(strategy), _size(max_cs)
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
    _tell(found, several=strategy == ALL, svg=svg, json=json)
    return 0


class _Task:
    """Both files, and the place that they describe."""

    def __init__(self, place: "Place", queries: "Resolved", setup: float) -> None:
        self.place, self.queries, self.setup = place, queries, setup

    @classmethod
    def of(cls, network: Path, queries: Path, max_cs: int | None, seed: int) -> "_Task":
        from jobs.network.files import load
        from jobs.network.job_queries import Resolved
        from jobs.network.topology import warm

        sites, file, _, document = load(network, queries)
        _check_places(sites, file, document)
        queries_of = Resolved.of(file, document)
        with show.progress(f"{len(sites.sites):,} sites"):
            warm()
            begun = perf_counter()
            place = _place(sites, max_cs, seed)
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


def _place(file: "NetworkFile", max_cs: int | None, seed: int) -> "Place":
    from jobs.network.session import Place

    sites = {name: fields.site() for name, fields in file.sites.items()}
    links = [link.link() for link in file.links]
    return Place.of(sites, links, file.measure, max_cs=max_cs, seed=seed)


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
    from jobs.documents import check, read
    from jobs.network.files import NetworkFile

    return _told_clusters(_place(check(NetworkFile, read(network)), max_cs, seed), json=json)


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
    from jobs.commands.explain import write
    from jobs.network.picture import as_svg

    check_pictures(svg, len(found))
    for session, _ in found:
        write(picture(svg, session.strategy), as_svg(session))
