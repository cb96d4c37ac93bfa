"""Where DuckDB puts what does not fit into memory: not where the process happens to be.

Its files are as readable as the umask says, so they go where nobody else may look.
"""

import os
from functools import cache
from pathlib import Path
from tempfile import gettempdir, mkdtemp


@cache
def spilled() -> str:
    """A directory of this user's in that for temporary files, which `TMPDIR` names."""
    place = Path(gettempdir()) / f"midstream-{os.getuid()}"
    try:
        place.mkdir(mode=0o700, exist_ok=True)
        found = place.lstat()
    except OSError:  # somebody has put a file there
        return mkdtemp(prefix="midstream-")
    own = found.st_uid == os.getuid() and found.st_mode & 0o170777 == 0o040700
    return str(place) if own else mkdtemp(prefix="midstream-")
