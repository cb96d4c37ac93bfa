"""The demonstration, whole: what it reports is what a person was promised."""

import json
import subprocess
from pathlib import Path

import pytest

from jobs.services import manage
from jobs.services.home import Home
from tests.dags.services import MIDSTREAM

pytestmark = pytest.mark.demo


def test_the_demo_ends_as_it_should(tmp_path: Path):
    directory = tmp_path / "demo"
    options = ("--directory", str(directory), "--exit", "--json", "--wait", "1500")
    done = subprocess.run(
        [MIDSTREAM, "demo", *options], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert (told["missing"], told["duplicate"], told["wrong"]) == (0, 0, 0)
    assert told["results"] > 10_000
    assert told["from"] == "(((f b) w) c)" != told["to"]
    assert {"f", "b", "c", "w"} >= set(told["kept"]) != set()
    # Which trigger is first depends on where the windows lie.
    assert any(word in why for why in told["reasons"] for word in ("drift", "keeps more and more"))
    assert all(Path(path).read_text().startswith("<svg") for path in told["pictures"])
    assert not manage.status(Home.of(directory))["up"]
