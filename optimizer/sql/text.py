"""The text being parsed: its tokens, where things are, and errors that point at them."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

import sqlglot
from sqlglot import Dialect, Token, TokenType, exp
from sqlglot.errors import ParseError, SqlglotError

from optimizer.query import HOLE, QueryError

DIALECT = "spark"

_CRASHES = (AttributeError, IndexError, KeyError, TypeError, ValueError)
"""What the parser raises where it takes something for granted, such as a function's argument."""


_DIGITS = 400
"""More than a double has in front of its point; Python itself refuses thousands."""


class SqlError(QueryError):
    """SQL that is refused: why, and at which line and column (from 1) of the text."""

    def __init__(self, message: str, line: int = 1, column: int = 1, text: str = ""):
        super().__init__(message, line, column, text)
        self.message, self.line, self.column, self.text = message, line, column, text

    def __str__(self) -> str:
        return f"{self.line}:{self.column}: {self.message}"

    def pretty(self) -> str:
        """The same with the line concerned, and a caret below the place."""
        lines = self.text.split("\n")
        if self.line > len(lines):
            return str(self)
        shown = lines[self.line - 1].replace("\t", " ")
        return f"{self}\n  {shown}\n  {' ' * (self.column - 1)}^"


class Text:
    """SQL with its tokens; offsets count characters from 0."""

    def __init__(self, text: str):
        self.text = text
        if HOLE in text:
            raise self.error("a NUL character is not SQL", text.index(HOLE))
        try:
            self.tokens = _joined(text, sqlglot.tokenize(text, read=DIALECT))
        except SqlglotError:
            raise self.error(*self._unterminated()) from None
        if not self.tokens:
            raise self.error("there is no SQL here", 0)
        for token in self.tokens:
            if token.token_type == TokenType.NUMBER and len(token.text) > _DIGITS:
                raise self.error(f"a number of more than {_DIGITS} digits", token.start)

    def error(self, message: str, at: "int | exp.Expr") -> SqlError:
        """A refusal that points at an offset or at a part of the syntax tree."""
        offset = at if isinstance(at, int) else self.offset(at)
        before = self.text[:offset].split("\n")
        return SqlError(message, len(before), len(before[-1]) + 1, self.text)

    def offset(self, node: exp.Expr) -> int:
        """Where the node begins, as far as its parts know, or else what is around it."""
        known: exp.Expr | None = node
        while known is not None:
            if starts := [part.meta["start"] for part in known.walk() if "start" in part.meta]:
                return int(min(starts))
            known = known.parent
        return 0

    def first(self, *kinds: TokenType) -> int:
        """Where the first token of one of those kinds begins."""
        return next((token.start for token in self.tokens if token.token_type in kinds), 0)

    def last_before(self, offset: int, kind: TokenType) -> int:
        """Where the last token of that kind up to the offset begins."""
        found = (t.start for t in self.tokens if t.token_type == kind and t.start <= offset)
        return max(found, default=offset)

    def run_before(self, offset: int, kinds: Iterable[TokenType]) -> int:
        """Where the unbroken run of such tokens just before the offset begins."""
        wanted = frozenset(kinds)
        for token in reversed([token for token in self.tokens if token.start < offset]):
            if token.token_type not in wanted:
                break
            offset = token.start
        return offset

    def word(self, *words: str) -> int:
        """Where the first of these words stands."""
        return next((t.start for t in self.tokens if t.text.upper() in words), 0)

    def parse(self, tokens: Sequence[Token]) -> exp.Expr:
        """The syntax tree of the one statement, from these of its tokens."""
        self._check_statement()
        parser = Dialect.get_or_raise(DIALECT).parser()
        try:
            parsed = parser.parse(_functions(tokens), self.text)
        except ParseError as error:
            raise self._syntax_error(error) from None
        except (SqlglotError, *_CRASHES):
            raise self.error("this is not SQL", 0) from None
        statement = parsed[0]
        if statement is None:
            raise self.error("there is no SQL here", 0)
        return statement

    def _check_statement(self) -> None:
        kinds = [token.token_type for token in self.tokens]
        if kinds[0] == TokenType.WITH:
            raise self.error("WITH is not supported: name the streams themselves in FROM", 0)
        if kinds[0] not in {TokenType.SELECT, TokenType.L_PAREN}:
            raise self.error("only a SELECT can be a continuous query", self.tokens[0].start)
        for position, token in enumerate(self.tokens):
            if token.token_type != TokenType.SEMICOLON:
                continue
            if any(kind != TokenType.SEMICOLON for kind in kinds[position:]):
                following = self.tokens[position + 1].start
                raise self.error("one statement a query: this begins a second one", following)
        for one, other in pairwise(self.tokens):
            if one.token_type == TokenType.COMMA and other.token_type == TokenType.FROM:
                raise self.error("a column is missing behind this comma", one.start)

    def _syntax_error(self, error: ParseError) -> SqlError:
        [details, *_] = error.errors or [{}]
        at = len(details.get("start_context") or "")
        found = str(details.get("highlight") or "")
        line, column = int(details.get("line") or 1), int(details.get("col") or 1)
        lines = self.text.split("\n")
        at = sum(len(text) + 1 for text in lines[: line - 1]) + column - len(found)
        said = str(details.get("description") or "")
        if said.startswith(("Required keyword", "Expected table", "Expecting")):
            token = next((t for t in self.tokens if t.start >= at), self.tokens[-1])
            return self.error(f"something is missing behind {token.text}", token.start)
        if "number of provided arguments" in said:
            return self.error("too many arguments", at)
        return self.error(f"this is not SQL: unexpected {found or 'end of text'}", at)

    def _unterminated(self) -> tuple[str, int]:
        """The quote or comment that nothing closes: what the tokenizer does not tell."""
        return "a quote or a comment is not closed", _open_quote(self.text)


def _joined(text: str, tokens: Iterable[Token]) -> list[Token]:
    """The tokens, `'it''s'` as one: Spark takes a doubled quote for one of the text's own."""
    made: list[Token] = []
    for token in tokens:
        last = made[-1] if made else token
        strings = last.token_type == token.token_type == TokenType.STRING
        if strings and last.end + 1 == token.start and text[last.start] == text[token.start]:
            whole = f"{last.text}{text[token.start]}{token.text}"
            made[-1] = _token(TokenType.STRING, whole, last, token.end)
        else:
            made.append(token)
    return made


def _token(kind: TokenType, text: str, like: Token, end: int) -> Token:
    return Token(kind, text, like.line, like.col, like.start, end)


def _functions(tokens: Sequence[Token]) -> list[Token]:
    """The tokens, `window(` as a function's name: alone behind GROUP BY, the parser doubts it."""
    made = list(tokens)
    for position, (one, other) in enumerate(pairwise(tokens)):
        if (one.token_type, other.token_type) == (TokenType.WINDOW, TokenType.L_PAREN):
            made[position] = _token(TokenType.VAR, one.text, one, one.end)
    return made


def _open_quote(text: str) -> int:
    position = 0
    while position < len(text):
        opened = next((o for o in ("--", "/*", "'", '"', "`") if text.startswith(o, position)), "")
        if not opened:
            position += 1
            continue
        close = {"--": "\n", "/*": "*/"}.get(opened, opened)
        end = _closing(text, position + len(opened), close)
        if end < 0 and opened != "--":
            return position
        position = end if end >= 0 else len(text)
    return 0


def _closing(text: str, position: int, close: str) -> int:
    """The offset behind the closing mark, -1 if there is none; backslashes escape in quotes."""
    while position < len(text):
        if text.startswith(close, position):
            return position + len(close)
        position += 2 if text[position] == "\\" and close in {"'", '"'} else 1
    return -1
