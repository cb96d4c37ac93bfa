"""What is kept of each case: its text, its JSON, and of some the picture."""

import json
from pathlib import Path

from optimizer.cost.dual import Priced, price
from optimizer.estimate import Estimator
from optimizer.explain import as_json, as_text
from optimizer.picture import as_svg, diff
from optimizer.plan import build, parse
from tests.plans.cases import CASES, MIGRATIONS, Case

KEPT = Path(__file__).parent / "kept"
"""Where the files are."""


def priced(case: Case) -> Priced:
    """The case's plan with its estimates."""
    query = case.query
    return price(build(query, parse(case.plan)), Estimator(query, case.workload))


def files() -> dict[str, str]:
    """Every file that is kept, by name, as it would be written now."""
    made: dict[str, str] = {}
    plans = {case.name: priced(case) for case in CASES}
    for case in CASES:
        plan = plans[case.name]
        made[f"{case.name}.txt"] = as_text(plan)
        made[f"{case.name}.json"] = (
            json.dumps(rounded(as_json(plan)), indent=2, ensure_ascii=False) + "\n"
        )
        if case.picture:
            made[f"{case.name}.svg"] = as_svg(plan, case.name, case.budget)
    for old, new in MIGRATIONS:
        made[f"{old}-to-{new}.svg"] = diff(plans[old], plans[new], f"{old} to {new}")
    return made


def rounded(value: object) -> object:
    """Numbers to six digits, which do not depend on the machine."""
    match value:
        case float():
            return float(f"{value:.6g}")
        case dict():
            return {key: rounded(item) for key, item in value.items()}
        case list():
            return [rounded(item) for item in value]
    return value
