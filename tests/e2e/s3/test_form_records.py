"""Browser forms (POST Object) leave the same records as PutObject: permissions, events, audit, metrics, memory, TLS."""

import random
from collections.abc import Callable
from pathlib import Path

import boto3
import pytest
import requests

from harness.accounts import create_account, statement
from harness.events import walk, without_identity
from harness.forms import Form
from harness.management import expect
from harness.memory import MIB, watched
from harness.metrics import SCRAPE_TOKEN, once, scrape
from harness.s3 import md5_etag
from harness.server import Cairn
from harness.certificates import Authority
from harness.wire import encode_head

SLOW_FORMS = 32
PIECE_BYTES = 256 << 10


@pytest.fixture(scope="module")
def extended_store(make_module_store: Callable[..., Cairn]) -> Cairn:
    """A server with metrics, whose audit trail has reads and writes of objects."""
    settings = {"SERVICE_AUDIT_DATA_EVENTS": "all", "SERVICE_METRICS_SCRAPE_TOKEN": SCRAPE_TOKEN}
    return make_module_store(SERVICE_S3_COMPATIBILITY="extended", **settings).start()


def for_any_key(form: Form) -> Form:
    """Lets the policy of a form allow any key."""
    others = [{name: value} for name, value in form.covered_fields() if name != "key"]
    form.conditions = [{"bucket": form.bucket}, ["starts-with", "$key", ""], *others]
    return form


def test_forms_have_the_events_of_puts(extended_store: Cairn, form):
    """One event for each upload, with its type and entity tag."""
    upload = form(Content_Type="image/png")
    assert [upload.send().status for _ in range(2)] == [204, 204]
    events = [without_identity(event) for event in walk(extended_store.admin, bucket=upload.bucket)]
    common = {"bucket": upload.bucket, "object": "k", "version_id": "null", "size": len(upload.content)}
    metadata = {"principal": "root", "etag": md5_etag(upload.content).strip('"'), "content_type": "image/png"}
    assert events[1:] == [{"type": f"object.{what}", **common, "metadata": metadata} for what in ("created", "updated")]


def test_forms_are_in_the_audit_trail(extended_store: Cairn, form):
    """Under the key after the name of the file was put into it, whether stored or denied."""
    upload = for_any_key(form("in/${filename}"))
    assert upload.send().status == 204
    put = upload.s3.put(upload.bucket, "put", b"x")
    writer = create_account(extended_store, statement("allow", "PutObject", f"bucket:{upload.bucket}/in/*"))
    other = for_any_key(Form(writer.s3, upload.bucket, "out/${filename}"))
    assert other.send().status == 403

    def only(**parameters: str) -> dict:
        (record,) = expect(extended_store.admin.get("/audit/events", params=parameters), 200)["events"]
        return record

    of_put, stored = only(request_id=put.get("x-amz-request-id")), only(resource=f"{upload.bucket}/in/a.txt")
    same = ("principal", "role", "result", "source_ip")
    assert set(stored) == set(of_put) and [stored[name] for name in same] == [of_put[name] for name in same]
    refused = only(resource=f"{upload.bucket}/out/a.txt")
    assert (refused["result"], refused["operation"]) == ("denied", stored["operation"])


def test_forms_are_counted_as_their_operation(extended_store: Cairn, form):
    """The metrics of requests have the operation and the status."""
    stored = lambda seen: seen.sum("service_requests_total", operation="PostObject", status_class="2xx")
    before = stored(scrape(extended_store))
    assert form().send().status == 204
    once(extended_store, lambda seen: stored(seen) > before)


def test_slow_forms_need_no_more_memory_than_slow_puts(extended_store: Cairn, form):
    """Many uploads at once. A file is not collected before it is stored.

    How many buffers of an upload are filled at the same time depends on the load of the machine, for forms as for puts.
    Collected files would all be in memory at the end, so half of their size tells the two apart.
    """
    content = random.Random(1).randbytes(4 * MIB)
    upload = form(content=content)

    def most(requests_: list[bytes], method: str) -> int:
        connections = [upload.s3.connect() for _ in requests_]
        with watched(extended_store) as samples:
            for at in range(0, len(content) + PIECE_BYTES, PIECE_BYTES):
                for connection, request in zip(connections, requests_, strict=True):
                    connection.send(request[at : at + PIECE_BYTES])
            statuses = {connection.read_response(method).status for connection in connections}
        for connection in connections:
            connection.close()
        assert statuses == {204 if method == "POST" else 200}
        return max(samples)

    def put(number: int) -> bytes:
        target = f"/{upload.bucket}/put{number}"
        head = upload.s3.signed_head("PUT", target, payload="UNSIGNED-PAYLOAD", content_length=len(content))
        return encode_head("PUT", target, head) + content

    def post(number: int) -> bytes:
        made = form(f"form{number}", content)
        body = made.body()
        return encode_head("POST", f"/{upload.bucket}", made.headers(body)) + body

    of_puts = most([put(number) for number in range(SLOW_FORMS)], "PUT")
    of_forms = most([post(number) for number in range(SLOW_FORMS)], "POST")
    assert of_forms < of_puts + SLOW_FORMS * len(content) // 2, f"{of_forms / MIB:.1f} MiB, with PUT {of_puts / MIB:.1f} MiB"
    assert upload.s3.get(upload.bucket, f"form{SLOW_FORMS - 1}").body == content


def test_forms_over_tls(make_store: Callable[..., Cairn], tmp_path: Path):
    """The address in the answer has the scheme of the request."""
    authority = Authority(tmp_path / "authority")
    store = make_store(SERVICE_S3_COMPATIBILITY="extended", **authority.issue("forms").environment()).start()
    client = boto3.client(
        "s3", endpoint_url=store.endpoint, region_name="us-east-1", verify=str(authority.certificate),
        aws_access_key_id=store.credential.access_key, aws_secret_access_key=store.credential.secret_key,
    )
    client.create_bucket(Bucket="forms")
    made = Form(store.s3, "forms")
    made.fields.append(("success_action_status", "201"))
    answer = requests.post(
        f"{store.endpoint}/forms", data=dict(made.all_fields()), files={"file": ("a.txt", made.content)}, timeout=30, verify=str(authority.certificate)
    )
    assert answer.status_code == 201 and f"<Location>{store.endpoint}/forms/k</Location>" in answer.text, answer.text
    assert client.get_object(Bucket="forms", Key="k")["Body"].read() == made.content
