"""Where a command draws what strategies have found: a file, or one for each in a directory."""

from pathlib import Path

from jobs import show
from jobs.errors import InputError


def check_pictures(path: Path | None, count: int) -> None:
    """Refuse one file for several pictures."""
    if path is not None and path.suffix and count > 1:
        message = f"all strategies make several pictures: {path} must be a directory"
        raise InputError(message, "--svg")


def picture(path: Path, strategy: str) -> Path:
    """The file of one strategy's."""
    return path if path.suffix else path / f"{strategy}.svg"


def say_where(path: Path | None) -> None:
    """Tell a person where the pictures are, if there are any."""
    if path is not None:
        show.note(f"The picture is in {path}" if path.suffix else f"The pictures are in {path}")
