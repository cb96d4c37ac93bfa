"""CQL's windows, `[RANGE 5 MINUTES]` behind a stream: found among the tokens, and blanked.

Spark's grammar does not know them.  Blanks of the same length keep every other position right.
"""

from dataclasses import dataclass

from sqlglot import Token, TokenType

from optimizer.query import QueryError
from optimizer.sql.durations import microseconds
from optimizer.sql.text import Text

_REFUSED = {
    "ROWS": "a window of [ROWS n] depends on the order of arrival: write [RANGE n UNIT]",
    "PARTITION": "a window of [PARTITION BY ...] depends on the order of arrival: "
    "write [RANGE n UNIT]",
    "NOW": "[NOW] holds no tuple that could wait for its partner: write [RANGE n UNIT]",
    "UNBOUNDED": "an [UNBOUNDED] window would have to be kept forever: write [RANGE n UNIT]",
    "SLIDE": "SLIDE is not supported: results appear as soon as they exist, "
    "and a window of aggregates slides with window(ts, size, slide)",
}


@dataclass(frozen=True)
class Range:
    """A window of that length in microseconds, at that offset, behind the name at `name`."""

    name: int
    at: int
    length: int


def take_ranges(source: Text) -> tuple[str, list[Range]]:
    """The text without its windows, and the windows."""
    text, found = source.text, []
    tokens = source.tokens
    for position, token in enumerate(tokens[:-1]):
        if token.token_type != TokenType.L_BRACKET or not _opens(tokens[position + 1]):
            continue
        body = _body(source, position)
        found.append(Range(tokens[position - 1].start, token.start, _length(source, body, token)))
        end = tokens[position + len(body) + 1].end + 1
        blank = "".join(c if c == "\n" else " " for c in text[token.start : end])
        text = text[: token.start] + blank + text[end:]
    return text, found


def _opens(token: Token) -> bool:
    return token.text.upper() in {"RANGE", *_REFUSED}


def _body(source: Text, opening: int) -> list[Token]:
    """The tokens within the brackets."""
    body: list[Token] = []
    for token in source.tokens[opening + 1 :]:
        if token.token_type == TokenType.R_BRACKET:
            return body
        body.append(token)
    raise source.error("this bracket is not closed", source.tokens[opening].start)


def _length(source: Text, body: list[Token], opening: Token) -> int:
    for token in body:
        if reason := _REFUSED.get(token.text.upper()):
            raise source.error(reason, token.start)
    if len(body) != 3 or body[1].token_type != TokenType.NUMBER:
        raise source.error("write a window as [RANGE 5 MINUTES]", opening.start)
    try:
        return microseconds(body[1].text, body[2].text)
    except QueryError as error:
        raise source.error(str(error), body[1].start) from None
