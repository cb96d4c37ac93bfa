"""Patterns of dates and times, as `timestampFormat` and `dateFormat` have them, as rules of values.

A text that fits a pattern is written down again as ISO 8601 has it, and is read as that: so a day
that there is not is none in any pattern.
"""

from collections.abc import Mapping

from jobs.options import MOMENT, WORDS
from jobs.sources.values import RULES, Rule

_ONE, _TWO = "[0-9]{1,2}", "[0-9]{2}"
_SHORT, _LONG = "[+-][0-9]{2}(?:[0-9]{2})?", "[+-][0-9]{4}"
_COLON = "[+-][0-9]{2}:[0-9]{2}"
_LOOKS = {
    "yyyy": "[0-9]{4}", "uuuu": "[0-9]{4}", "yy": _TWO, "M": _ONE, "d": _ONE, "H": _ONE, "m": _ONE,
    "s": _ONE, "h": "0?[1-9]|1[0-2]", "hh": "0[1-9]|1[0-2]", "a": "[AaPp][Mm]",
    "X": f"Z|{_SHORT}", "XX": f"Z|{_LONG}", "XXX": f"Z|{_COLON}",
    "x": _SHORT, "xx": _LONG, "xxx": _COLON, "Z": _LONG, "ZZ": _LONG, "ZZZ": _LONG,
}  # fmt: skip
"""What stands for the letters of a pattern; two of a kind are two digits."""


def rules(options: Mapping[str, str]) -> dict[str, Rule]:
    """What a stream's options say of how its dates and times look."""
    formats = {"TIMESTAMP": "timestampFormat", "DATE": "dateFormat"}
    return {kind: rule(options[name], kind) for kind, name in formats.items() if name in options}


def rule(pattern: str, kind: str) -> Rule:
    """The rule of a type whose texts look like that pattern."""
    looks, letters = "", list[str]()
    for part in MOMENT.finditer(pattern):
        if part["letters"]:
            letters.append(part["letters"])
            looks += f"({_looks(part['letters'])})"
        elif part["optional"]:
            looks += {"[": "(?:", "]": ")?"}[part["optional"]]
        else:
            looks += "".join(f"\\x{{{ord(one):x}}}" for one in _literal(part[0]))
    groups = {
        one[0]: f"regexp_extract(TEXT, '^(?:{looks})$', {at})" for at, one in enumerate(letters, 1)
    }
    told = _day(groups, "yy" in letters) + (_clock(groups) if kind == "TIMESTAMP" else "")
    iso = RULES[kind]
    value = f"CASE WHEN regexp_full_match(TEXT, '{iso.looks}') THEN {iso.value} END"
    return Rule(looks, value.replace("TEXT", f"({told})"))


def _looks(letters: str) -> str:
    if letters[0] == "S":
        return f"[0-9]{{1,{len(letters)}}}"
    return _LOOKS.get(letters, _TWO)


def _literal(text: str) -> str:
    """What stands for itself; a quote in quotes, or two alone, is one."""
    if text == WORDS:
        return "'"
    return text[1:-1].replace(WORDS, "'") if text.startswith("'") else text


def _day(groups: Mapping[str, str], short: bool) -> str:  # noqa: FBT001
    year = groups.get("y") or groups["u"]
    century = "'20' || " if short else ""
    return f"{century}{year} || '-' || {_two(groups['M'])} || '-' || {_two(groups['d'])}"


def _clock(groups: Mapping[str, str]) -> str:
    """The time of day, as far as a pattern has it."""
    zero = "'00'"
    parts = [_two(groups[one]) if one in groups else zero for one in "Hms"]
    if "h" in groups:
        later = f"CASE WHEN upper({groups['a']}) = 'PM' THEN 12 ELSE 0 END"
        parts[0] = _two(f"CAST(CAST({groups['h']} AS INT) % 12 + {later} AS VARCHAR)")
    finer = f" || regexp_replace({groups['S']}, '^(.)', '.\\1')" if "S" in groups else ""
    zone = next((f" || {groups[one]}" for one in "XxZ" if one in groups), "")
    return " || ' ' || " + " || ':' || ".join(parts) + finer + zone


def _two(digits: str) -> str:
    """Two digits, also of what is not there."""
    return f"lpad({digits}, 2, '0')"
