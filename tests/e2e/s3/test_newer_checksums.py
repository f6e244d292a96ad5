"""The checksum algorithms that AWS added in 2026, in the extended mode: wherever the older ones are accepted.

The expected values are computed here, those of the xxHashes by the library with which SDKs of AWS compute them. Strict mode
refuses these algorithms; `test_objects.py` and `test_not_implemented.py` have that.
"""

import base64
import hashlib
import zlib
from collections.abc import Callable

import pytest
from awscrt.checksums import XXHash
from botocore.client import BaseClient

from harness.aws_chunked import SIGNED_TRAILER, UNSIGNED_TRAILER, ChunkedUpload
from harness.boto import PART_BYTES, Upload, make_client, random_bytes, refused
from harness.expect import assert_error
from harness.forms import Form
from harness.management import expect
from harness.s3 import S3, md5_etag, object_target, xml
from harness.server import Cairn

ENABLED = [("x-amz-checksum-mode", "ENABLED")]
BODIES = [random_bytes("newer 1", PART_BYTES), random_bytes("newer 2", 4321)]


def xxhash(start: Callable[[], XXHash]) -> Callable[[bytes], bytes]:
    """Returns the function that computes one of the xxHashes."""
    def digest(body: bytes) -> bytes:
        running = start()
        running.update(body)
        return running.finalize()

    return digest


DIGESTS: dict[str, Callable[[bytes], bytes]] = {
    "SHA512": lambda body: hashlib.sha512(body).digest(),
    "MD5": lambda body: hashlib.md5(body).digest(),
    "XXHASH64": xxhash(XXHash.new_xxhash64),
    "XXHASH3": xxhash(XXHash.new_xxhash3_64),
    "XXHASH128": xxhash(XXHash.new_xxhash3_128),
}
every_algorithm = pytest.mark.parametrize("algorithm", DIGESTS)


def checksum(algorithm: str, body: bytes) -> str:
    """Returns a checksum as a header value."""
    return base64.b64encode(DIGESTS[algorithm](body)).decode()


def header(algorithm: str) -> str:
    """Returns the header of an algorithm."""
    return f"x-amz-checksum-{algorithm.lower()}"


@pytest.fixture
def boto(extended: S3) -> BaseClient:
    """A client of the extended server."""
    return make_client(extended)


@every_algorithm
@pytest.mark.parametrize("size", [0, 1, 240, 241, 70_000, 3_000_001])
def test_headers_are_verified_stored_and_returned(extended: S3, extended_bucket: str, algorithm: str, size: int):
    """A right checksum is stored, and returned on request. A wrong or malformed one is refused, and nothing is stored."""
    body, name = random_bytes(size, size), header(algorithm)
    right = checksum(algorithm, body)
    put = extended.put(extended_bucket, "k", body, [(name, right), ("x-amz-sdk-checksum-algorithm", algorithm)])
    assert (put.get(name), put.get("x-amz-checksum-type")) == (right, "FULL_OBJECT")
    for answer in (extended.get(extended_bucket, "k", ENABLED), extended.head(extended_bucket, "k", ENABLED)):
        assert (answer.get(name), answer.get("x-amz-checksum-type")) == (right, "FULL_OBJECT")
    assert extended.get(extended_bucket, "k").get(name) is None
    wrong = checksum(algorithm, body + b"x")
    assert_error(extended.request("PUT", object_target(extended_bucket, "other"), [(name, wrong)], body), 400, "BadDigest")
    for value in ("nonsense!", "AAAA", right + "AAAA"):
        refusal = extended.request("PUT", object_target(extended_bucket, "other"), [(name, value)], body)
        assert_error(refusal, 400, "InvalidRequest")
    both = [(name, right), ("x-amz-checksum-crc32", "AAAAAA==")]
    assert_error(extended.request("PUT", object_target(extended_bucket, "other"), both, body), 400, "InvalidRequest")
    assert_error(extended.get(extended_bucket, "other"), 404, "NoSuchKey")


@every_algorithm
@pytest.mark.parametrize("payload", [SIGNED_TRAILER, UNSIGNED_TRAILER])
def test_trailers_are_verified_stored_and_returned(extended: S3, extended_bucket: str, algorithm: str, payload: str):
    """The checksum follows the content, in chunks of any size."""
    body, name = random_bytes("trailer", 300_000), header(algorithm)
    for chunk_bytes in (8192, 65_537, 1 << 20):
        upload = ChunkedUpload(extended, extended_bucket, "k", body, payload, chunk_bytes=chunk_bytes)
        upload.trailer = (name, checksum(algorithm, body))
        assert upload.send().get(name) == upload.trailer[1]
        assert extended.head(extended_bucket, "k", ENABLED).get(name) == upload.trailer[1]
    wrong = ChunkedUpload(extended, extended_bucket, "other", body, payload)
    wrong.trailer = (name, checksum(algorithm, b"other"))
    assert_error(wrong.send(), 400, "BadDigest")
    assert_error(extended.get(extended_bucket, "other"), 404, "NoSuchKey")


@every_algorithm
def test_lists_and_attributes_name_the_algorithm(extended_store: Cairn, boto: BaseClient, extended_bucket: str, algorithm: str):
    """Lists, lists of versions, GetObjectAttributes and the record of the management API."""
    name = f"Checksum{algorithm}"
    boto.put_object(Bucket=extended_bucket, Key="k", Body=b"abc", **{name: checksum(algorithm, b"abc")})
    for (found,) in (
        boto.list_objects(Bucket=extended_bucket)["Contents"], boto.list_objects_v2(Bucket=extended_bucket)["Contents"],
        boto.list_object_versions(Bucket=extended_bucket)["Versions"],
    ):
        assert (found["ChecksumAlgorithm"], found["ChecksumType"]) == ([algorithm], "FULL_OBJECT")
    attributes = boto.get_object_attributes(Bucket=extended_bucket, Key="k", ObjectAttributes=["Checksum"])["Checksum"]
    assert attributes == {name: checksum(algorithm, b"abc"), "ChecksumType": "FULL_OBJECT"}
    record = expect(extended_store.admin.get(f"/buckets/{extended_bucket}/object/k"), 200)
    assert record["checksums"] == {algorithm.lower(): checksum(algorithm, b"abc")}


@pytest.mark.parametrize("algorithm", ["SHA512", "XXHASH64", "XXHASH3", "XXHASH128"])
def test_boto3_computes_them_and_verifies_what_it_reads(boto: BaseClient, extended_bucket: str, algorithm: str):
    """The SDK chooses header or trailer. It computes no MD5 itself."""
    name, body = f"Checksum{algorithm}", random_bytes("boto", 1_000_000)
    assert boto.put_object(Bucket=extended_bucket, Key="k", Body=body, ChecksumAlgorithm=algorithm)[name] == checksum(algorithm, body)
    found = boto.get_object(Bucket=extended_bucket, Key="k", ChecksumMode="ENABLED")
    assert found["Body"].read() == body and found[name] == checksum(algorithm, body)


@every_algorithm
def test_uploads_have_a_composite_checksum(boto: BaseClient, extended_bucket: str, algorithm: str):
    """From the creation to the attributes of the object. The last part is a copy, whose checksum the server computes."""
    name = f"Checksum{algorithm}"
    boto.put_object(Bucket=extended_bucket, Key="source", Body=b"head" + BODIES[1])
    upload = Upload(boto, extended_bucket, "k", ChecksumAlgorithm=algorithm)
    assert (upload.created["ChecksumAlgorithm"], upload.created["ChecksumType"]) == (algorithm, "COMPOSITE")
    sums = [checksum(algorithm, body) for body in BODIES]
    with refused(400, "BadDigest"):
        upload.send(1, BODIES[0], **{name: sums[1]})
    with refused(400, "InvalidRequest"):
        upload.send(1, BODIES[0], ChecksumCRC32="AAAAAA==")
    assert upload.send(1, BODIES[0], **{name: sums[0]})[name] == sums[0]
    copied = boto.upload_part_copy(
        **upload.names, PartNumber=2, CopySource={"Bucket": extended_bucket, "Key": "source"}, CopySourceRange=f"bytes=4-{3 + len(BODIES[1])}",
    )["CopyPartResult"]
    assert copied[name] == sums[1]
    upload.parts[2] = {"PartNumber": 2, "ETag": copied["ETag"], name: sums[1]}
    listed = upload.listed()
    assert (listed["ChecksumAlgorithm"], listed["ChecksumType"], [part[name] for part in listed["Parts"]]) == (algorithm, "COMPOSITE", sums)
    (item,) = boto.list_multipart_uploads(Bucket=extended_bucket)["Uploads"]
    assert (item["ChecksumAlgorithm"], item["ChecksumType"]) == (algorithm, "COMPOSITE")
    digest = checksum(algorithm, b"".join(DIGESTS[algorithm](body) for body in BODIES))
    with refused(400, "InvalidRequest"):
        upload.complete([upload.parts[1], {"PartNumber": 2, "ETag": copied["ETag"]}])
    with refused(400, "InvalidPart"):
        upload.complete([upload.parts[1], upload.parts[2] | {name: sums[0]}])
    with refused(400, "BadDigest"):
        upload.complete(**{name: sums[0] + "-2"})
    answer = upload.complete(**{name: f"{digest}-2"})
    assert (answer[name], answer["ChecksumType"]) == (f"{digest}-2", "COMPOSITE")
    found = boto.head_object(Bucket=extended_bucket, Key="k", ChecksumMode="ENABLED")
    assert (found[name], found["ChecksumType"]) == (f"{digest}-2", "COMPOSITE")
    assert boto.head_object(Bucket=extended_bucket, Key="k", ChecksumMode="ENABLED", PartNumber=2)[name] == sums[1]
    attributes = boto.get_object_attributes(Bucket=extended_bucket, Key="k", ObjectAttributes=["Checksum", "ObjectParts"])
    assert attributes["Checksum"] == {name: digest, "ChecksumType": "COMPOSITE"}
    assert [part[name] for part in attributes["ObjectParts"]["Parts"]] == sums
    listed = boto.list_objects_v2(Bucket=extended_bucket, Prefix="k")["Contents"][0]
    assert (listed["ChecksumAlgorithm"], listed["ChecksumType"]) == ([algorithm], "COMPOSITE")


@every_algorithm
def test_uploads_have_no_checksum_of_the_whole_object(boto: BaseClient, extended_bucket: str, algorithm: str):
    """Only CRCs can be computed from those of the parts."""
    with refused(400, "InvalidRequest"):
        boto.create_multipart_upload(Bucket=extended_bucket, Key="k", ChecksumAlgorithm=algorithm, ChecksumType="FULL_OBJECT")
    assert "Uploads" not in boto.list_multipart_uploads(Bucket=extended_bucket)


@every_algorithm
def test_copies_keep_a_checksum_or_get_the_one_that_is_asked_for(extended: S3, extended_bucket: str, algorithm: str):
    """The copy of a copy keeps it."""
    body, name = random_bytes("copied", 300_000), f"Checksum{algorithm}"
    extended.put(extended_bucket, "source", body, [("x-amz-checksum-crc32", base64.b64encode(zlib.crc32(body).to_bytes(4, "big")).decode())])
    asked = [("x-amz-copy-source", f"{extended_bucket}/source"), ("x-amz-checksum-algorithm", algorithm)]
    copied = xml(extended.request("PUT", object_target(extended_bucket, "copy"), asked))
    assert (copied.findtext(name), copied.findtext("ChecksumType")) == (checksum(algorithm, body), "FULL_OBJECT")
    kept = xml(extended.request("PUT", object_target(extended_bucket, "again"), [("x-amz-copy-source", f"{extended_bucket}/copy")]))
    assert kept.findtext(name) == checksum(algorithm, body) and kept.findtext("ChecksumCRC32") is None
    assert extended.head(extended_bucket, "again", ENABLED).get(header(algorithm)) == checksum(algorithm, body)


@every_algorithm
def test_forms_have_them_as_fields(extended: S3, extended_bucket: str, algorithm: str):
    """A wrong checksum stores nothing."""
    field = f"x_amz_checksum_{algorithm.lower()}"
    sent = Form(extended, extended_bucket, "k", b"content", **{field: checksum(algorithm, b"other")})
    assert_error(sent.send(), 400, "BadDigest")
    assert extended.list_all(extended_bucket) == {}
    sent = Form(extended, extended_bucket, "k", b"content", **{field: checksum(algorithm, b"content")})
    assert sent.send().status == 204
    assert extended.head(extended_bucket, "k", ENABLED).get(header(algorithm)) == checksum(algorithm, b"content")


@every_algorithm
def test_documents_are_verified(extended: S3, extended_bucket: str, algorithm: str):
    """DeleteObjects, which AWS wants a checksum for."""
    extended.put(extended_bucket, "k", b"x")
    body = b"<Delete><Object><Key>k</Key></Object></Delete>"
    for content, status in ((b"other", 400), (body, 200)):
        assert "k" in extended.list_all(extended_bucket)
        sums = [(header(algorithm), checksum(algorithm, content))]
        assert extended.request("POST", f"/{extended_bucket}?delete", sums, body).status == status
    assert extended.list_all(extended_bucket) == {}


def test_unknown_algorithms_are_not_implemented(extended: S3, extended_bucket: str):
    """The message names those that are."""
    for sent in (("x-amz-checksum-xxhash32", "AAAAAA=="), ("x-amz-sdk-checksum-algorithm", "XXHASH32")):
        answer = extended.request("PUT", object_target(extended_bucket, "k"), [sent], b"x")
        assert "XXHASH128" in assert_error(answer, 501, "NotImplemented").findtext("Message")
    created = extended.request("POST", object_target(extended_bucket, "k", "uploads"), [("x-amz-checksum-algorithm", "XXHASH32")])
    assert_error(created, 501, "NotImplemented")


def test_md5_is_verified_without_a_tag_that_is_one(make_module_store: Callable[..., Cairn]):
    """With opaque entity tags no MD5 is computed unless something asks for it. Everything is there after a restart."""
    store = make_module_store(SERVICE_S3_ETAG="opaque", SERVICE_S3_COMPATIBILITY="extended").start()
    s3, name = store.s3, "x-amz-checksum-md5"
    s3.create_bucket("opaque")
    for body in (b"", b"small", random_bytes("large", 300_000)):
        assert s3.put("opaque", "k", body, [(name, checksum("MD5", body))]).get("etag") != md5_etag(body)
        wrong = s3.request("PUT", object_target("opaque", "other"), [(name, checksum("MD5", b"other"))], body)
        assert_error(wrong, 400, "BadDigest")
    boto = make_client(s3)
    for algorithm in DIGESTS:
        upload = Upload(boto, "opaque", algorithm, ChecksumAlgorithm=algorithm)
        upload.send(1, BODIES[1], **{f"Checksum{algorithm}": checksum(algorithm, BODIES[1])})
        upload.complete()
    store.restart()
    assert store.s3.head("opaque", "k", ENABLED).get(name) == checksum("MD5", random_bytes("large", 300_000))
    for algorithm in DIGESTS:
        expected = checksum(algorithm, DIGESTS[algorithm](BODIES[1])) + "-1"
        assert store.s3.head("opaque", algorithm, ENABLED).get(header(algorithm)) == expected
