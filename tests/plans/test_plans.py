"""The golden plans as they are, and as they would be written now."""

import json
from difflib import unified_diff

import pytest

from optimizer.plan import from_json
from tests.plans.cases import CASES
from tests.plans.golden import KEPT, files, priced

MADE = files()


@pytest.mark.parametrize("name", MADE)
def test_plans_are_as_they_were(name):
    path = KEPT / name
    kept = path.read_text(encoding="utf-8") if path.exists() else ""
    changes = unified_diff(
        kept.splitlines(), MADE[name].splitlines(), "as kept", "as it is now", lineterm=""
    )
    difference = "\n".join(changes)
    assert not difference, f"{name} differs; if it should, run `make plans`:\n{difference}"


def test_nothing_else_is_kept():
    assert sorted(path.name for path in KEPT.iterdir()) == sorted(MADE)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_kept_json_is_the_plan(case):
    data = json.loads((KEPT / f"{case.name}.json").read_text(encoding="utf-8"))
    assert from_json(case.query, data) == priced(case).plan
