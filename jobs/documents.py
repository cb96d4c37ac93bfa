"""Files that people write: YAML or JSON in, checked models out, or errors that name line and field.

A wrong file is answered with all that is wrong in it, each problem with the path of its field, what
was found there and what is allowed.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any, ClassVar, NoReturn, TypeVar

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from jobs.errors import InputError, Problem
from jobs.words import close_to, found, one_of

Loc = tuple[str | int, ...]
"""The way to a field: `("streams", "flights", "schema")`."""


# --- reading -------------------------------------------------------------------------------------


_TAG = "tag:yaml.org,2002:"
_KINDS: Mapping[str, type[yaml.Node]] = {
    "null": yaml.ScalarNode, "bool": yaml.ScalarNode, "int": yaml.ScalarNode,
    "float": yaml.ScalarNode, "str": yaml.ScalarNode, "seq": yaml.SequenceNode,
    "map": yaml.MappingNode,
}  # fmt: skip
"""All that a file may hold, and how each is written; other tags make objects, and are refused."""
_NAMES: Mapping[type[yaml.Node], str] = {yaml.SequenceNode: "list", yaml.MappingNode: "mapping"}


class _Loader(yaml.SafeLoader):
    """YAML 1.2's plain words, as most people expect them: `on` is a word, and 2e-7 is a number."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012
    yaml_constructors: ClassVar[dict[str | None, Callable[..., Any]]] = {}

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:  # noqa: FBT001, FBT002
        """Refuse what is not what its tag says: a mapping, a list, a number."""
        kind = _KINDS.get(node.tag.removeprefix(_TAG))
        if kind is not None and not isinstance(node, kind):
            self._refuse(node)
        try:
            return super().construct_object(node, deep)
        except (ValueError, KeyError):
            self._refuse(node)

    def _refuse(self, node: yaml.Node) -> NoReturn:
        what = (
            _short(node.value) if isinstance(node, yaml.ScalarNode) else f"a {_NAMES[type(node)]}"
        )
        problem = f"{what} is not of the kind {node.tag.removeprefix(_TAG)}"
        raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002
        """Refuse a key that comes twice: the first one would be lost without a word."""
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    problem = f"{key.value!r} is there twice"
                    raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
                seen.add(key.value)
        return super().construct_mapping(node, deep)


for _tag, _pattern, _first in (
    ("bool", r"(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    ("null", r"(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("int", r"[-+]?[0-9]+$", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+\.?[0-9]*)(?:[eE][-+]?[0-9]+)?$", "-+.0123456789"),
):
    _Loader.add_implicit_resolver(f"{_TAG}{_tag}", re.compile(_pattern), list(_first))
for _tag in _KINDS:
    _Loader.add_constructor(f"{_TAG}{_tag}", yaml.SafeLoader.yaml_constructors[f"{_TAG}{_tag}"])
_Loader.add_constructor(f"{_TAG}int", lambda _, node: int(node.value))
_Loader.add_constructor(None, yaml.SafeLoader.yaml_constructors[None])


@dataclass(frozen=True)
class Document:
    """A file's content, and where in the file each field stands."""

    path: Path
    data: Any
    root: yaml.Node | None = field(default=None, repr=False)

    def where(self, loc: Iterable[str | int] = ()) -> str:
        """`airline.yaml:12: streams.flights.schema`."""
        loc = tuple(loc)
        line = self._line(loc)
        place = f"{self.path}:{line}" if line else str(self.path)
        return f"{place}: {dotted(loc)}" if loc else place

    def _line(self, loc: Loc) -> int | None:
        """The line of the field, or of what should contain it."""
        if self.root is None or not loc:
            return None
        node, line = self.root, self.root.start_mark.line
        for part in loc:
            if (found := _child(node, part)) is None:
                break
            line, node = found
        return int(line) + 1


def dotted(loc: Loc) -> str:
    """`streams.flights.schema`, `joins[0].between`."""
    plain = (isinstance(part, str) and re.fullmatch(r"[\w-]+", part) for part in loc)
    parts = (f".{part}" if name else f"[{part!r}]" for part, name in zip(loc, plain, strict=True))
    return "".join(parts).removeprefix(".")


def _child(node: yaml.Node, part: str | int) -> tuple[int, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == str(part):
                return key.start_mark.line, value
    elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part].start_mark.line, node.value[part]
    return None


MOST = 2**20
"""Bytes of a file, at most: people write them, and a parser takes seconds for as many."""


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MOST + 1)
        if len(data) > MOST:
            raise InputError(
                f"is larger than {MOST:,} bytes, and cannot be a file of ours", str(path)
            )
        return data.decode("utf-8-sig")
    except OSError as error:
        raise InputError(
            f"cannot be read: {(error.strerror or str(error)).lower()}", str(path)
        ) from None
    except UnicodeDecodeError as error:
        raise InputError(f"is not text in UTF-8: byte {error.start} is wrong", str(path)) from None
    except ValueError as error:
        raise InputError(f"cannot be read: {error}", repr(str(path))) from None


def read(path: Path) -> Document:
    """The document in a file."""
    text = _text(path)
    try:
        return _read_json(path, text) if path.suffix == ".json" else _read_yaml(path, text)
    except RecursionError:
        raise InputError("is nested too deeply", str(path)) from None


def _read_json(path: Path, text: str) -> Document:
    try:
        data = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_number)
        json.dumps(data, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        message = f"cannot be read as JSON: {error.msg} (column {error.colno})"
        raise InputError(message, f"{path}:{error.lineno}") from None
    except UnicodeEncodeError:
        raise InputError("cannot be read as JSON: it has half a character", str(path)) from None
    except ValueError as error:  # a key twice, or a number of thousands of digits
        why = str(error).partition(":")[0]
        raise InputError(f"cannot be read as JSON: {why}", str(path)) from None
    return Document(path, data)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a key that comes twice: the first one would be lost without a word."""
    found = dict(pairs)
    for name in found:
        if sum(name == key for key, _ in pairs) > 1:
            raise ValueError(f"{_short(name)} is there twice")
    return found


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number of JSON")


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}...")


def _read_yaml(path: Path, text: str) -> Document:
    if found := yaml.reader.Reader.NON_PRINTABLE.search(text):
        line = text.count("\n", 0, found.start()) + 1
        problem = f"character U+{ord(found[0]):04X} is not allowed"
        raise InputError(f"cannot be read as YAML: {problem}", f"{path}:{line}")
    loader = _Loader(text)
    try:
        root = loader.get_single_node()
        data = None if root is None else loader.construct_document(root)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        column = f" (column {mark.column + 1})" if mark else ""
        raise InputError(f"cannot be read as YAML: {error.problem}{column}", where) from None
    except yaml.YAMLError as error:
        raise InputError(f"cannot be read as YAML: {error}", str(path)) from None
    finally:
        loader.dispose()
    return Document(path, data, root)


# --- checking ------------------------------------------------------------------------------------

_WRONG = "wrong"
_EXPECTED = "expected"


def expected(what: str) -> PydanticCustomError:
    """The value is not what is allowed, which is `what`."""
    return PydanticCustomError(_EXPECTED, "{what}", {"what": what})


def wrong(problems: Mapping[Loc, str]) -> PydanticCustomError:
    """Problems of fields below the one being checked."""
    return PydanticCustomError(_WRONG, "wrong", {"problems": dict(problems)})


class Model(BaseModel):
    """An immutable mapping of a file; unknown fields are refused, and missing ones explained."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _fields(cls, data: Any) -> Any:
        """Names first: a field misspelt is both unknown and missing, and worth one message."""
        if not isinstance(data, Mapping):
            return data
        inherited = [name not in cls.__annotations__ for name in cls.model_fields]
        fields = sorted(zip(inherited, cls.model_fields.items(), strict=True), key=itemgetter(0))
        allowed = {info.alias or name: info for _, (name, info) in fields}
        problems: dict[Loc, str] = {}
        meant = set()
        for name in data:
            if name not in allowed:
                guess = close_to(str(name), [a for a in allowed if a not in data])
                meant.add(guess)
                hint = f"did you mean {guess}? " if guess else ""
                problems[name,] = f"unknown field; {hint}allowed: {', '.join(allowed)}"
        for name, info in allowed.items():
            if info.is_required() and name not in data and name not in meant:
                problems[name,] = f"missing; needed: {info.description or 'a value'}"
        if problems:
            raise wrong(problems)
        return data


M = TypeVar("M", bound=BaseModel)


def check(model: type[M], document: Document) -> M:
    """The model of that document; its paths are relative to the document's directory."""
    try:
        return model.model_validate(document.data, context={"document": document})
    except ValidationError as error:
        problems = [p for e in error.errors(include_url=False) for p in _problems(e, document)]
    first, *more = problems
    raise InputError(first.error, first.where, more=more)


def _problems(error: ErrorDetails, document: Document) -> Iterable[Problem]:
    loc = _location(error["loc"], document.data)
    if error["type"] == _WRONG:
        for below, message in error["ctx"]["problems"].items():
            yield Problem(message, document.where((*loc, *below)))
    else:
        if error["type"].startswith("union_tag_"):
            loc = (*loc, "source")
        yield Problem(_message(error), document.where(loc))


def _location(loc: Loc, data: Any) -> Loc:
    """Where pydantic says, without the names of union members and markers of keys."""
    kept: list[str | int] = []
    tagged = False
    for part in loc:
        tag = isinstance(data, Mapping) and data.get("source") == part
        if part == "[key]" or (tag and not tagged):
            tagged = True
            continue
        kept.append(part)
        tagged = False
        try:
            data = data[part]
        except (LookupError, TypeError):
            data = None
    return tuple(kept)


_WORDS = {
    "string_type": "text",
    "float_type": "a number",
    "int_type": "a whole number",
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "mapping_type": "a mapping",
    "model_type": "a mapping",
    "list_type": "a list",
    "tuple_type": "a list",
    "finite_number": "a finite number",
    "model_attributes_type": "a mapping",
}


def _message(error: ErrorDetails) -> str:
    kind, value, context = error["type"], error["input"], error.get("ctx", {})
    if kind == _EXPECTED:
        return f"found {found(value)}; allowed: {context['what']}"
    if kind in _WORDS:
        return f"found {found(value)}; allowed: {_WORDS[kind]}"
    if kind == "union_tag_not_found":
        return f"missing; allowed: {one_of(SOURCES)}"
    if kind == "union_tag_invalid":
        return _choice(str(context["tag"]), _quoted(context["expected_tags"]))
    if kind in ("literal_error", "enum"):
        return _choice(value, _quoted(context["expected"]))
    if kind == "greater_than":
        return f"found {found(value)}; allowed: a number above {context['gt']:g}"
    if kind in ("greater_than_equal", "less_than_equal"):
        limit = f"at least {context['ge']:g}" if "ge" in context else f"at most {context['le']:g}"
        return f"found {found(value)}; allowed: a number of {limit}"
    if kind == "too_short":
        return f"found {found(value)}; allowed: at least one"
    return f"found {found(value)}; {error['msg'].lower()}"


SOURCES = ("files", "delta", "generator", "kafka")
"""Where a stream may come from."""


def _choice(value: Any, allowed: list[str]) -> str:
    guess = close_to(value, allowed) if isinstance(value, str) else None
    hint = f"; did you mean {guess}?" if guess else ""
    return f"found {found(value)}; allowed: {one_of(allowed)}{hint}"


def _quoted(text: str) -> list[str]:
    return re.findall(r"'([^']*)'", text)


# --- common fields -------------------------------------------------------------------------------

Number = Annotated[float, Field(strict=True)]
Positive = Annotated[float, Field(strict=True, gt=0)]
Share = Annotated[float, Field(strict=True, ge=0, le=1)]


def _resolved(value: str, info: ValidationInfo) -> str:
    if not value.strip() or "\0" in value:
        raise expected("a path, relative to this file, or an address such as s3://bucket/key")
    if "://" in value:
        return value
    document: Document = (info.context or {})["document"]
    return str((document.path.parent / value).resolve())


Location = Annotated[str, AfterValidator(_resolved)]
"""An absolute path, or an address."""

_BYTES = {"B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
          "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}  # fmt: skip


def parse_bytes(text: Any) -> float | None:
    """The bytes that `30MB` or `2GiB` says; a bare number is one of bytes."""
    if not isinstance(text, str):
        return _finite(text)
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*", text)
    if match is None or match[2] not in _BYTES:
        return None
    return float(match[1]) * _BYTES[match[2]]


def _finite(number: Any) -> float | None:
    if isinstance(number, bool) or not isinstance(number, int | float):
        return None
    try:
        return float(number) if isfinite(number) else None
    except OverflowError:
        return None


def parse_tuples(text: Any) -> float | None:
    """The tuples that `600 tuples` says."""
    match = (
        re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*tuples?\s*", text) if isinstance(text, str) else None
    )
    return float(match[1]) if match else None
