"""What verifying says: right, wrong, or that it cannot tell and why."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jobs.errors import MidstreamError

RIGHT, WRONG, CANNOT_TELL = "right", "wrong", "cannot tell"

CODES: Mapping[str, int] = {RIGHT: 0, WRONG: 1, CANNOT_TELL: 4}
"""The exit code of each word."""

FIGURES = ("expected", "actual", "missing", "duplicate", "wrong")


class CannotTellError(MidstreamError):
    """Whether results are right cannot be decided; the message says what stands in the way."""

    code = CODES[CANNOT_TELL]


@dataclass(frozen=True)
class Verdict:
    """How a query's results compare with what they should be, in rows; none where it is unknown."""

    query: str
    verdict: str
    expected: int | None = None
    actual: int | None = None
    missing: int | None = None
    duplicate: int | None = None
    wrong: int | None = None
    reason: str = ""
    """What is not right, or why it cannot be told."""
    judged: str = ""
    """Which query over which input was computed again."""

    @property
    def right(self) -> bool:
        """Nothing to complain about."""
        return self.verdict == RIGHT

    def __str__(self) -> str:
        """As a line of a report."""
        if self.verdict == CANNOT_TELL:
            return f"{self.query}: {self.verdict}: {self.reason}"
        figures = f"{self.missing} missing, {self.duplicate} duplicate, {self.wrong} wrong"
        return f"{self.query}: {self.actual:,} results, {figures}"

    def to_json(self) -> dict[str, Any]:
        """As programs read it."""
        figures = {name: getattr(self, name) for name in FIGURES}
        words = {"verdict": self.verdict, "reason": self.reason, "judged": self.judged}
        return {"query": self.query, **figures, **words}
