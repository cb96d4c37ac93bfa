"""What people see in a terminal."""

import pytest
from rich.text import Text

from jobs import show
from jobs.errors import InputError

HOSTILE = "\x1b]0;title\x07\x1b[2J\rgone\x9b31m\x7f\u202eevil\u2066\x00\ud800"
PLAIN = "größer als 5 €, 数, 👩‍🚀\tof a table"


@pytest.fixture(params=[None, True], ids=["file", "terminal"])
def terminal(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    for one in (show.out, show.err):
        monkeypatch.setattr(one, "_force_terminal", request.param)


@pytest.mark.usefixtures("terminal")
def test_what_others_have_written_is_shown_and_not_obeyed(capsys: pytest.CaptureFixture[str]):
    show.plain(HOSTILE)
    show.note(HOSTILE)
    show.heading(HOSTILE)
    show.tree(HOSTILE)
    show.table((HOSTILE,), [(HOSTILE,), (Text(HOSTILE, "red"),)])
    show.out.print(HOSTILE, markup=False)
    show.error(InputError(HOSTILE, HOSTILE, detail=HOSTILE), json=False)
    said = "".join(capsys.readouterr())
    assert said.count("evil") >= 8  # a table folds its cells
    ours = ("\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[1;31m")
    for style in ours:
        said = said.replace(style, "")
    assert not {char for char in HOSTILE if char not in "]0;title[2Jgone31mevil"} & set(said)


def test_what_is_text_stays_as_it_is(capsys: pytest.CaptureFixture[str]):
    show.plain(PLAIN)
    assert capsys.readouterr().out == PLAIN.expandtabs() + "\n"
