"""Random names and values, hostile and legal."""

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from random import Random

from tests.bench.differential.functions import SIZES, digits, kind_of, narrow
from tests.bench.differential.terms import Value

TYPES = (
    "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "BIGINT", "FLOAT", "DOUBLE", "STRING",
    "STRING", "DATE", "TIMESTAMP", "BINARY", "DECIMAL(1, 0)", "DECIMAL(5, 2)", "DECIMAL(9, 9)",
    "DECIMAL(10, 0)", "DECIMAL(18, 7)", "DECIMAL(19, 4)", "DECIMAL(28, 10)", "DECIMAL(38, 0)",
    "DECIMAL(38, 18)", "DECIMAL(38, 38)",
)  # fmt: skip

# --- names ---------------------------------------------------------------------------------------

STREAMS = (
    "s", "s_1", "a", "b", "e", "a__b", "b__c", "in_s", "out_s", "state_s", "raw_s", "late_s",
    "rejected_s", "select", "window", "look", "summary", "t0", "on", "null", "yes", "input_s",
    "x_", "s__s", "actual", "expected", "apart", "a_b_c_d_e_f_g_h_i_j_k_l_m_n_o_p_q_r_s_t",
    "different", "range", "i", "x",
)  # fmt: skip

COLUMNS = (
    "_batch", "_until", "_slot", "_reason", "_row", "_watermark", "_stream", "_file", "_nth",
    "_times", "_window", "_malformed", "b__c", "c", "a", "b", "e", "window_start", "window_end",
    "i", "r", "p0", "w", "n", "select", "from", "where", "group", "order", "null", "true", "and",
    "between", "interval", "date", "timestamp", "decimal", "key", "value", "values", "row", "rows",
    "größe", "naïve", "日時", "Ψ", "ключ", "ts_1", "__", "_", "_1", "X", "\u017f", "end", "start",
    "filename", "file_row_number", "rowid", "k", "v", "count", "sum", "any", "limit", "at",
    "x" * 60, "batch", "until", "reason", "stream", "watermark", "partition", "default", "all",
)  # fmt: skip

ALIASES = (*STREAMS, "S", "_a", "l", "r", "left", "right", "f", "é", "p0", "s__1", "_1", "order")


def some(r: Random, names: Sequence[str], count: int) -> list[str]:
    """So many different names, whatever their case."""
    found: dict[str, str] = {}
    while len(found) < count:
        name = r.choice(names)
        if name.isascii() and r.random() < 0.2 and names is COLUMNS:
            name = name.swapcase()
        found.setdefault(name.lower(), name)
    return list(found.values())


# --- values --------------------------------------------------------------------------------------

Maker = Callable[[Random], Value]

WORDS = (
    "", " ", "a", "A", "aa", "ab", "b", "'", '"', "''", "O'Neill", 'say "hi"', "a,b", ";", "\t",
    "ü", "ß", "日本", "👍🏽", "e\u0301", "%", "_", "a%", "a_b", "NULL", "null", "None", "NaN", "0",
    "1_000", "-1", "1e3", " 7 ", "true", "{}", "[]", "#", "--", "/*", "$x", ":x", "x\\y", "\\",
    "\u00a0", "\u2028", "zz" * 40, "a|b", "`", "@", "٣", "line\nbreak", "a\r\nb", "\n", "::",
)  # fmt: skip

FLOATS = (math.nan, math.inf, -math.inf, -0.0, 5e-324, -2.5e-310, 1.7e308, -1.7e308, 2.0**53, 1e16)


def maker(r: Random, type_: str) -> Maker:
    """How a column's values are made: few different ones or many, some or hardly any null."""
    make = _maker(r, type_)
    if r.random() < 0.5:
        pool = [make(r) for _ in range(r.choice([1, 2, 3, 5]))]

        def make(r: Random) -> Value:
            return pool[min(r.randrange(len(pool)), r.randrange(len(pool)))]

    nulls = r.choice([0, 0.1, 0.1, 0.6])
    return lambda r: None if r.random() < nulls else make(r)


def _maker(r: Random, type_: str) -> Maker:
    extreme = r.choice([0, 0.05, 0.3])
    if type_ in SIZES:
        return _integer(SIZES[type_], extreme, r.choice([1, 3, 10, 100]))
    match kind_of(type_):
        case "DECIMAL":
            return _decimal(*digits(type_), extreme)
        case "DOUBLE":
            return _double(type_, extreme)
        case "BOOLEAN":
            return lambda r: r.random() < 0.5
        case "STRING":
            return lambda r: r.choice(WORDS[:8] if r.random() < 0.5 else WORDS)
        case "BINARY":
            return lambda r: r.choice([b"", b"\0", b"a", b"\xff\xfe", b"'", "ü".encode()])
        case "DATE":
            return _whole(extreme, (-719_162, 2_932_896, -1, 0, 19_782, 11_016), 19_000, 40)
    return _whole(extreme, TIMES, 1_700_000_000_000_000, 10**10)


TIMES = (
    0, -1, 1, -62_135_596_800_000_000, 253_402_300_799_999_999, 1_710_053_999_999_999,
    1_710_054_000_000_000, -2_208_988_800_000_001, 1_698_541_200_000_000, 951_782_400_000_000,
)  # fmt: skip
"""The first and the last of four-digit years, ends of days, changes to and from summer time."""


def _integer(bits: int, extreme: float, few: int) -> Maker:
    limit = 2 ** (bits - 1)
    far = (-limit, limit - 1, -limit + 1, limit // 2, -(limit // 2) - 1)
    return lambda r: r.choice(far) if r.random() < extreme else r.randrange(-few, few + 1)


def _decimal(precision: int, scale: int, extreme: float) -> Maker:
    most = 10**precision - 1

    def make(r: Random) -> Value:
        units = r.choice((-most, most, 1, -1, most // 2)) if r.random() < extreme else 0
        units = units or r.randrange(-min(most, 10 ** (scale + 2)), min(most, 10 ** (scale + 2)))
        sign, number = units < 0, tuple(map(int, str(abs(units))))
        return Decimal((int(sign), number, -scale))

    return make


def _double(type_: str, extreme: float) -> Maker:
    def make(r: Random) -> Value:
        value = r.choice(FLOATS) if r.random() < extreme else r.randrange(-40, 41) / 8
        return narrow(value) if type_ == "FLOAT" else value

    return make


def _whole(extreme: float, far: Sequence[int], about: int, span: int) -> Maker:
    def make(r: Random) -> Value:
        return r.choice(far) if r.random() < extreme else about + r.randrange(-span, span)

    return make
