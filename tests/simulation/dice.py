"""Chance, and the unit of time in which a case is drawn."""

from random import Random

from tests.simulation.values import PLAIN, some_type

UNIT = 250_000
"""A coarse unit, in microseconds."""

UNITS = (1, 1, UNIT)
"""Times are mostly multiples of one, so that tuples often meet at the very edge of a window; where
it is one microsecond, whoever is off by one loses something."""


class Dice(Random):
    """Everything that is random in a case.

    If the dice are `plain`, all columns are numbers, and all names such as people would choose.
    """

    def __init__(self, seed: int, unit: int | None = None) -> None:
        super().__init__(seed)
        self.plain = unit is not None
        self.unit = unit or self.choice(UNITS)
        self.hostile = not self.plain and self.random() < 0.7
        """Whether names could be taken for something else."""
        self.key = PLAIN if self.plain or self.random() < 0.5 else some_type(self)
        """The type of what streams are joined by."""
        self.nulls = self.choice([0.05, 0.05, 0.4])
        """How often a column has no value."""

    def span(self, units: int) -> int:
        """So many units; now and then a microsecond more."""
        return self.unit * units + (self.random() < 0.1)
