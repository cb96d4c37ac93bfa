"""Options of streams: what each takes, and what is said of any other."""

from typing import Any

import pytest

from jobs.options import KNOWN, SPARK, options, problems

WRONG: list[tuple[str, str, Any, str]] = [
    ("csv", "headr", True, "unknown option; did you mean header? allowed: maxFilesPerTrigger"),
    ("csv", "header", "yes", "found 'yes'; allowed: true or false"),
    ("csv", "sep", "", "found ''; allowed: what stands between two fields"),
    ("csv", "quote", "''", "found \"''\"; allowed: one character"),
    ("csv", "encoding", "UTF-9", "found 'UTF-9'; allowed: an encoding such as UTF-8"),
    ("csv", "encoding", "hex", "found 'hex'; allowed: an encoding such as UTF-8"),
    ("csv", "mode", "DROPMALFORMED", "found 'DROPMALFORMED'; allowed: permissive"),
    ("csv", "timestampFormat", "yyyy", "found 'yyyy'; allowed: a pattern such as dd.MM.yyyy"),
    ("csv", "dateFormat", "dd-MMM-yyyy", "found 'dd-MMM-yyyy'; allowed: a pattern such as"),
    ("csv", "dateFormat", "dd/MM/yyyy[/dd]", "found 'dd/MM/yyyy[/dd]'; allowed: a pattern"),
    ("json", "timestampFormat", "yyyy-MM-ddTHH", "found 'yyyy-MM-ddTHH'; allowed: a pattern"),
    ("json", "timestampFormat", "yyyy-MM-dd hh", "found 'yyyy-MM-dd hh'; allowed: a pattern"),
    ("json", "timestampFormat", "yyyy-MM-dd HH:mm:ss[.SSS", "found 'yyyy-MM-dd HH:mm:ss[.SSS'"),
    ("csv", "timeZone", "UTC", "not supported for csv: leave it out: a time without a zone is one"),
    ("parquet", "dateFormat", "yyyy", "not supported for parquet; allowed: maxFilesPerTrigger"),
    ("csv", "lineSep", "", "found ''; allowed: some text"),
    ("json", "multiLine", True, "found 'true'; allowed: false"),
    ("json", "header", True, "not supported for json; allowed: maxFilesPerTrigger"),
    ("parquet", "mergeSchema", True, "not supported for parquet: leave it out: `schema` says"),
    ("parquet", "maxFilesPerTriger", 1, "unknown option; did you mean maxFilesPerTrigger?"),
    ("parquet", "maxFilesPerTrigger", 0, "found '0'; allowed: a whole number above zero"),
    ("parquet", "cleanSource", "yes", "found 'yes'; allowed: off or archive or delete"),
    ("delta", "skipChangeCommits", True, "not supported for delta; allowed: maxFilesPerTrigger"),
    ("generator", "rowsPerSecond", 5, "unknown option; allowed: none"),
]


@pytest.mark.parametrize(("kind", "name", "value", "says"), WRONG)
def test_what_is_wrong(kind: str, name: str, value: Any, says: str):
    found = problems(kind, {name: value})
    assert list(found) == [name]
    assert found[name].startswith(says)


@pytest.mark.parametrize(
    "pattern",
    ["dd.MM.yyyy HH:mm:ss", "M/d/yy h:mm a", "yyyyMMdd", "uuuu-MM-dd'T'HH:mm:ss[.SSSSSS][XXX]",
     "yyyy-MM-dd ''HH'' 'o''clock'", "yyyy-MM-dd HH:mm:ssZ"],
)  # fmt: skip
def test_patterns_of_times(pattern: str):
    assert problems("csv", {"timestampFormat": pattern}) == {}


def test_what_is_right():
    given = {
        "HEADER": True, "Delimiter": ";", "charset": "latin1", "quote": "", "maxfilespertrigger": 1,
        "cleanSource": "DELETE", "nullValue": "",
    }  # fmt: skip
    assert problems("csv", given) == {}
    assert options("csv", given) == {
        "header": "true", "sep": ";", "encoding": "latin1", "quote": "", "maxFilesPerTrigger": "1",
        "cleanSource": "DELETE", "nullValue": "",
    }  # fmt: skip
    assert problems("kafka", {"anything": 1}) == {}


def test_what_is_not_supported_is_not_what_is():
    for kind in ("parquet", "csv", "delta"):
        refused = problems(kind, dict.fromkeys(SPARK, "x"))
        assert not {n for n, said in refused.items() if said.startswith("unknown")}
    assert set(SPARK).isdisjoint(KNOWN["parquet"])
