"""What a continuous query cannot be: clauses and joins that are refused, each with its reason."""

from sqlglot import TokenType, exp

from optimizer.sql.text import Text

_SUBQUERY = "subqueries are not supported: join the streams themselves, or run two queries"
_LATERAL = "LATERAL is not supported: a result has one row a match"
_UNORDERED = "the result of a stream never ends, so it has no order"
_SUPPORTED = {"expressions", "from_", "joins", "where", "group"}

_CLAUSES: dict[str, tuple[TokenType, str]] = {
    "with_": (TokenType.WITH, "WITH is not supported: name the streams themselves in FROM"),
    "distinct": (
        TokenType.DISTINCT,
        "DISTINCT would have to remember every result forever: "
        "GROUP BY the columns and window(ts, size)",
    ),
    "having": (TokenType.HAVING, "HAVING is not supported: filter the results where they are read"),
    "qualify": (TokenType.QUALIFY, "QUALIFY is not supported: window functions are not"),
    "order": (TokenType.ORDER_BY, f"ORDER BY is not supported: {_UNORDERED}"),
    "sort": (TokenType.SORT_BY, f"SORT BY is not supported: {_UNORDERED}"),
    "cluster": (TokenType.CLUSTER_BY, f"CLUSTER BY is not supported: {_UNORDERED}"),
    "distribute": (TokenType.DISTRIBUTE_BY, f"DISTRIBUTE BY is not supported: {_UNORDERED}"),
    "limit": (TokenType.LIMIT, f"LIMIT is not supported: {_UNORDERED}"),
    "offset": (TokenType.OFFSET, f"OFFSET is not supported: {_UNORDERED}"),
    "windows": (TokenType.WINDOW, "window functions are not supported"),
    "laterals": (TokenType.LATERAL, "LATERAL VIEW is not supported: a result has one row a match"),
    "hint": (TokenType.HINT, "hints are not supported: Midstream chooses the plan"),
}

_TABLE: dict[str, tuple[TokenType, str]] = {
    "sample": (TokenType.TABLE_SAMPLE, "TABLESAMPLE is not supported: its result is random"),
    "pivots": (TokenType.PIVOT, "PIVOT is not supported"),
    "joins": (TokenType.JOIN, "write each ON right behind its JOIN"),
    "laterals": (TokenType.LATERAL, "LATERAL VIEW is not supported: a result has one row a match"),
    "version": (TokenType.FROM, "a stream has no versions to travel to"),
}

_JOIN = (
    *(TokenType.JOIN, TokenType.INNER, TokenType.LEFT, TokenType.RIGHT, TokenType.FULL),
    *(TokenType.OUTER, TokenType.SEMI, TokenType.ANTI, TokenType.NATURAL, TokenType.ASOF),
    TokenType.STRAIGHT_JOIN,
)


def check_select(source: Text, statement: exp.Expr) -> exp.Select:
    """The statement as a SELECT of nothing but supported clauses."""
    while isinstance(statement, exp.Subquery) and not _decorated(statement):
        statement = statement.this
    if isinstance(statement, exp.SetOperation):
        word = type(statement).__name__.upper()
        raise source.error(f"{word} is not supported: run two queries", source.word(word, "MINUS"))
    _check_subqueries(source, statement)
    if not isinstance(statement, exp.Select):
        raise source.error("only a SELECT can be a continuous query", 0)
    for name, value in statement.args.items():
        if value and name not in _SUPPORTED:
            token, reason = _CLAUSES.get(name, (TokenType.SELECT, f"{name} is not supported"))
            raise source.error(reason, source.first(token))
    if statement.args.get("from_") is None:
        raise source.error("a query reads at least one stream: FROM is missing", 0)
    if not statement.expressions:
        raise source.error("a query has at least one output column", 0)
    return statement


def _decorated(statement: exp.Subquery) -> bool:
    """Whether there is anything but the parentheses."""
    return any(value for name, value in statement.args.items() if name != "this")


def _check_subqueries(source: Text, statement: exp.Expr) -> None:
    for node in statement.walk():
        if isinstance(node, exp.Lateral) and not isinstance(node.parent, exp.Select):
            reason, opening = _LATERAL, TokenType.LATERAL
        elif isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):
            reason, opening = "joins within parentheses are not supported", TokenType.L_PAREN
        elif isinstance(node, exp.Query) and node is not statement:
            reason, opening = _SUBQUERY, TokenType.SELECT
        else:
            continue
        raise source.error(reason, source.last_before(source.offset(node), opening))


def check_join(source: Text, join: exp.Join) -> None:
    """Refuse what is not an inner join."""
    words = " ".join(filter(None, (join.method, join.side, join.kind)))
    if words in {"", "INNER", "CROSS"}:
        return
    at = source.run_before(source.offset(join.this), _JOIN)
    if words == "NATURAL":
        raise source.error("NATURAL JOIN is not supported: name the columns with ON or USING", at)
    name = words if words.endswith("JOIN") else f"{words} JOIN"
    raise source.error(f"{name} is not supported: only inner joins are", at)


def check_table(source: Text, table: exp.Expr) -> exp.Table:
    """The name of a stream and nothing else."""
    if isinstance(table, exp.Table) and isinstance(table.this, exp.Func):
        raise source.error("a stream is a name: functions in FROM are not supported", table)
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        raise source.error("a stream is a name: this is not supported in FROM", table)
    for name, value in table.args.items():
        if value and name not in {"this", "alias", "db", "catalog"}:
            token, reason = _TABLE.get(name, (TokenType.FROM, f"{name} is not supported in FROM"))
            raise source.error(reason, source.first(token))
    if table.args.get("alias") and table.args["alias"].args.get("columns"):
        raise source.error("an alias cannot rename columns: use AS in SELECT", table.args["alias"])
    return table
