"""What a plan is for: most results by a time, or a number of results soonest (Viglas 4.1)."""

from dataclasses import dataclass
from math import inf


@dataclass(frozen=True)
class Objective:
    """One of the two: `by` so many seconds, or the `first` so many results."""

    by: float | None = None
    first: float | None = None

    def __post_init__(self) -> None:
        if (self.by is None) == (self.first is None):
            raise ValueError("an objective is by a time, or for the first results")
        if not 0 < (self.by or self.first or 0.0) < inf:
            raise ValueError(f"an objective is a number above zero: {self.by or self.first}")

    @property
    def measure(self) -> str:
        """What plans are compared by."""
        return "results_by" if self.by is not None else "seconds_to"

    def score(self, value: float | None) -> float:
        """More is better; never is worst."""
        if self.by is not None:
            return value or 0.0
        return -inf if value is None else -value

    @property
    def spelt(self) -> str:
        """As a job file has it."""
        if self.by is not None:
            return f"rate by {self.by:.15g} seconds"
        return f"first {self.first:.15g} results"

    def to_json(self) -> dict[str, float]:
        """The one that it is."""
        return {"by": self.by} if self.by is not None else {"first": self.first or 0.0}

    def __str__(self) -> str:
        return f"by {self.by:g} s" if self.by is not None else f"first {self.first:,.0f} results"
