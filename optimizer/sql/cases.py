"""Letters whose other case the engines do not agree on: those of several letters, and new ones.

What DuckDB makes of them counts: one letter of each.  The tests try every letter there is.
"""

from collections.abc import Sequence
from dataclasses import dataclass

_PRIVATE = 0x10F800
"""Where letters for private use begin, of which neither engine knows another case."""


@dataclass(frozen=True)
class Letters:
    """Runs of letters: the first, the last, and how far away is what becomes of them."""

    runs: Sequence[tuple[int, int, int]]

    @property
    def given(self) -> str:
        """The letters."""
        return "".join(chr(code) for first, last, _ in self.runs for code in range(first, last + 1))

    @property
    def made(self) -> str:
        """What becomes of each."""
        return "".join(
            chr(code + shift) for first, last, shift in self.runs for code in range(first, last + 1)
        )

    @property
    def kept(self) -> str:
        """As what they are kept while the others are changed."""
        return "".join(chr(_PRIVATE + at) for at in range(len(self.given)))


UPPER = Letters(
    (
        (0xDF, 0xDF, 0x1DBF),  # ß
        (0x149, 0x149, 0),
        (0x19B, 0x19B, 0),
        (0x1F0, 0x1F0, 0),
        (0x264, 0x264, 0),
        (0x390, 0x390, 0),  # Greek with several accents
        (0x3B0, 0x3B0, 0),
        (0x587, 0x587, 0),  # Armenian
        (0x1C8A, 0x1C8A, 0),
        (0x1E96, 0x1E9A, 0),
        (0x1F50, 0x1F50, 0),  # Greek with several accents
        (0x1F52, 0x1F52, 0),
        (0x1F54, 0x1F54, 0),
        (0x1F56, 0x1F56, 0),
        (0x1F80, 0x1F87, 8),
        (0x1F88, 0x1F8F, 0),
        (0x1F90, 0x1F97, 8),
        (0x1F98, 0x1F9F, 0),
        (0x1FA0, 0x1FA7, 8),
        (0x1FA8, 0x1FAF, 0),
        (0x1FB2, 0x1FB2, 0),
        (0x1FB3, 0x1FB3, 9),
        (0x1FB4, 0x1FB4, 0),
        (0x1FB6, 0x1FB7, 0),
        (0x1FBC, 0x1FBC, 0),
        (0x1FC2, 0x1FC2, 0),
        (0x1FC3, 0x1FC3, 9),
        (0x1FC4, 0x1FC4, 0),
        (0x1FC6, 0x1FC7, 0),
        (0x1FCC, 0x1FCC, 0),
        (0x1FD2, 0x1FD3, 0),
        (0x1FD6, 0x1FD7, 0),
        (0x1FE2, 0x1FE4, 0),
        (0x1FE6, 0x1FE7, 0),
        (0x1FF2, 0x1FF2, 0),
        (0x1FF3, 0x1FF3, 9),
        (0x1FF4, 0x1FF4, 0),
        (0x1FF6, 0x1FF7, 0),
        (0x1FFC, 0x1FFC, 0),
        (0xA7CD, 0xA7CD, 0),
        (0xA7CF, 0xA7CF, 0),
        (0xA7D3, 0xA7D3, 0),
        (0xA7D5, 0xA7D5, 0),
        (0xA7DB, 0xA7DB, 0),
        (0xFB00, 0xFB06, 0),  # ligatures
        (0xFB13, 0xFB17, 0),
        (0x10D70, 0x10D85, 0),
        (0x16EBB, 0x16ED3, 0),
    )
)

LOWER = Letters(
    (
        (0x130, 0x130, -0xC7),  # İ
        (0x3A3, 0x3A3, 0x20),  # sigma, the same at the end of a word
        (0x1C89, 0x1C89, 0),
        (0xA7CB, 0xA7CC, 0),
        (0xA7CE, 0xA7CE, 0),
        (0xA7D2, 0xA7D2, 0),
        (0xA7D4, 0xA7D4, 0),
        (0xA7DA, 0xA7DA, 0),
        (0xA7DC, 0xA7DC, 0),
        (0x10D50, 0x10D65, 0),
        (0x16EA0, 0x16EB8, 0),
    )
)
