"""What a program tells a person (or, as JSON, another program) when it cannot go on.

Each kind knows its exit code: 1 failed, 2 bad input, 3 refused or nothing qualified, 4 cannot tell.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: what was found and what to do, and where."""

    error: str
    where: str = ""
    detail: str = ""
    """Lines to show a person below it."""

    def __str__(self) -> str:
        return f"{self.where}: {self.error}" if self.where else self.error


class MidstreamError(Exception):
    """An error whose message is all that its reader needs: it is shown without a stack trace."""

    code = 1

    def __init__(
        self, error: str, where: str = "", *, detail: str = "", more: Sequence[Problem] = ()
    ) -> None:
        self.problems = (Problem(error, where, detail), *more)
        super().__init__("\n".join(map(str, self.problems)))

    @property
    def as_json(self) -> dict[str, Any]:
        """The first problem, and the others if there are any."""
        first, *more = ({"error": p.error, "where": p.where} for p in self.problems)
        return first | ({"more": more} if more else {})


class InputError(MidstreamError):
    """What the user gave is wrong: a file, a name, an option."""

    code = 2


class RefusedError(MidstreamError):
    """The input is right, and still it will not be done; the message says why."""

    code = 3
