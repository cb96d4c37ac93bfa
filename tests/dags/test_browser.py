"""On call, with a browser: the form, the run that it starts, and what MLflow shows of it.

`MIDSTREAM_SCREENS=docs/screens` keeps what was seen; `make screens` does.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.dags import job
from tests.dags.services import Up, midstream, until

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page, ViewportSize

pytestmark = pytest.mark.browser

CHROMIUM = Path("/usr/bin/chromium")
"""Debian's."""

SIZE: "ViewportSize" = {"width": 1360, "height": 900}
LONGEST = 120_000
"""Milliseconds to wait for anything to appear, on a busy machine too."""

SETTLES = 1_000
"""Milliseconds until what folds and unfolds stands still for a picture."""

REASON = "results come late since midnight"

CALM = {"drift": 1000, "windows": 60, "cooldown": "1 second", "horizon": "1 hour"}
"""Nobody migrates unless a person asks."""


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    directory = tmp_path_factory.mktemp("browser")
    often = {"window": f"{job.SECONDS} seconds", "every": "30 seconds"}
    started = Up.start(directory, job.write(directory, reoptimize=CALM, statistics=often))
    yield started
    started.stop()


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    from playwright.sync_api import sync_playwright

    assert CHROMIUM.exists(), "these tests need Debian's chromium: apt-get install chromium"
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])


@pytest.fixture
def screens(tmp_path: Path) -> Path:
    return Path(os.environ.get("MIDSTREAM_SCREENS", tmp_path))


def sign_in(browser: "Browser", up: Up, who: str) -> "Page":
    """Airflow's first page, as that person."""
    people, _ = up.home.people()
    page = browser.new_page(viewport=SIZE, timezone_id="UTC")
    page.set_default_timeout(LONGEST)
    page.goto(up.found["airflow"])
    page.locator("input[name=username]").fill(who)
    page.locator("input[name=password]").fill(people[who])
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("link", name="Dags").first.wait_for()
    return page


def form(page: "Page", up: Up, dag: str) -> "Locator":
    """The form with which a DAG is started."""
    page.goto(f"{up.found['airflow']}/dags/{dag}")
    page.get_by_role("button", name="Trigger").first.click()
    opened = page.get_by_role("dialog")
    opened.get_by_text("Job / query").wait_for()
    return opened


def test_a_person_reoptimizes_by_the_form(up: Up, browser: "Browser", screens: Path):
    file = up.directory / "shop.yaml"
    until(lambda: midstream("reoptimize", str(file), "--history", codes=(0, 3)), 600, "statistics")
    page = sign_in(browser, up, "admin")
    opened = form(page, up, "reoptimize")
    opened.get_by_role("combobox").first.click()
    page.get_by_role("option", name=f"shop / {job.QUERY}").click()
    opened.locator("input[name=element_reason]").fill(REASON)
    for switch in ("dry_run", "force"):
        opened.locator(f"label:has(input[name=element_{switch}])").click()
    opened.locator("input[name=element_reason]").scroll_into_view_if_needed()
    page.screenshot(path=screens / "form.png")
    opened.get_by_test_id("trigger-dag-submit").click()

    run = until(lambda: _by_hand(up, "reoptimize"), 60, "the run that the form starts")
    assert up.end("reoptimize", run) == "success"
    page.goto(f"{up.found['airflow']}/dags/reoptimize/runs/{run}/tasks/decide/mapped/0")
    page.get_by_text(f"{job.QUERY}: migrate, {job.WRONG}").first.wait_for()
    page.screenshot(path=screens / "decision.png")

    (followed,) = up.runs("migrate")
    assert up.end("migrate", followed["dag_run_id"]) == "success"
    page.goto(f"{up.found['airflow']}/dags/migrate/runs/{followed['dag_run_id']}/tasks/verify")
    page.get_by_text("missing").first.wait_for()
    page.screenshot(path=screens / "migration.png")
    (decision,) = [d for d in midstream("reoptimize", str(file), "--history") if d["request"]]
    assert decision["why"] == REASON
    assert decision["by"] == f"admin in Airflow, {run}"
    assert midstream("status", str(file))["plan"] == decision["chosen"] != job.WRONG
    _is_in_mlflow(up, browser, screens)


def _by_hand(up: Up, dag: str) -> str | None:
    return next((r["dag_run_id"] for r in up.runs(dag) if r["run_type"] == "manual"), None)


def _is_in_mlflow(up: Up, browser: "Browser", screens: Path) -> None:
    """The decision beside the others, its reasons, and the picture of what changed."""
    people, _ = up.home.people()
    context = browser.new_context(
        viewport=SIZE,
        timezone_id="UTC",
        http_credentials={"username": "viewer", "password": people["viewer"]},
    )
    page = context.new_page()
    page.set_default_timeout(LONGEST)
    page.goto(f"{up.found['mlflow']}/#/experiments")
    page.get_by_text("Model training").first.click()
    page.get_by_role("link", name="shop").first.click()
    page.get_by_role("button", name="Close").first.click()  # the assistant, which nobody asked for
    page.get_by_role("link", name=f"migrate {job.QUERY}").first.wait_for()
    row = page.get_by_role("row").filter(has_text=f"migrate {job.QUERY}").first
    row.get_by_role("button").first.click()  # unfold it
    page.get_by_text("state-removal").first.wait_for()
    _compare(page, screens)
    page.go_back()
    page.get_by_role("link", name=f"migrate {job.QUERY}").first.click()
    page.get_by_text("migration.phase").first.wait_for()
    page.screenshot(path=screens / "run.png")
    page.get_by_role("tab", name="Artifacts").click()
    page.get_by_text("plans", exact=True).first.click()
    page.get_by_text("diff.svg").first.click()
    page.wait_for_function("[...document.images].some(one => one.naturalWidth > 400)")
    page.wait_for_timeout(SETTLES)
    page.screenshot(path=screens / "picture.png")
    context.close()


def _compare(page: "Page", screens: Path) -> None:
    """The strategies of a decision side by side."""
    for strategy in ("state-removal", "two-layer", "state-selection"):
        row = page.get_by_role("row").filter(has_text=strategy).first
        row.get_by_role("checkbox").first.click()
    page.get_by_role("button", name="Compare").first.click()
    page.get_by_text("Comparing 3 Runs").first.wait_for()
    for unneeded in ("Visualizations", "Run details"):
        page.get_by_text(unneeded, exact=True).first.click()
    page.get_by_text("examined", exact=True).first.wait_for()
    page.wait_for_timeout(SETTLES)
    page.screenshot(path=screens / "compare.png")


def test_a_viewer_cannot_start_anything(up: Up, browser: "Browser", screens: Path):
    before = len(up.runs("migrate"))
    page = sign_in(browser, up, "viewer")
    opened = form(page, up, "migrate")
    opened.locator("input[name=element_reason]").fill("just to see")
    opened.get_by_test_id("trigger-dag-submit").click()
    page.get_by_text("Access Denied").first.wait_for()
    page.screenshot(path=screens / "viewer.png")
    assert len(up.runs("migrate")) == before
