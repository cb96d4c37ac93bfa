"""The statements of a few programs, kept as text: a change of the lowering is to be reviewed."""

from pathlib import Path

from jobs.engine.lower import lower
from optimizer.plan import build, parse
from optimizer.sql.meaning import meant
from tests.jobs.engine.cases import CASES

KEPT = Path(__file__).parent / "golden"
PLANS = {
    "select": ("one stream", "a"),
    "interval": ("two, an interval ahead", "(a b)"),
    "self": ("a stream with itself", "(x y)"),
    "binary": ("four, no common key", "((a b) (c d))"),
    "ternary": ("three, different keys, own ranges", "(a b c)"),
    "tumbling": ("a join, tumbling", "([a] b)"),
    "sliding": ("one stream, sliding, looking at its window", "a"),
}
"""A file's name, its case and its plan."""

DIALECTS = ("spark", "duckdb")


def files() -> dict[str, str]:
    """Every file that is kept, by name, as it would be written now."""
    return {
        f"{name}.{dialect}.sql": _program(*plan, dialect)
        for name, plan in PLANS.items()
        for dialect in DIALECTS
    }


def _program(case: str, tree: str, dialect: str) -> str:
    query = next(one for one in CASES if one.name == case).query
    program = lower({"q": build(query, parse(tree))})
    parts = [f"-- {case}: {tree}"]
    for one in program.operators:
        kept = f"-- {one.relation}, kept for {one.retention} us\n-- {one.content}"
        parts.append(f"{kept}\n{meant(one.statement, dialect).sql(dialect, pretty=True)};")
    parts += [
        f"-- out_{output.query}\n{meant(output.statement, dialect).sql(dialect, pretty=True)};"
        for output in program.outputs
    ]
    return "\n\n".join(parts) + "\n"


def regenerate() -> None:
    """Write what differs, and remove what belongs to no plan any more."""
    KEPT.mkdir(exist_ok=True)
    made = files()
    for path in KEPT.glob("*.sql"):
        if path.name not in made:
            path.unlink()
    for name, text in made.items():
        (KEPT / name).write_text(text, encoding="utf-8")
