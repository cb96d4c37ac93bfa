"""The page around a picture: a heading, and a footer under a line."""

from optimizer.picture.cards import GAP
from optimizer.picture.svg import (
    EDGE,
    FONT,
    PAPER,
    Drawing,
    Line,
    Paint,
    box,
    escape,
    fit,
    label,
    text_width,
)

MARGIN = 28.0


def legend(entries: list[tuple[Paint, str]]) -> Drawing:
    """What colours mean."""
    elements, x = [], 0.0
    for paint, text in entries:
        elements.append(box(x, 4, 16, 16, 4, paint))
        elements.append(label(x + 24, 16.5, Line(text, 12.5), anchor="start"))
        x += 24 + text_width(text, 12.5) + 28
    return Drawing(tuple(elements), x, 24)


def page(title: str, notation: str, body: Drawing, footer: Drawing, about: str) -> str:
    """A heading, the tree, and a footer under a line."""
    head, foot = 78.0, 34.0 + footer.height
    room = max(body.width, footer.width, 420.0)
    width, height = room + 2 * MARGIN, head + body.height + foot + MARGIN
    rule = head + body.height + 22
    note = Line(about, 11, faint=True)
    beside = footer.width + GAP + text_width(about, 11) <= room
    note_y = rule + foot - 20 if beside else rule + foot + 2
    height += 0 if beside else 20
    elements = (
        f'<rect width="{width:.0f}" height="{height:.0f}" rx="14" fill="{PAPER}"/>',
        label(MARGIN, 38, Line(fit(title, room, 19, bold=True), 19, bold=True), anchor="start"),
        label(MARGIN, 59, Line(fit(notation, room, 12.5), 12.5, faint=True), anchor="start"),
        body.at(MARGIN + (room - body.width) / 2, head),
        f'<path d="M{MARGIN:g} {rule:.1f}h{room:.1f}" stroke="{EDGE}" stroke-opacity="0.45"/>',
        footer.at(MARGIN, rule + 14),
        label(MARGIN + room, note_y, note, anchor="end"),
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" font-family="{FONT}">'
        f"<title>{escape(title)}: {escape(notation)}</title>" + "\n".join(elements) + "</svg>\n"
    )
