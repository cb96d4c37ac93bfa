"""The lowering says what it said when somebody last looked: `make plans` writes it again."""

import pytest

from tests.jobs.engine.golden import KEPT, files


@pytest.mark.parametrize(("name", "text"), files().items(), ids=files().keys())
def test_lowering(name, text):
    assert (KEPT / name).read_text(encoding="utf-8") == text


def test_nothing_else_is_kept():
    assert {path.name for path in KEPT.iterdir()} == files().keys()
