"""What a canonical expression means to each engine: the one place where its words are chosen.

Canonical text is Spark's SQL, and what DuckDB writes otherwise is put into its words by sqlglot.
Here stands what both write alike and compute differently.
"""

from collections.abc import Callable, Mapping

from sqlglot import exp, parse_one

from optimizer.sql.cases import LOWER, UPPER, Letters
from optimizer.sql.text import DIALECT

DUCKDB = "duckdb"

_Rewrite = Callable[[exp.Expr], exp.Expr]


def meant(tree: exp.Expr, dialect: str) -> exp.Expr:
    """The tree with each function put so that the engine computes what the SQL page says."""
    made = tree.copy()
    rewrites = _REWRITES[dialect]
    for node in reversed(list(made.walk())):
        if (rewrite := rewrites.get(_name(node))) is not None:
            replaced = rewrite(node)
            if node is made:
                made = replaced
            elif replaced is not node:
                node.replace(replaced)
    return made


def written(text: str, dialect: str) -> str:
    """A canonical text for an engine."""
    return meant(parse_one(text, read=DIALECT), dialect).sql(dialect)


def _name(node: exp.Expr) -> str:
    """By what a rewrite is found."""
    return str(node.name).lower() if isinstance(node, exp.Anonymous) else type(node).__name__


def _put(template: str, dialect: str, **parts: exp.Expr) -> exp.Expr:
    """The template with expressions in its places."""
    made = parse_one(template, read=dialect)
    for place in list(made.find_all(exp.Column)):
        place.replace(parts[place.name].copy())
    return made


def _operand(tree: exp.Expr) -> exp.Expr:
    """In parentheses if it needs them."""
    return exp.Paren(this=tree.copy()) if isinstance(tree, exp.Binary | exp.Unary) else tree.copy()


# --- DuckDB --------------------------------------------------------------------------------------


def _tried(operator: type[exp.Binary]) -> _Rewrite:
    """DuckDB has one word that makes NULL of any failure."""

    def rewrite(node: exp.Expr) -> exp.Expr:
        left, right = _operand(node.this), _operand(node.expression)
        return exp.Try(this=operator(this=left, expression=right))

    return rewrite


def _moved_in_duckdb(node: exp.Expr) -> exp.Expr:
    """A time and an interval; sums of other things are as they are written."""
    return exp.Try(this=node.copy()) if _moves(node) else node


def _remainder(node: exp.Expr) -> exp.Expr:
    """DuckDB fails at a zero, and at the least number divided by -1."""
    value, divisor = map(_operand, node.expressions)
    text = "x % CASE WHEN y = 0 THEN NULL WHEN y = -1 THEN 1 ELSE y END"
    return exp.Paren(this=_put(text, DUCKDB, x=value, y=divisor))


def _trimmed(node: exp.Expr) -> exp.Expr:
    """Blanks only; DuckDB would take other scripts' spaces, too."""
    return exp.Trim(this=node.this.copy(), expression=exp.Literal.string(" "))


def _cut_in_duckdb(node: exp.Expr) -> exp.Expr:
    text = f"CASE WHEN x >= make_timestamptz({_OLDEST}) THEN y END"
    return _put(text, DUCKDB, x=node.this, y=node)


# --- Spark ---------------------------------------------------------------------------------------

_OLDEST = -9_223_000_000_000_000_000
"""Microseconds of the oldest time that is cut off to a year without leaving what there is."""


def _moved_in_spark(node: exp.Expr) -> exp.Expr:
    if not _moves(node):
        return node
    attempt = exp.SafeAdd if isinstance(node, exp.Add) else exp.SafeSubtract
    return attempt(this=node.this.copy(), expression=node.expression.copy())


def _moves(node: exp.Expr) -> bool:
    return exp.Interval in {type(node.this), type(node.expression)}


def _whole(node: exp.Expr) -> exp.Expr:
    """Spark takes the nearest BIGINT for infinity, and 0 for NaN."""
    text = f"CASE WHEN x >= -{2**63} AND x < {2**63} THEN y END"
    return _put(text, DIALECT, x=node.this, y=node)


def _cut_in_spark(node: exp.Expr) -> exp.Expr:
    text = f"CASE WHEN x >= timestamp_micros({_OLDEST}) THEN y END"
    return _put(text, DIALECT, x=node.this, y=node)


def _cased(letters: Letters) -> _Rewrite:
    """Letter by letter, as DuckDB does it; Spark makes SS of ß, and looks around a sigma."""

    def rewrite(node: exp.Expr) -> exp.Expr:
        special = type(node)(this=_translated(node.this, letters.given, letters.kept))
        return _put(
            "CASE WHEN x RLIKE p THEN z ELSE y END",
            DIALECT,
            x=_operand(node.this),
            p=exp.Literal.string(f"[{letters.given}]"),
            z=_translated(special, letters.kept, letters.made),
            y=node,
        )

    return rewrite


def _translated(tree: exp.Expr, given: str, made: str) -> exp.Expr:
    arguments = [tree.copy(), exp.Literal.string(given), exp.Literal.string(made)]
    return exp.Anonymous(this="translate", expressions=arguments)


_REWRITES: Mapping[str, Mapping[str, _Rewrite]] = {
    DUCKDB: {
        "SafeAdd": _tried(exp.Add),
        "SafeSubtract": _tried(exp.Sub),
        "SafeMultiply": _tried(exp.Mul),
        "try_mod": _remainder,
        "Add": _moved_in_duckdb,
        "Sub": _moved_in_duckdb,
        "Trim": _trimmed,
        "TimestampTrunc": _cut_in_duckdb,
    },
    DIALECT: {
        "Add": _moved_in_spark,
        "Sub": _moved_in_spark,
        "Floor": _whole,
        "Ceil": _whole,
        "TimestampTrunc": _cut_in_spark,
        "Upper": _cased(UPPER),
        "Lower": _cased(LOWER),
    },
}
