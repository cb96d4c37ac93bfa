"""The table of faults in docs names tests that are there, so that every row of it is shown."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "faults.md"
HEAD = ["fault", "what happens", "test that shows it"]
NAMED = re.compile(r"`([\w/]+\.py)::(\w+)(?:\[[^`]+\])?`")
CELLS = re.compile(r"(?<!\\)\|")


def table() -> list[list[str]]:
    """The cells of all rows but the headings."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in CELLS.split(line)[1:-1]] for line in lines]
    return [row for row in rows if row != HEAD and set("".join(row)) != {"-"}]


def named_in(file: Path) -> set[str]:
    tree = ast.parse(file.read_text()) if file.exists() else ast.Module([], [])
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return {node.name for node in functions if node.name.startswith("test_")}


def test_every_row_names_a_test_that_is_there():
    wrong = []
    for row in table():
        named = NAMED.findall(row[-1])
        if len(row) != 3 or not named or not all(n in named_in(ROOT / f) for f, n in named):
            wrong.append(row)
    assert wrong == []


def test_no_fault_stands_there_twice():
    faults = [row[0] for row in table()]
    assert len(faults) == len(set(faults))
