"""CQL's windows, `[RANGE 5 MINUTES]` behind a stream: taken out of the tokens.

Spark's grammar does not know them.  The other tokens keep their places in the text.
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


def take_ranges(source: Text) -> tuple[list[Token], list[Range]]:
    """The tokens without the windows, and the windows."""
    kept: list[Token] = []
    found: list[Range] = []
    tokens, position = source.tokens, 0
    while position < len(tokens):
        token, after = tokens[position], tokens[position + 1 : position + 2]
        if token.token_type == TokenType.L_BRACKET and after and _opens(*after):
            body = _body(source, position)
            name = kept[-1].start if kept else token.start
            found.append(Range(name, token.start, _length(source, body, token)))
            position += len(body) + 2
        else:
            kept.append(token)
            position += 1
    return kept, found


def _opens(token: Token) -> bool:
    return _word(token) in {"RANGE", *_REFUSED}


def _word(token: Token) -> str:
    """The first word: the tokenizer takes PARTITION BY as one."""
    return (token.text.upper().split() or [""])[0]


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
        if reason := _REFUSED.get(_word(token)):
            raise source.error(reason, token.start)
    if len(body) != 3 or body[1].token_type != TokenType.NUMBER:
        raise source.error("write a window as [RANGE 5 MINUTES]", opening.start)
    try:
        return microseconds(body[1].text, body[2].text)
    except QueryError as error:
        raise source.error(str(error), body[1].start) from None
