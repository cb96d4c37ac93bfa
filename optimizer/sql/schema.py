"""Schemas as in `num STRING, gate STRING, ts TIMESTAMP`."""

import re
from collections.abc import Iterator

from sqlglot import Token, TokenType

from optimizer.query import Column
from optimizer.sql.text import Text

TYPES = {
    "BOOLEAN": "BOOLEAN",
    "BYTE": "TINYINT",
    "TINYINT": "TINYINT",
    "SHORT": "SMALLINT",
    "SMALLINT": "SMALLINT",
    "INT": "INT",
    "INTEGER": "INT",
    "LONG": "BIGINT",
    "BIGINT": "BIGINT",
    "FLOAT": "FLOAT",
    "REAL": "FLOAT",
    "DOUBLE": "DOUBLE",
    "STRING": "STRING",
    "BINARY": "BINARY",
    "DATE": "DATE",
    "TIMESTAMP": "TIMESTAMP",
    "TIMESTAMP_LTZ": "TIMESTAMP",
    "DECIMAL": "DECIMAL",
    "DEC": "DECIMAL",
    "NUMERIC": "DECIMAL",
}
"""Spark's names of simple types, and what each is called here."""

NAME = re.compile(r"[^\W\d]\w*")


def parse_schema(text: str) -> tuple[Column, ...]:
    """The columns, their types normalised (INTEGER is INT, DECIMAL is DECIMAL(10, 0))."""
    source = Text(text)
    columns: dict[str, Column] = {}
    for tokens in _definitions(source):
        column = _column(source, tokens)
        if column.name.lower() in columns:
            raise source.error(f"two columns are called {column.name}", tokens[0].start)
        columns[column.name.lower()] = column
    return tuple(columns.values())


def _definitions(source: Text) -> Iterator[list[Token]]:
    """The tokens between the commas; those within parentheses do not count."""
    found: list[Token] = []
    depth = 0
    for token in source.tokens:
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
        if token.token_type == TokenType.COMMA and depth == 0:
            if not found:
                raise source.error("a column is missing before this comma", token.start)
            yield found
            found = []
        else:
            found.append(token)
    if not found:
        raise source.error("a column is missing behind this comma", source.tokens[-1].start)
    yield found


def _column(source: Text, tokens: list[Token]) -> Column:
    name, *rest = tokens
    if not NAME.fullmatch(name.text):
        raise source.error(f"not the name of a column: {name.text}", name.start)
    if rest and rest[0].token_type == TokenType.COLON:
        rest = rest[1:]
    if not rest:
        raise source.error(f"column {name.text} has no type", name.start)
    if (known := TYPES.get(rest[0].text.upper())) is None:
        allowed = ", ".join(sorted(set(TYPES.values())))
        message = f"{rest[0].text} is not a type of column: write one of {allowed}"
        raise source.error(message, rest[0].start)
    arguments = "".join(token.text for token in rest[1:])
    if known == "DECIMAL":
        return Column(name.text, _decimal(source, arguments, rest[0]))
    if arguments:
        raise source.error(f"unexpected {rest[1].text} behind {known}", rest[1].start)
    return Column(name.text, known)


def _decimal(source: Text, arguments: str, at: Token) -> str:
    if not arguments:
        return "DECIMAL(10, 0)"
    digits = re.fullmatch(r"\((\d+)(?:,(\d+))?\)", arguments)
    if digits is None or not int(digits[2] or 0) <= int(digits[1]) <= 38 or not int(digits[1]):
        raise source.error("write DECIMAL(precision, scale) with at most 38 digits", at.start)
    return f"DECIMAL({int(digits[1])}, {int(digits[2] or 0)})"
