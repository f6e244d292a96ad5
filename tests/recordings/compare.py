"""Compares an answer with a recorded one, whose changing values are placeholders."""

import datetime as dt
import json
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase

# Equal numbered placeholders were equal values; the others stand for any value.
PLACEHOLDER = re.compile(
    r"<[A-Za-z][A-Za-z0-9-]*:\d+>|<(?:owner-id|bucket-url|expiration|request-id|host-id|region|partition|location|i-d|datetime|bucket|expires|server|host|x-amz-[a-z0-9-]+"
    r"|string-to-sign|string-to-sign-bytes|signature-provided|a-w-s-access-key-id|canonical-request|canonical-request-bytes|resource)>"
)
DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)|[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT")
# What recordings put in the place of any value; the name of the field itself, in small letters, stands for any value too.
ANYTHING = ("owner-id",)
# Stands for a header and, by its name, for an element of lifecycle rules.
WHOLE_RULE = "<expiration>"
# Brackets are no patterns: they are in the paths of lists and in the names of scenarios.
LITERAL = str.maketrans("[]", "()")
ABSENT = "(absent)"


@dataclass(frozen=True)
class Difference:
    """Something that AWS answered in another way. Paths have `[]` for every place of a list."""

    step: str
    path: str
    aws: object
    ours: object

    def __str__(self) -> str:
        return f"{self.step}: {self.path}: AWS {self.aws!r}, here {self.ours!r}"


class Names:
    """The values of a scenario's placeholders, from its first step to its last."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    def match(self, recorded: str, found: str) -> bool:
        """Returns whether a text is the recorded one, with consistent values for its placeholders, and keeps these."""
        marks = PLACEHOLDER.findall(recorded)
        if not marks:
            return recorded == found
        pattern = "(.+?)".join(re.escape(part) for part in PLACEHOLDER.split(recorded))
        matched = re.fullmatch(pattern, found, re.DOTALL)
        if matched is None:
            return False
        new = dict(self.values)
        for mark, value in zip(marks, matched.groups(), strict=True):
            # Owners have placeholders with numbers, too; here one account owns everything.
            if not mark[-2].isdigit() or mark.startswith("<owner-id"):
                continue
            if new.setdefault(mark, value) != value:
                return False
            kind = mark.rpartition(":")[0]
            if any(other != mark and other.rpartition(":")[0] == kind and held == value for other, held in new.items()):
                return False
        self.values = new
        return True


def plain(value: object) -> object:
    """Returns a value as recordings have it: dates become `datetime`, bytes become text."""
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, dt.datetime):
        return "datetime"
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value


class Comparison:
    """Finds the differences of one step. `ignored` are paths that are never compared, `additions` those that only we have."""

    def __init__(self, names: Names, step: str, ignored: list[str], additions: list[str]):
        self.names, self.step, self.ignored, self.additions = names, step, ignored, additions
        self.differences: list[Difference] = []

    def is_listed(self, path: str, patterns: list[str]) -> bool:
        """Returns whether one of the patterns covers the path."""
        return any(covers(pattern, path) for pattern in patterns)

    def differ(self, path: str, aws: object, ours: object) -> None:
        """Notes a difference."""
        self.differences.append(Difference(self.step, path, aws, ours))

    def compare(self, recorded: object, found: object, path: str = "") -> None:
        """Compares two values, and what is in them."""
        if self.is_listed(path, self.ignored):
            return
        if isinstance(recorded, dict) and isinstance(found, dict):
            for name in sorted({*recorded, *found}):
                inner = f"{path}.{name}" if path else name
                if name not in found or name not in recorded:
                    if not self.is_listed(inner, self.ignored) and not (name not in recorded and self.is_listed(inner, self.additions)):
                        self.differ(inner, recorded.get(name, ABSENT), found.get(name, ABSENT))
                    continue
                self.compare(recorded[name], found[name], inner)
        elif isinstance(recorded, list) and isinstance(found, list):
            if len(recorded) != len(found):
                self.differ(f"{path}[]", recorded, found)
                return
            for one, other in zip(recorded, found, strict=True):
                self.compare(one, other, f"{path}[]")
        elif not self.equal(path.rpartition(".")[2], recorded, found):
            self.differ(path, recorded, found)

    def equal(self, name: str, recorded: object, found: object) -> bool:
        """Returns whether two plain values of this name are the same."""
        if recorded == WHOLE_RULE or (isinstance(recorded, str) and isinstance(found, str) and recorded in (hyphened(name), *ANYTHING)):
            return True
        if isinstance(recorded, dict | list) and isinstance(found, str):
            return recorded == parsed(found)
        if recorded in ("datetime", "date"):
            return found == "datetime" or (isinstance(found, str) and DATE.fullmatch(found) is not None)
        if isinstance(recorded, str) and isinstance(found, str):
            return self.names.match(recorded, found)
        return recorded == found and isinstance(recorded, bool) == isinstance(found, bool)


def covers(pattern: str, path: str) -> bool:
    """Returns whether a pattern, in which only `*` is special, covers a path."""
    return fnmatchcase(path.translate(LITERAL), pattern.translate(LITERAL))


def hyphened(name: str) -> str:
    """Returns the placeholder that recordings make of a field's name: `next-key-marker`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()


def parsed(text: str) -> object:
    """Returns a body that is JSON as recordings have it."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def paths(value: object, path: str = "") -> set[str]:
    """Returns the paths of everything in a value."""
    found = {path} if path else set()
    if isinstance(value, dict):
        for name, item in value.items():
            found |= paths(item, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        found.add(f"{path}[]")
        for item in value:
            found |= paths(item, f"{path}[]")
    return found


def answer_of(value: dict) -> str:
    """Returns status and error code of an answer, which are compared before anything else."""
    status = value.get("ResponseMetadata", {}).get("HTTPStatusCode", "")
    code = value.get("Error", {}).get("Code", "") if isinstance(value.get("Error"), dict) else ""
    return f"{status} {code}".strip()
