"""Conditional writes: conditions are evaluated inside the commit, also with concurrent writers."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.accounts import create_account, statement
from harness.expect import assert_error, assert_status
from harness.s3 import S3, error_code, md5_etag, object_target, xml
from harness.server import Cairn

WRITERS = 24
ROUNDS = 6


def put(s3: S3, bucket: str, key: str, body: bytes, **conditions: str):
    """Sends a conditional PUT and returns the response, whatever its status."""
    headers = [(name.replace("_", "-"), value) for name, value in conditions.items()]
    return s3.request("PUT", object_target(bucket, key), headers, body)


@pytest.mark.parametrize("size", [100, 200_000])
def test_if_none_match_star_never_overwrites(s3: S3, bucket: str, size: int):
    """412 for an existing key, and the object does not change. After a DELETE the key can be created again."""
    assert_status(put(s3, bucket, "k", b"a" * size, If_None_Match="*"), 200)
    assert_error(put(s3, bucket, "k", b"b" * size, If_None_Match="*"), 412, "PreconditionFailed")
    assert s3.get(bucket, "k").body == b"a" * size
    s3.delete(bucket, "k")
    assert_status(put(s3, bucket, "k", b"c" * size, If_None_Match="*"), 200)


def test_put_with_if_match_needs_the_current_etag(s3: S3, bucket: str):
    """Another ETag is 412, a missing key 404. The quotes of the ETag are optional."""
    assert_error(put(s3, bucket, "k", b"x", If_Match='"abc"'), 404, "NoSuchKey")
    s3.put(bucket, "k", b"one")
    assert_error(put(s3, bucket, "k", b"x", If_Match='"abc"'), 412, "PreconditionFailed")
    assert s3.get(bucket, "k").body == b"one"
    assert_status(put(s3, bucket, "k", b"two", If_Match=md5_etag(b"one")), 200)
    assert_status(put(s3, bucket, "k", b"three", If_Match=md5_etag(b"two").strip('"')), 200)
    assert s3.get(bucket, "k").body == b"three"


ONE = md5_etag(b"one")


@pytest.mark.parametrize(
    ("conditions", "status"),
    [
        ({"If_None_Match": '"abc"'}, 200), ({"If_None_Match": ONE}, 412), ({"If_None_Match": f"W/{ONE}"}, 412),
        ({"If_None_Match": f'"abc", {ONE}'}, 412), ({"If_None_Match": ONE.strip('"')}, 412), ({"If_None_Match": ""}, 400),
        ({"If_None_Match": '"abc"', "If_Match": ONE}, 200), ({"If_None_Match": ONE, "If_Match": ONE}, 412),
        ({"If_None_Match": '"abc"', "If_Match": '"abc"'}, 412), ({"If_None_Match": "*", "If_Match": ONE}, 412),
    ],
)
def test_if_none_match_with_an_etag_follows_rfc_9110(s3: S3, bucket: str, conditions: dict[str, str], status: int):
    """The write is done unless the current object has one of the tags. Put, copy, completion and DELETE decide alike."""
    headers = [(name.replace("_", "-"), value) for name, value in conditions.items()]
    for key in ("put", "copy", "complete", "delete", "source"):
        s3.put(bucket, key, b"one")
    upload = s3.request("POST", object_target(bucket, "complete", "uploads"))
    query = f"uploadId={xml(upload).findtext('UploadId')}"
    part = s3.request("PUT", object_target(bucket, "complete", f"partNumber=1&{query}"), body=b"two").get("etag")
    parts = f"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{part}</ETag></Part></CompleteMultipartUpload>"
    source = ("x-amz-copy-source", f"/{bucket}/source")
    assert s3.request("PUT", object_target(bucket, "put"), headers, b"two").status == status
    assert s3.request("PUT", object_target(bucket, "copy"), [source, ("x-amz-metadata-directive", "REPLACE"), ("x-amz-meta-new", "1"), *headers]).status == status
    assert s3.request("POST", object_target(bucket, "complete", query), headers, parts.encode()).status == status
    assert s3.delete(bucket, "delete", headers).status == (204 if status == 200 else status)
    done = status == 200
    assert s3.get(bucket, "put").body == s3.get(bucket, "complete").body == (b"two" if done else b"one")
    assert (s3.head(bucket, "copy").get("x-amz-meta-new") == "1") == done
    assert (s3.head(bucket, "delete").status == 404) == done


def test_if_none_match_with_an_etag_holds_for_a_missing_key(s3: S3, bucket: str):
    """Nothing has the tag. A delete marker counts as absent."""
    assert_status(put(s3, bucket, "k", b"one", If_None_Match=ONE), 200)
    assert s3.delete(bucket, "missing", [("If-None-Match", ONE)]).status == 204
    body = b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"
    assert_status(s3.request("PUT", f"/{bucket}?versioning", body=body), 200)
    assert s3.delete(bucket, "k").status == 204
    assert_status(put(s3, bucket, "k", b"one", If_None_Match=ONE), 200)
    assert_error(put(s3, bucket, "k", b"one", If_None_Match=ONE), 412, "PreconditionFailed")


def test_if_none_match_with_an_etag_needs_the_right_to_read(store: Cairn, bucket: str):
    """Otherwise a client that may only write could find out the entity tag."""
    account = create_account(store, statement("allow", "PutObject", f"bucket:{bucket}/*"))
    assert_status(put(account.s3, bucket, "k", b"one", If_None_Match="*"), 200)
    assert_error(put(account.s3, bucket, "k", b"two", If_None_Match='"abc"'), 403, "AccessDenied")


def test_delete_with_if_match_needs_the_current_etag(s3: S3, bucket: str):
    """With another ETag the object is not deleted. Deleting a missing key is 204."""
    s3.put(bucket, "k", b"one")
    assert_error(s3.delete(bucket, "k", [("If-Match", '"abc"')]), 412, "PreconditionFailed")
    assert s3.get(bucket, "k").body == b"one"
    for _ in range(2):
        assert s3.delete(bucket, "k", [("If-Match", md5_etag(b"one")), ("x-amz-if-match-size", "3")]).status == 204
        assert s3.get(bucket, "k").status == 404, "the object was not deleted"


@pytest.mark.parametrize(
    ("name", "value"), [("x-amz-if-match-size", "99"), ("x-amz-if-match-last-modified-time", "Wed, 21 Oct 2015 07:28:00 GMT")]
)
def test_aws_conditions_on_delete_are_never_ignored(s3: S3, bucket: str, name: str, value: str):
    """They fail with 412. Ignoring them would delete data."""
    s3.put(bucket, "k", b"one")
    assert_error(s3.delete(bucket, "k", [(name, value)]), 412, "PreconditionFailed")
    assert s3.get(bucket, "k").body == b"one"


@pytest.mark.parametrize("size", [64, 100_000])
def test_one_of_many_conditional_creates_succeeds(s3: S3, bucket: str, size: int):
    """Exactly one request gets 200, the others 412 or 409. The object is that of the successful request."""
    with ThreadPoolExecutor(WRITERS) as pool:
        for number in range(ROUNDS):
            bodies = [bytes([writer]) * size for writer in range(WRITERS)]
            answers = list(pool.map(lambda body: put(s3, bucket, f"k{number}", body, If_None_Match="*"), bodies))
            winners = [writer for writer, answer in enumerate(answers) if answer.status == 200]
            assert len(winners) == 1, [answer.status for answer in answers]
            losers = {(a.status, error_code(a)) for a in answers if a.status != 200}
            assert losers <= {(412, "PreconditionFailed"), (409, "ConditionalRequestConflict")}, losers
            assert s3.get(bucket, f"k{number}").body == bodies[winners[0]]


def test_no_concurrent_compare_and_swap_is_lost(s3: S3, bucket: str):
    """Many clients increment a counter with If-Match. Its final value is the number of successes."""
    s3.put(bucket, "counter", b"0")

    def increment(_: int) -> int:
        done = 0
        for _ in range(8):
            seen = s3.get(bucket, "counter")
            new = str(int(seen.body) + 1).encode()
            answer = put(s3, bucket, "counter", new, If_Match=seen.get("etag"))
            # Another client may have been faster.
            assert answer.status in (200, 412, 409), answer.body
            done += answer.status == 200
        return done

    with ThreadPoolExecutor(12) as pool:
        successes = sum(pool.map(increment, range(12)))
    assert int(s3.get(bucket, "counter").body) == successes
    assert successes >= 8


def test_concurrent_overwrites_never_mix(s3: S3, bucket: str):
    """64 threads use one key, inline and in volumes. A read always returns one whole body with its ETag."""
    bodies = [bytes([writer]) * (1000 if writer % 2 else 300_000) for writer in range(32)]
    allowed = {md5_etag(body): body for body in bodies}
    s3.put(bucket, "k", bodies[0])

    def work(writer: int) -> None:
        if writer % 3 == 0:
            answer = s3.get(bucket, "k")
            assert answer.status == 200 and allowed[answer.get("etag")] == answer.body
        else:
            s3.put(bucket, "k", bodies[writer % 32])

    with ThreadPoolExecutor(64) as pool:
        list(pool.map(work, range(400)))
    answer = s3.get(bucket, "k")
    assert allowed[answer.get("etag")] == answer.body
    assert len(s3.list(bucket).keys) == 1
