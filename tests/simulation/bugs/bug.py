"""A bug to plant, and by which seed it is found."""

from collections.abc import Callable
from dataclasses import dataclass
from json import loads
from pathlib import Path

import pytest

from tests.simulation.case import draw
from tests.simulation.run import goes_wrong

Plant = Callable[[pytest.MonkeyPatch], None]
"""Puts a bug into the code, for as long as the patch lives."""

FOUND = Path(__file__).with_name("found.json")
"""By name, the first seed that finds each bug, as `midstream bench mutation --keep` has seen it."""


@dataclass(frozen=True)
class Bug:
    """Something that somebody might have got wrong."""

    plant: Plant
    where: str
    """The module in which it is."""
    migrations: bool = False
    """Whether plans have to change for it to show."""
    why: str = ""
    """Why nothing finds it."""

    @property
    def name(self) -> str:
        """What it is called."""
        return self.plant.__name__

    @property
    def seed(self) -> int | None:
        """The first that finds it; none if nothing is known to."""
        seeds: dict[str, int] = loads(FOUND.read_text(encoding="utf-8"))
        return seeds.get(self.name)

    @property
    def what(self) -> str:
        """What it does."""
        return (self.plant.__doc__ or "").rstrip(".")

    def is_found_by(self, seed: int) -> bool:
        """Whether the case of that seed goes wrong with the bug planted."""
        return goes_wrong(draw(seed, migrations=self.migrations))
