"""A bug to plant, and by which seed it is found."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.simulation.case import draw
from tests.simulation.run import goes_wrong

Plant = Callable[[pytest.MonkeyPatch], None]
"""Puts a bug into the code, for as long as the patch lives."""


@dataclass(frozen=True)
class Bug:
    """Something that somebody might have got wrong."""

    plant: Plant
    where: str
    """The module in which it is."""
    seed: int | None
    """One that finds it; none if nothing is known to."""
    migrations: bool = False
    """Whether plans have to change for it to show."""
    why: str = ""
    """Why nothing finds it."""

    @property
    def name(self) -> str:
        """What it is called."""
        return self.plant.__name__

    @property
    def what(self) -> str:
        """What it does."""
        return (self.plant.__doc__ or "").rstrip(".")

    def is_found_by(self, seed: int) -> bool:
        """Whether the case of that seed goes wrong with the bug planted."""
        return goes_wrong(draw(seed, migrations=self.migrations))
