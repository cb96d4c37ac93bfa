"""What the documentation shows is what the program prints.

`python -m tests.jobs.test_docs` runs every command shown in a `console` block, and writes down what
it prints now.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from pkgutil import resolve_name

import pytest

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"`((?:jobs|optimizer|stats|dags)\.[\w.]+)`")
"""Code, by its dotted name."""
FILES = re.compile(r"`((?:[a-z_]+/)+[a-z_]*(?:\.py)?)`")
"""Files and directories, as the page on architecture has them."""
PAGES = ["README.md", "docs/cli.md", "docs/state-identity.md"]
BLOCK = re.compile(r"(```console\n\$ midstream (.*)\n)((?:.*\n)*?)(```\n)")
EFFORT = re.compile(r" +[\d,]+ +(> )?\d+\.\d m?s\b")


def printed(command: str) -> str:
    """What the command prints, 90 columns wide, without blanks at the ends of lines.

    That is wide enough for the times of a busy machine, which would fold a name otherwise.
    """
    told = subprocess.run(
        ["bash", "-c", f"{shlex.quote(sys.executable)} -m jobs.cli {command} 2>&1"],
        cwd=ROOT, env=os.environ | {"COLUMNS": "90"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "Traceback" not in told.stdout, told.stdout
    return "\n".join(line.rstrip() for line in told.stdout.strip("\n").split("\n")) + "\n"


def steady(text: str) -> str:
    """Without what a search examined and how long it took, and how wide that makes a table."""
    return re.sub(" {2,}", "  ", EFFORT.sub(" ...", text))


def test_the_glossary_names_code_that_is_there():
    names = NAMED.findall((ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"))
    assert len(names) > 30
    for name in names:
        resolve_name(name)


def test_the_page_on_architecture_names_files_that_are_there():
    paths = FILES.findall((ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"))
    assert len(paths) > 30
    places = (ROOT, ROOT / "jobs")
    states = {"state/", "out/", "control/", "late/", "rejected/", "control/decisions",
              "control/progress", "control/requests"}  # fmt: skip
    missing = [p for p in paths if p not in states and not any((at / p).exists() for at in places)]
    beside = [p for p in missing if not list((ROOT / "jobs").glob(f"**/{p}"))]
    assert beside == []


def shown() -> list[tuple[str, str, str]]:
    return [
        (page, block[2], block[3])
        for page in PAGES
        for block in BLOCK.finditer((ROOT / page).read_text())
    ]


def test_pages_show_something():
    assert len(shown()) >= 5


@pytest.mark.parametrize(("page", "command", "output"), shown())
def test_output(page: str, command: str, output: str):
    assert steady(printed(command)) == steady(output)


@pytest.mark.parametrize("page", [*sorted(ROOT.glob("docs/**/*.md")), ROOT / "README.md"])
def test_links_lead_somewhere(page: Path):
    targets = re.findall(r"\]\(([^)#:]+)\)", page.read_text())
    missing = [t for t in targets if not (page.parent / t).exists()]
    assert missing == []


def rewrite() -> None:
    for page in PAGES:
        path = ROOT / page
        text = BLOCK.sub(lambda b: b[1] + printed(b[2]) + b[4], path.read_text())
        path.write_text(text)


if __name__ == "__main__":
    rewrite()
