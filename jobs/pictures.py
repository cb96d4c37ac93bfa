"""Pictures of plans, written to files."""

from pathlib import Path
from typing import TYPE_CHECKING

from jobs.errors import MidstreamError

if TYPE_CHECKING:
    from optimizer.cost.dual import Priced
    from optimizer.picture.svg import Drawing
    from optimizer.workload import Budget


def draw(
    priced: "Priced", path: Path,
    *, title: str, budget: "Budget | None" = None, below: "Drawing | None" = None,
) -> None:  # fmt: skip
    """Write the picture of a plan."""
    from optimizer.picture import as_svg

    write(path, as_svg(priced, title, budget, below))


def write(path: Path, picture: str) -> None:
    """Write a picture, and the directories above it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(picture, encoding="utf-8")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise MidstreamError(f"cannot write the picture: {reason}", str(path)) from None
