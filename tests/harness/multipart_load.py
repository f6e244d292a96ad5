"""Multipart uploads in the load of the crash tests, and checks of interrupted uploads."""

import hashlib
import random

from .crash_model import KeyState, Model, Upload, Version
from .expect import Broken
from .s3 import S3, object_target, xml
from .sigv4 import uri_encode
from .wire import Connection, Response

# The minimum size of every part except the last.
PART_BYTES = 5 << 20
# The sizes of last parts lie around the boundaries of inline payloads, units and blocks.
LAST_BYTES = [1, 4_000, 16_384, 16_385, 70_000, 300_000, 1_500_000]
# The shares of uploads with two parts, of parts that are sent twice, of aborted uploads, of repeated completions.
TWO_PARTS_SHARE, AGAIN_SHARE, ABORTED_SHARE, COMPLETED_AGAIN_SHARE = 0.4, 0.2, 0.15, 0.3


def upload(
    model: Model, writer: int, rng: random.Random, s3: S3, connection: Connection, bucket: str, key: str, state: KeyState
) -> int:
    """Runs an upload to completion or abort and returns the number of acknowledged changes of the key."""

    def ask(method: str, query: str, body: bytes = b"", *, status: int = 200) -> Response:
        response = s3.request(method, object_target(bucket, key, query), None, body, connection=connection)
        if response.status != status:
            raise Broken(f"{method} {key}?{query}: {response.status} {response.body[:500]!r}")
        return response

    model.generation[writer] += 1
    front = (PART_BYTES,) if rng.random() < TWO_PARTS_SHARE else ()
    parts = (*front, rng.choice(LAST_BYTES))
    wish = Version(model.generation[writer], sum(parts), parts=parts)
    body, start, sent_parts = model.body(key, wish), 0, {}
    begun = Upload(key, xml(ask("POST", "uploads=")).findtext("UploadId"))
    model.note_upload(writer, begun)
    upload_id = f"uploadId={uri_encode(begun.id)}"
    for number, size in enumerate(parts, 1):
        piece, start = body[start : start + size], start + size
        # The part that is replaced has different bytes.
        for sent in ([piece[::-1], piece] if rng.random() < AGAIN_SHARE else [piece]):
            model.note_part(begun, number, None)
            etag = ask("PUT", f"partNumber={number}&{upload_id}", sent).get("etag")
            if etag != f'"{hashlib.md5(sent).hexdigest()}"':
                raise Broken(f"part {number} of {key}: {etag} is not the ETag of the sent bytes")
            model.note_part(begun, number, etag)
            sent_parts[number] = etag
    model.note_upload(writer, None)
    if rng.random() < ABORTED_SHARE:
        ask("DELETE", upload_id, status=204)
        return 0
    model.begin(state, wish)
    named = "".join(
        f"<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>" for number, etag in sent_parts.items()
    )
    complete = f"<CompleteMultipartUpload>{named}</CompleteMultipartUpload>".encode()
    for _ in range(2 if rng.random() < COMPLETED_AGAIN_SHARE else 1):
        etag = xml(ask("POST", upload_id, complete)).findtext("ETag")
        if etag != model.etag(key, wish):
            raise Broken(f"completion of {key}: {etag}, expected {model.etag(key, wish)}")
        model.acknowledge(state, wish)
    return 1


def compare(s3: S3, bucket: str, model: Model) -> int:
    """Asserts that every acknowledged part exists, aborts all uploads, and returns their number."""
    for upload in model.uploads.values():
        target = object_target(bucket, upload.key, f"uploadId={uri_encode(upload.id)}")
        response = s3.request("GET", target)
        if response.status != 200:
            raise Broken(f"the upload {upload.id} for {upload.key} is gone: {response.status} {response.body[:500]!r}")
        items = xml(response).findall("Part")
        found = {int(item.findtext("PartNumber")): item.findtext("ETag") for item in items}
        for number in found.keys() | upload.parts.keys():
            if number not in upload.pending and found.get(number) != upload.parts.get(number):
                raise Broken(f"part {number} of {upload}: the store has {found.get(number)}")
    model.uploads.clear()
    listed = uploads(s3, bucket)
    for key, upload_id in listed:
        response = s3.request("DELETE", object_target(bucket, key, f"uploadId={uri_encode(upload_id)}"))
        if response.status != 204:
            raise Broken(f"the upload {upload_id} for {key} cannot be aborted: {response.status} {response.body[:500]!r}")
    if left := uploads(s3, bucket):
        raise Broken(f"uploads that were aborted are listed: {left[:5]}")
    return len(listed)


def uploads(s3: S3, bucket: str) -> list[tuple[str, str]]:
    """Returns keys and ids of all unfinished uploads. A writer has at most one, so they fit on one page."""
    response = s3.request("GET", f"/{bucket}?uploads=")
    if response.status != 200 or xml(response).findtext("IsTruncated") != "false":
        raise Broken(f"list of uploads: {response.status} {response.body[:500]!r}")
    return [(item.findtext("Key"), item.findtext("UploadId")) for item in xml(response).findall("Upload")]
