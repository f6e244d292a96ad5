"""One scenario against one server: its requests, and the comparison of each answer with the recorded one."""

import itertools
import os
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import dataclass

from botocore.client import BaseClient
from botocore.exceptions import ClientError

from harness.boto import WHEN_REQUIRED, make_client
from harness.s3 import S3, Headers, strip_namespaces
from harness.wire import Response

from .compare import Comparison, Difference, Names, answer_of, paths, plain
from .data import recordings
from .differences import ADDITIONS, IGNORED, IGNORED_IN_STRICT

STRICT, EXTENDED = "strict", "extended"
_numbers = itertools.count(1)


class Ended(Exception):
    """A change was refused with 501 in strict mode, so what follows cannot be compared."""


class Unprepared(AssertionError):
    """A request that only prepares a step failed."""


@dataclass(frozen=True)
class Scenario:
    """A recorded scenario and the function that makes its requests."""

    name: str
    run: Callable[["Case"], None]
    # The text in brackets of the recorded name.
    parameter: str = ""


SCENARIOS: dict[str, Scenario] = {}


def scenario(name: str, *parameters: str) -> Callable[[Callable[["Case"], None]], Callable[["Case"], None]]:
    """Registers a function as the requests of a recorded scenario, or of one for each of its parameters."""

    def register(run: Callable[["Case"], None]) -> Callable[["Case"], None]:
        for full, parameter in [(f"{name}[{one}]", one) for one in parameters] or [(name, "")]:
            assert full not in SCENARIOS, full
            SCENARIOS[full] = Scenario(full, run, parameter)
        return run

    return register


def xml_dict(element: ElementTree.Element) -> object:
    """Returns an element as recordings have it: texts, and lists for repeated names. An empty element is None."""
    if not len(element):
        return element.text or None
    found: dict[str, object] = {}
    for child in element:
        value = xml_dict(child)
        if child.tag not in found:
            found[child.tag] = value
        elif isinstance(found[child.tag], list):
            found[child.tag].append(value)
        else:
            found[child.tag] = [found[child.tag], value]
    return found


def document(response: Response) -> dict:
    """Returns the XML document of a response as recordings have it."""
    root = strip_namespaces(ElementTree.fromstring(response.body))
    return {root.tag: xml_dict(root)}


class Case:
    """Runs a scenario. Differences are collected, so that one run shows all of them."""

    def __init__(self, scenario: Scenario, mode: str, http: S3, client: BaseClient | None = None):
        self.scenario, self.mode, self.http = scenario, mode, http
        self.parameter = scenario.parameter
        self.s3 = client or make_client(http, parameter_validation=False)
        self.recorded = recordings()[scenario.name]
        self.names = Names()
        self.differences: list[Difference] = []
        # The steps that were compared, and what their answers have.
        self.compared: dict[str, set[str]] = {}
        self.ended = False

    def run(self) -> list[Difference]:
        """Makes the requests and returns the differences. Every recorded step must have been compared."""
        try:
            self.scenario.run(self)
        except Ended:
            self.ended = True
        missing = self.recorded.keys() - self.compared.keys()
        assert self.ended or not missing, f"recorded steps that the scenario does not make: {sorted(missing)}"
        return self.differences

    def without_checksums(self) -> None:
        """Lets boto3 send no checksums by itself, as when some scenarios were recorded."""
        self.s3 = make_client(self.http, parameter_validation=False, **WHEN_REQUIRED)

    # Requests

    def bucket(self, **options: object) -> str:
        """Creates an empty bucket of the scenario's own."""
        name = self.bucket_name()
        self.do("create_bucket", Bucket=name, **options)
        return name

    def bucket_name(self) -> str:
        """Returns a name that no bucket has."""
        return f"recorded-{os.getpid()}-{next(_numbers)}"

    def versioned(self, bucket: str, status: str = "Enabled") -> str:
        """Switches versioning of a bucket."""
        self.do("put_bucket_versioning", Bucket=bucket, VersioningConfiguration={"Status": status})
        return bucket

    def put(self, bucket: str, key: str, body: bytes | str = b"", **options: object) -> dict:
        """Puts an object that a later step needs."""
        return self.do("put_object", Bucket=bucket, Key=key, Body=body, **options)

    def call(self, operation: str, **parameters: object) -> dict:
        """Makes a request and returns its answer, which may be an error."""
        try:
            answer = getattr(self.s3, operation)(**parameters)
        except ClientError as error:
            answer = dict(error.response)
        if hasattr(answer.get("Body"), "read"):
            answer["Body"] = answer["Body"].read()
        return answer

    def do(self, operation: str, **parameters: object) -> dict:
        """Makes a request that prepares a step and must succeed."""
        answer = self.call(operation, **parameters)
        if "Error" in answer:
            if self.is_left_out(answer):
                raise Ended
            raise Unprepared(f"{operation}: {answer['Error']}")
        return answer

    def is_left_out(self, answer: dict) -> bool:
        """Returns whether this is the answer of strict mode to what only the extended mode has."""
        return self.mode == STRICT and answer_of(answer) in ("501 NotImplemented", "501 501")

    # Comparison

    def step(self, name: str, operation: str, **parameters: object) -> dict:
        """Makes the request of a step, compares its answer, and returns it."""
        answer = self.call(operation, **parameters)
        self.match(name, answer, reads=operation.startswith(("get_", "head_", "list_")))
        return answer

    def match(self, name: str, answer: dict, *, reads: bool = True, recorded: dict | None = None) -> None:
        """Compares an answer with the one that was recorded for the step, or with another form of it."""
        recorded = self.recorded[name] if recorded is None else recorded
        if self.is_left_out(answer) and "501" not in answer_of(recorded):
            self.compared[name] = set()
            if reads:
                return
            raise Ended
        found = plain(answer)
        self.compared[name] = {"answer"}
        if answer_of(recorded) != answer_of(found):
            self.differences.append(Difference(name, "answer", answer_of(recorded) or recorded, answer_of(found) or found))
            return
        self.compared[name] |= paths(recorded) | paths(found)
        # An empty body that has a length had been read before it was recorded.
        unread = ["Body"] if isinstance(recorded, dict) and recorded.get("Body") == "" and recorded.get("ContentLength") else []
        of_mode = IGNORED_IN_STRICT if self.mode == STRICT else {}
        comparison = Comparison(self.names, name, [*IGNORED, *of_mode, *unread], list(ADDITIONS))
        comparison.compare(recorded, found)
        self.differences += comparison.differences

    def differ(self, step: str, path: str, aws: object, ours: object) -> None:
        """Notes a difference that is in no document."""
        self.compared[step].add(path)
        self.differences.append(Difference(step, path, aws, ours))

    def leave_out(self, name: str) -> None:
        """Leaves out a step that is not about the server, or that a test cannot make."""
        self.compared[name] = set()

    def raw(self, method: str, target: str, headers: Headers | None = None, body: bytes = b"") -> Response:
        """Makes a signed request as it is written here."""
        return self.http.request(method, target, headers, body)

    def raw_document(self, target: str, headers: Headers | None = None) -> dict:
        """Returns the document that a signed GET has, or an error in the form of boto3's."""
        response = self.raw("GET", target, headers)
        found = document(response)
        if "Error" in found:
            return {"Error": found["Error"], "ResponseMetadata": {"HTTPStatusCode": response.status}}
        return found
