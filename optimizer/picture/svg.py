"""What pictures are drawn with: colours, text of a known width, SVG elements.

Text is measured as the widest of the usual fonts would set it, so that it fits in all of them.
"""

import html
from collections.abc import Iterator
from dataclasses import dataclass
from unicodedata import category, east_asian_width


@dataclass(frozen=True)
class Paint:
    """The colours of a card, a drum or a bar."""

    fill: str
    line: str
    ink: str = "#0f172a"


PAPER, INK, FAINT, EDGE = "#f8fafc", "#0f172a", "#64748b", "#a3b1c6"
STREAM = Paint("#e0f5f7", "#0e8a9c")
JOIN = Paint("#ffffff", "#6471c9")
CROSS = Paint("#ffffff", "#b45309")
GROUP = Paint("#f7effc", "#9447bd")
RESULT = Paint("#1e293b", "#1e293b", "#ffffff")
HEAVY = Paint("#fff1f2", "#dc2647")
DRUM = Paint("#eef2f7", "#7b8ba3")
KEPT = Paint("#dcf7e3", "#1b9a4b")
REBUILT = Paint("#ffe9d2", "#e2700f")
DROPPED = Paint("#e5e7eb", "#9aa3af", "#6b7280")

FONT = "Inter, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif"


@dataclass(frozen=True)
class Line:
    """A line of text in a card."""

    text: str
    size: float = 11.5
    bold: bool = False
    faint: bool = False


_WIDTHS = (
    (" ijlI.,:;'|!·`", 0.36),
    ('tfr()[]{}"-/\\', 0.46),
    ("mwMW@%=<>+&→…—~^#", 0.97),
)


def text_width(text: str, font_size: float, *, bold: bool = False) -> float:
    """How wide a text is at most, in one of the usual fonts."""
    return sum(map(_em, text)) * font_size * (1.1 if bold else 1.0)


def _em(character: str) -> float:
    for characters, width in _WIDTHS:
        if character in characters:
            return width
    if east_asian_width(character) in "WF":
        return 1.05
    return 0.74 if character.isupper() or not character.isascii() else 0.64


def fit(text: str, width: float, font_size: float, *, bold: bool = False) -> str:
    """The text, or as much of it as that width holds, with an ellipsis."""
    if text_width(text, font_size, bold=bold) <= width:
        return text
    kept = text
    while kept and text_width(f"{kept}…", font_size, bold=bold) > width:
        kept = kept[:-1]
    return f"{kept.rstrip()}…"


@dataclass(frozen=True)
class Drawing:
    """SVG elements and the room they take, from (0, 0)."""

    elements: tuple[str, ...]
    width: float
    height: float

    def at(self, x: float, y: float) -> str:
        """All of it, moved there."""
        return f'<g transform="translate({x:g} {y:g})">{"".join(self.elements)}</g>'


def bow_tie(x: float, y: float, paint: Paint) -> str:
    """The sign of a join, around a point."""
    return (
        f'<path d="M{x - 7:.1f} {y - 5:.1f}V{y + 5:.1f}L{x + 7:.1f} {y - 5:.1f}V{y + 5:.1f}Z" '
        f'fill="{paint.line}" fill-opacity="0.25" stroke="{paint.line}" stroke-width="1.4" '
        'stroke-linejoin="round"/>'
    )


def box(x: float, y: float, width: float, height: float, radius: float, paint: Paint) -> str:
    """A rectangle with round corners."""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
        f'rx="{radius:g}" fill="{paint.fill}" stroke="{paint.line}" stroke-width="1.4"/>'
    )


def bar(x: float, y: float, width: float, part: float, paint: Paint) -> Iterator[str]:
    """A track, and as much of it filled as the part says."""
    filled = max(min(part, 1.0) * width, 3.0)
    for length, opacity in ((width, 0.15), (filled, 0.9)):
        yield (
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{length:.1f}" height="4" rx="2" '
            f'fill="{paint.line}" fill-opacity="{opacity:g}"/>'
        )


def label(x: float, y: float, line: Line, ink: str = INK, anchor: str = "middle") -> str:
    """A line of text, anchored at a point of its baseline."""
    weight = ' font-weight="600"' if line.bold else ""
    opacity = ' fill-opacity="0.72"' if line.faint else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{line.size:g}" text-anchor="{anchor}" '
        f'fill="{ink}"{weight}{opacity}>{escape(line.text)}</text>'
    )


def escape(text: str) -> str:
    """XML text; what XML cannot hold is replaced."""
    return html.escape("".join(c if _printable(c) else "\ufffd" for c in text))


def _printable(character: str) -> bool:
    return character == "\n" or category(character) not in {"Cc", "Cs", "Cn"}


def arrow(x: float, y: float) -> str:
    """An arrow to the right, around a point."""
    return (
        f'<path d="M{x - 20:.1f} {y:.1f}h32m-11 -11l12 11l-12 11" fill="none" stroke="{FAINT}" '
        'stroke-width="3.5" stroke-linecap="round" stroke-linejoin="round"/>'
    )
