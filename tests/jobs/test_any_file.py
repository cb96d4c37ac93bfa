"""Job and workload files with anything in any place: each is read, or refused in a line.

Every value stands once in the place of some field, name or mapping of a right file; hypothesis puts
several into one.
"""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from jobs import cli, show, specs, status, workloads
from jobs.documents import MOST, check, read
from jobs.errors import InputError, MidstreamError
from tests.jobs.test_specs import SMALL

JOB = f"""\
{SMALL}    plan: (a b)
budget: {{cpu: 1, memory: 2GiB}}
reoptimize: {{drift: 0.2, windows: 3}}
"""
WORKLOAD = """\
window: 15
streams: {A: {rate: 20, width: 100}, B: {rate: 20}, C: {rate: 50, select: 0.5, window: 1 minute}}
joins: [{between: [A, B], selectivity: 0.02}, {between: [B, C], selectivity: 0.5}]
bounds: [{between: [A, B], seconds: [-60, 300]}]
selects: {A: 0.4}
group_by: {groups: 3, by: A, size: 60, slide: 30, combine: {A: 2}}
join_method: hash
unit_costs: {join: 2.2e-6}
batch: 10
budget: {cpu: 1.0, memory: 600 tuples}
"""
DEEP = 2_000
VALUES = [
    value
    for line in r"""
~|!!int x|!!int 0x1F|!!float x|!!float .nan|.inf|-.inf|.nan|1e999|1e308|1e-320|0|-1|1|00012|+5
1e10|1e-6|!!binary abc|!!binary "@@@"|!!timestamp 2001-01-01|!!timestamp x|2001-01-01|!!set {a, b}
!!omap [a: 1]|!!python/name:os.system|!!python/object/apply:os.system [ls]|!foo bar|!!str [a]
!!str 5|!!bool maybe|!!null x|!!map [1]|!!map 5|!!seq {a: 1}|!!seq 5|&x [*x]|&x {a: *x}|*nope
{<<: 5}|{<<: {a: 1}}|{1: 2}|{null: 2}|{[a]: 2}|{{a: b}: 2}|{true: 1}|{a: 1, a: 2}|{1: 1, "1": 2}
[]|{}|[a, [b]]|[1, 2]|"\0"|"\x01"|"\ud800"|"\U0010ffff"|''|"\n"|../../..|/|/dev/null|s3://b/k
://|"*"|? [a]|`|@x|%|yes|true|1 week|99999999999999999999 days|999999999 days|106751992 days
0.5 seconds|-5 seconds|1 nanosecond|((a b)@mars c)|(a b)@db|@|(a a)|(a)|()|SELECT 1|9 MB|9 tuples
""".strip().splitlines()
    for value in line.split("|")
]
LONG = [
    "", "9" * 5000, "-" + "9" * 5000, "0." + "9" * 5000, "9" * 400 + "MB", "x" * 20_000, "\x01",
    "\x00", "\x1b[31m", "\ufeff", "\x85", "\u2028", "(" * DEEP + "a" + ")" * DEEP, "[" * DEEP,
    "{a: " * DEEP,
    f"SELECT {'(' * DEEP}1{')' * DEEP}", f"SELECT a.k FROM a WHERE {'NOT ' * DEEP}true",
    f"SELECT a.k + {'9' * 5000} FROM a", "--- b\n--- c", "%TAG ! x",
]  # fmt: skip


def spots(text: str) -> list[tuple[int, int]]:
    """Where keys and values stand."""

    def below(node: yaml.Node) -> Iterator[yaml.Node]:
        yield node
        parts = node.value if isinstance(node, yaml.CollectionNode) else []
        for part in parts:
            for one in part if isinstance(part, tuple) else (part,):
                yield from below(one)

    root = yaml.compose(text)
    assert root is not None
    found = below(root)
    return sorted({(node.start_mark.index, node.end_mark.index) for node in found})


def job(path: Path) -> None:
    found = specs.load(path)
    found.check()
    found.check_runnable()


def known(path: Path) -> None:
    check(status.KnownJob, read(path))


READERS: dict[str, tuple[str, tuple[Callable[[Path], Any], ...]]] = {
    "job": (JOB, (job, known)),
    "workload": (WORKLOAD, (workloads.load,)),
}


def read_or_refused(path: Path, text: str, readers: tuple[Callable[[Path], Any], ...]) -> None:
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    refused = [error for reader in readers if (error := refusal(reader, path))]
    assert {error.code for error in refused} <= {2, 3}
    assert not [p for error in refused for p in error.problems if "\n" in p.error]


def refusal(reader: Callable[[Path], Any], path: Path) -> MidstreamError | None:
    try:
        reader(path)
    except MidstreamError as error:
        return error
    return None


@pytest.mark.parametrize("kind", READERS)
def test_any_value_in_some_place(tmp_path: Path, kind: str):
    text, readers = READERS[kind]
    places = spots(text)
    for number, value in enumerate([*VALUES, *LONG]):
        for start, end in places[number % 19 :: 19]:
            read_or_refused(tmp_path / "any.yaml", text[:start] + value + text[end:], readers)


@given(st.sampled_from(sorted(READERS)), st.data())
def test_several_values_in_any_places(
    tmp_path_factory: pytest.TempPathFactory, kind: str, data: Any
):
    text, readers = READERS[kind]
    for _ in range(3):
        start, end = data.draw(st.sampled_from(SPOTS[kind]))
        value = data.draw(st.sampled_from(VALUES) | st.text(max_size=9))
        text = text[:start] + value + text[end:]
    read_or_refused(tmp_path_factory.getbasetemp() / "any.yaml", text, readers)


SPOTS = {kind: spots(text) for kind, (text, _) in READERS.items()}

# --- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        (
            "control.yaml",
            b"job: x\nengine: \x01",
            "control.yaml:2: cannot be read as YAML: character",
        ),
        ("utf16.yaml", "job: x".encode("utf-16"), "is not text in UTF-8"),
        ("large.yaml", b"# " + b"x" * MOST, "is larger than 1,048,576 bytes"),
        ("digits.json", b'{"job": ' + b"9" * 5000 + b"}", "Exceeds the limit"),
        ("twice.json", b'{"job": "a", "job": "b"}', "'job' is there twice"),
        ("nan.json", b'{"job": NaN}', "NaN is no number of JSON"),
        ("half.json", b'{"job": "\\ud800"}', "half a character"),
        ("deep.json", b"[" * 100_000, "nested too deeply"),
    ],
)
def test_a_file_that_is_no_document(tmp_path: Path, name: str, content: bytes, says: str):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError) as wrong:
        read(path)
    assert says in str(wrong.value)
    assert len(str(wrong.value)) < 400


def test_a_mark_of_byte_order_is_no_text(tmp_path: Path):
    for name, text in (("a.yaml", "job: x"), ("a.json", '{"job": "x"}')):
        (tmp_path / name).write_text(text, encoding="utf-8-sig")
        assert read(tmp_path / name).data == {"job": "x"}


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "/", "x" * 5000, "a\0b"])
def test_a_path_that_is_no_file_of_ours(path: str):
    with pytest.raises(InputError):
        check(specs.Job, read(Path(path)))


# --- the command line ----------------------------------------------------------------------------


@pytest.fixture
def written(tmp_path: Path) -> Path:
    (tmp_path / "job.yaml").write_text(JOB)
    (tmp_path / "load.yaml").write_text(WORKLOAD)
    return tmp_path


PLANS = [
    *(v for v in [*VALUES, *LONG] if "\0" not in v and not v.startswith("-")),
    "[a] b",
    "(ä b)",
]
ARGUMENTS = ["-1", "9" * 30, "9" * 5000, "nan", "x", "ä", "٣", "1.5", " 1 ", "\udcff"]


def says(capsys: pytest.CaptureFixture[str], *words: str) -> None:
    code = cli.run(words)
    told = "".join(capsys.readouterr())
    assert code in (0, 2, 3), told
    assert "defect" not in told


def test_any_plan(written: Path, capsys: pytest.CaptureFixture[str]):
    for plan in PLANS:
        says(capsys, "explain", str(written / "job.yaml"), "--plan", plan)


@pytest.mark.parametrize(
    "words",
    [
        ("run", "JOB", "--batches", "ANY"),
        ("migrate", "JOB", "(a b)", "--at-batch", "ANY"),
        ("migrate", "JOB", "(a b)", "--query", "ANY"),
        ("migration", "status", "JOB", "ANY"),
        ("verify", "JOB", "--query", "ANY"),
        ("explain", "JOB", "--query", "ANY"),
        ("explain", "ANY"),
        ("status", "ANY"),
        ("optimize", "--workload", "LOAD", "--strategy", "ANY"),
    ],
)
def test_any_argument(written: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]):
    files = {"JOB": str(written / "job.yaml"), "LOAD": str(written / "load.yaml")}
    for argument in ARGUMENTS:
        if not (words[0] == "run" and argument.strip().isdigit()):
            says(capsys, *((files | {"ANY": argument}).get(word, word) for word in words))


@pytest.mark.parametrize("place", ["/dev/null/x", "/" + "x" * 300, "s3://b/k", "job.yaml/x"])
@pytest.mark.parametrize(
    "words", [("status",), ("verify",), ("maintain",), ("migration", "status"), ("run",)]
)
def test_a_storage_that_cannot_be(
    written: Path, capsys: pytest.CaptureFixture[str], place: str, words: tuple[str, ...]
):
    path = written / "elsewhere.yaml"
    path.write_text(JOB.replace("job: small\n", f"job: small\nstorage: {json.dumps(place)}\n"))
    code = cli.run([*words, str(path)])
    told = "".join(capsys.readouterr())
    assert code in range(5)
    assert "defect" not in told
    if place.startswith("s3"):
        assert (code, "object storage is not supported yet" in told) == (3, True)
    assert not os.path.lexists(written / ".midstream")


def test_figures_beyond_any_number_are_refused(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(InputError, match="beyond any number: lower rates"):
        show.as_json({"cpu": float("inf")})
    assert capsys.readouterr().out == ""
