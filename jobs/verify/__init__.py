"""`verify`: an independent judge of a job's results, with no code of the engine's in its way."""

from jobs.verify.judging import Judgement, Since, judge
from jobs.verify.verdict import CANNOT_TELL, CODES, RIGHT, WRONG, CannotTellError, Verdict

__all__ = [
    "CANNOT_TELL", "CODES", "RIGHT", "WRONG", "CannotTellError", "Judgement", "Since", "Verdict",
    "judge",
]  # fmt: skip
