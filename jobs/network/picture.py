"""A network with what is deployed: sites by cluster, flows as thick as their bytes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import atan2, ceil, cos, hypot, pi, sin, sqrt

import numpy as np

from jobs.network.report import figure
from jobs.network.session import Session
from optimizer.network.deployment import Kind
from optimizer.network.hierarchy import Cluster
from optimizer.network.sites import Matrix
from optimizer.picture.svg import (
    EDGE,
    FAINT,
    FONT,
    GROUP,
    HEAVY,
    INK,
    JOIN,
    PAPER,
    STREAM,
    Line,
    Paint,
    escape,
    fit,
    label,
)

Point = tuple[float, float]

SPACE = 30.0
"""Between two sites of a cluster."""
MARGIN, TOP, FOOT = 34.0, 92.0, 70.0
THINNEST, THICKEST = 1.0, 11.0
TINTS = ("#e8eefb", "#e6f6ee", "#fdf1e0", "#f5eafa", "#e3f4f7", "#fbe9ec")


@dataclass(frozen=True)
class Disc:
    """A cluster's ground."""

    cluster: Cluster
    at: Point
    radius: float


def as_svg(session: Session) -> str:
    """The picture of all that runs."""
    discs = _discs(session)
    places = {name: at for disc in discs for name, at in _members(disc)}
    width = max(d.at[0] + d.radius for d in discs) + MARGIN
    height = max(d.at[1] + d.radius for d in discs) + FOOT
    parts = [
        *_ground(discs), *_links(session, places), *_flows(session, places),
        *_sites(session, places), *_head(session, width), *_legend(height),
    ]  # fmt: skip
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="{FONT}">'
        f'<rect width="{width:.0f}" height="{height:.0f}" rx="14" fill="{PAPER}"/>'
        f"{''.join(parts)}</svg>\n"
    )


# --- where things stand --------------------------------------------------------------------------


def _discs(session: Session) -> list[Disc]:
    """The lowest clusters, about where their coordinators lie, pushed apart until none overlap."""
    clusters = session.place.levels.hierarchy.levels[0]
    at = _plane(session, [c.coordinator for c in clusters])
    radii = [_radius(len(c.members)) for c in clusters]
    scale = 1.6 * sqrt(sum((r + SPACE) ** 2 for r in radii))
    spread = float(np.abs(at).max(initial=0.0)) or 1.0
    points = _apart(at * np.array([1.5, 1.0]) / spread * scale / 2, np.array(radii))
    low = (points - np.array(radii)[:, None]).min(axis=0)
    room = max(0.0, 620 - float((points[:, 0] + radii - low[0]).max()) - 2 * MARGIN) / 2
    moved = points - low + np.array([MARGIN + room, TOP])
    return [
        Disc(cluster, (float(x), float(y)), radius)
        for cluster, (x, y), radius in zip(clusters, moved, radii, strict=True)
    ]


def _radius(members: int) -> float:
    """Rings of sites around the coordinator."""
    rings = ceil((sqrt(1 + 4 * max(0, members - 1) / 3) - 1) / 2)
    return SPACE * (rings + 0.75)


def _plane(session: Session, names: list[str]) -> Matrix:
    """Sites in two dimensions, about as far apart as on the network (classical scaling)."""
    net = session.place.network
    rows = [net.index[name] for name in names]
    squares = np.minimum(net.distances[np.ix_(rows, rows)], _longest(session)) ** 2
    centre = np.eye(len(rows)) - 1 / len(rows)
    values, vectors = np.linalg.eigh(-centre @ squares @ centre / 2)
    found: Matrix = np.zeros((len(rows), 2))
    for axis in range(min(2, len(rows))):
        found[:, axis] = vectors[:, -1 - axis] * sqrt(max(float(values[-1 - axis]), 0.0))
    return found


def _longest(session: Session) -> float:
    net = session.place.network
    return float(net.distances[net.before >= 0].max(initial=1.0))


def _apart(points: Matrix, radii: Matrix) -> Matrix:
    """Push discs apart where they overlap; equal ones along a fixed direction."""
    for _ in range(400):
        clear = True
        for i in range(len(points)):
            for j in range(i):
                way = points[i] - points[j]
                length = float(np.hypot(*way))
                lack = radii[i] + radii[j] + SPACE / 2 - length
                if lack > 0.1:
                    clear = False
                    unit = way / length if length > 1e-9 else np.array([cos(i), sin(i)])
                    points[i] += unit * lack / 2
                    points[j] -= unit * lack / 2
        if clear:
            break
    return points


def _members(disc: Disc) -> Iterator[tuple[str, Point]]:
    """The coordinator in the middle, the others in rings of six, twelve, eighteen."""
    yield disc.cluster.coordinator, disc.at
    others = [name for name in disc.cluster.names if name != disc.cluster.coordinator]
    ring = 1
    while others:
        here, others = others[: 6 * ring], others[6 * ring :]
        for number, name in enumerate(here):
            angle = 2 * pi * number / len(here) + ring / 2
            away = SPACE * ring
            yield name, (disc.at[0] + away * cos(angle), disc.at[1] + away * sin(angle))
        ring += 1


# --- what is drawn -------------------------------------------------------------------------------


def _ground(discs: list[Disc]) -> Iterator[str]:
    for number, disc in enumerate(discs):
        x, y = disc.at
        yield (
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{disc.radius:.1f}" '
            f'fill="{TINTS[number % len(TINTS)]}" stroke="{EDGE}" stroke-opacity="0.5"/>'
        )


def _links(session: Session, places: Mapping[str, Point]) -> Iterator[str]:
    for link in session.place.links:
        (x, y), (u, v) = (places[name] for name in link.between)
        yield (
            f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{u:.1f}" y2="{v:.1f}" stroke="{EDGE}" '
            'stroke-width="0.8" stroke-opacity="0.55"/>'
        )


def carried(session: Session) -> dict[tuple[str, str], float]:
    """Bytes a second over each link, from one end to the other."""
    found: dict[tuple[str, str], float] = {}
    net = session.place.network
    for flow in session.deployed.flows(session.load, net):
        path = net.path(flow.start, flow.end)
        for step in pairwise(path):
            found[step] = found.get(step, 0.0) + flow.bytes
    return found


def _flows(session: Session, places: Mapping[str, Point]) -> Iterator[str]:
    flows = carried(session)
    most = max(flows.values(), default=0.0) or 1.0
    for (start, end), load in sorted(flows.items(), key=lambda one: -one[1]):
        thick = THINNEST + (THICKEST - THINNEST) * sqrt(load / most)
        yield _flow(places[start], places[end], thick, f"{start} → {end}: {load:,.0f} bytes/s")


def _flow(start: Point, end: Point, thick: float, title: str) -> str:
    """A bow to the left of its way, so that both directions are seen, with an arrow half way."""
    (x, y), (u, v) = start, end
    length = hypot(u - x, v - y) or 1.0
    bow = min(14.0, 0.12 * length)
    cx, cy = (x + u) / 2 - (v - y) / length * 2 * bow, (y + v) / 2 + (u - x) / length * 2 * bow
    mx, my = (x + 2 * cx + u) / 4, (y + 2 * cy + v) / 4
    return (
        f'<g><title>{escape(title)}</title><path d="M{x:.1f} {y:.1f}Q{cx:.1f} {cy:.1f} {u:.1f} '
        f'{v:.1f}" fill="none" stroke="{STREAM.line}" stroke-width="{thick:.1f}" '
        f'stroke-opacity="0.6" stroke-linecap="round"/>'
        f"{_head_of((mx, my), atan2(v - y, u - x), 3.5 + thick / 2)}</g>"
    )


def _head_of(at: Point, angle: float, size: float) -> str:
    corners = [
        (at[0] + size * cos(angle + turn), at[1] + size * sin(angle + turn))
        for turn in (0.0, 2.4, -2.4)
    ]
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in corners)
    return f'<path d="M{path}Z" fill="{STREAM.line}"/>'


def _sites(session: Session, places: Mapping[str, Point]) -> Iterator[str]:
    marks = roles(session)
    heads = {cluster.coordinator for cluster in session.place.levels.hierarchy.levels[0]}
    for name, (x, y) in places.items():
        what = marks.get(name, "")
        told = f"<title>{escape(name)}{escape(f': {what}' if what else '')}</title>"
        yield f"<g>{told}{''.join(_site(x, y, what, head=name in heads))}</g>"
        if what or name in heads or len(places) <= 40:
            bold = bool(what)
            line = Line(fit(name, SPACE * 1.9, 9.5, bold=bold), 9.5, bold=bold, faint=not bold)
            yield label(x, y + 17, line)


def roles(session: Session) -> dict[str, str]:
    """What stands at each site, in words."""
    found: dict[str, list[str]] = {}
    deployed = session.deployed
    read = {r.source for node in deployed.derived() for r in node.reads}
    for key, node in deployed.nodes.items():
        if key.kind is Kind.BASE and key in read:
            found.setdefault(node.site, []).append(f"stream {key.owner}")
        elif key.kind is not Kind.BASE:
            found.setdefault(node.site, []).append(f"{key.kind} of {key.owner}")
    return {site: ", ".join(words) for site, words in found.items()}


def _site(x: float, y: float, what: str, *, head: bool) -> Iterator[str]:
    """A dot; a ring for a stream, a square for operators, a triangle for sinks."""
    if "sink of" in what:
        yield _shape(_triangle(x, y, 11), GROUP)
    if "operator of" in what:
        yield _shape(f"M{x - 7:.1f} {y - 7:.1f}h14v14h-14Z", JOIN)
    if "stream " in what:
        paint = f'fill="{STREAM.fill}" stroke="{STREAM.line}" stroke-width="2"'
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6" {paint}/>'
    fill = HEAVY.line if head else (INK if what else FAINT)
    yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{3.2 if head or what else 2.4}" fill="{fill}"/>'


def _triangle(x: float, y: float, size: float) -> str:
    return (
        f"M{x:.1f} {y - size:.1f}L{x + size * 0.9:.1f} {y + size * 0.6:.1f}"
        f"L{x - size * 0.9:.1f} {y + size * 0.6:.1f}Z"
    )


def _shape(path: str, paint: Paint) -> str:
    return f'<path d="{path}" fill="{paint.fill}" stroke="{paint.line}" stroke-width="1.8"/>'


def _head(session: Session, width: float) -> Iterator[str]:
    room, running = width - 2 * MARGIN, len(session.deployed.demands)
    title = f"{running:,} {'query' if running == 1 else 'queries'} by {session.strategy}"
    yield label(MARGIN, 38, Line(fit(title, room, 19, bold=True), 19, bold=True), anchor="start")
    text = (
        f"{len(session.place.sites):,} sites, {len(session.deployed.operators()):,} joins, "
        f"usage {figure(session.usage)} (bytes/s x {session.place.measure})"
    )
    yield label(MARGIN, 60, Line(fit(text, room, 12.5), 12.5), FAINT, "start")


def _legend(height: float) -> Iterator[str]:
    x, y = MARGIN + 8, height - 26
    items = (("stream ", "stream"), ("operator of", "operator"), ("sink of", "sink"), ("", "site"))
    for what, word in items:
        yield from _site(x, y, what, head=False)
        yield label(x + 16, y + 4, Line(word, 11.5), FAINT, "start")
        x += 44 + 7.2 * len(word)
    yield from _site(x, y, "", head=True)
    yield label(x + 16, y + 4, Line("coordinator", 11.5), FAINT, "start")
    x += 44 + 7.2 * len("coordinator")
    yield _flow((x, y), (x + 40, y), 5, "flow")
    yield label(x + 52, y + 4, Line("flow, as thick as its bytes", 11.5), FAINT, "start")
