"""Small storages that versions have left behind, kept so that later ones are tried on them.

Each is an archive `layout-N.tar.xz` of a job file, its storage with control tables, states,
results, statistics and decisions, and what streams have brought, also in batches to come.
"""

import tarfile
from pathlib import Path

KEPT = Path(__file__).parent

DONE = 4
"""Batches that a job has done; as many more may follow as there is input of."""

FOLLOW = 2


def unpack(layout: int, directory: Path) -> Path:
    """The job file of a storage, taken out of its archive."""
    with tarfile.open(KEPT / f"layout-{layout}.tar.xz") as archive:
        archive.extractall(directory, filter="data")
    return directory / "job.yaml"
