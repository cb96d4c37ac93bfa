"""Write the golden plans again: `make plans`, then look at what `git diff` says."""

from tests.jobs.engine.golden import regenerate
from tests.plans.golden import KEPT, files


def main() -> None:
    """Write what differs, and remove what belongs to no case any more."""
    regenerate()
    KEPT.mkdir(exist_ok=True)
    made = files()
    for path in KEPT.iterdir():
        if path.name not in made:
            path.unlink()
            print(f"removed {path.name}")
    for name, text in made.items():
        path = KEPT / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {name}")


if __name__ == "__main__":
    main()
