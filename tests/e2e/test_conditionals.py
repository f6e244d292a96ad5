"""Attacks conditions on writes: they are decided inside the commit, also when many writers come at once."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.expect import assert_error, assert_status
from harness.s3 import S3, error_code, md5_etag, object_target

WRITERS = 24
ROUNDS = 6


def put(s3: S3, bucket: str, key: str, body: bytes, **conditions: str):
    """A PUT under conditions, whatever it answers."""
    headers = [(name.replace("_", "-"), value) for name, value in conditions.items()]
    return s3.request("PUT", object_target(bucket, key), headers, body)


@pytest.mark.parametrize("size", [100, 200_000])
def test_if_none_match_star_never_overwrites(s3: S3, bucket: str, size: int):
    """412 on an existing key, and the object stays; free again after a delete."""
    assert_status(put(s3, bucket, "k", b"a" * size, If_None_Match="*"), 200)
    assert_error(put(s3, bucket, "k", b"b" * size, If_None_Match="*"), 412, "PreconditionFailed")
    assert s3.get(bucket, "k").body == b"a" * size
    s3.delete(bucket, "k")
    assert_status(put(s3, bucket, "k", b"c" * size, If_None_Match="*"), 200)


def test_if_match_on_put(s3: S3, bucket: str):
    """Only over the version that the client knows; with or without quotes; a missing key is 404."""
    assert_error(put(s3, bucket, "k", b"x", If_Match='"abc"'), 404, "NoSuchKey")
    s3.put(bucket, "k", b"one")
    assert_error(put(s3, bucket, "k", b"x", If_Match='"abc"'), 412, "PreconditionFailed")
    assert s3.get(bucket, "k").body == b"one"
    assert_status(put(s3, bucket, "k", b"two", If_Match=md5_etag(b"one")), 200)
    assert_status(put(s3, bucket, "k", b"three", If_Match=md5_etag(b"two").strip('"')), 200)
    assert s3.get(bucket, "k").body == b"three"


@pytest.mark.parametrize("conditions", [{"If_None_Match": '"abc"'}, {"If_None_Match": "*", "If_Match": '"abc"'}])
def test_other_conditions_on_put_are_not_implemented(s3: S3, bucket: str, conditions: dict[str, str]):
    """As on AWS; ignoring them would overwrite."""
    s3.put(bucket, "k", b"one")
    assert_error(put(s3, bucket, "k", b"two", **conditions), 501, "NotImplemented")
    assert s3.get(bucket, "k").body == b"one"


def test_if_match_on_delete(s3: S3, bucket: str):
    """A wrong tag leaves the object."""
    s3.put(bucket, "k", b"one")
    assert_error(s3.delete(bucket, "k", [("If-Match", '"abc"')]), 412, "PreconditionFailed")
    assert s3.get(bucket, "k").body == b"one"
    assert s3.delete(bucket, "k", [("If-Match", md5_etag(b"one"))]).status == 204


@pytest.mark.parametrize(
    ("name", "value"), [("x-amz-if-match-size", "99"), ("x-amz-if-match-last-modified-time", "Wed, 21 Oct 2015 07:28:00 GMT")]
)
def test_aws_conditions_on_delete_are_never_ignored(s3: S3, bucket: str, name: str, value: str):
    """Honoured (412) or refused (501): ignoring them deletes data."""
    s3.put(bucket, "k", b"one")
    response = s3.delete(bucket, "k", [(name, value)])
    assert response.status in (412, 501), response.status
    assert s3.get(bucket, "k").body == b"one"


@pytest.mark.parametrize("size", [64, 100_000])
def test_of_many_conditional_creates_one_wins(s3: S3, bucket: str, size: int):
    """Exactly one 200; the others 412 or 409; the object is the winner's."""
    with ThreadPoolExecutor(WRITERS) as pool:
        for number in range(ROUNDS):
            bodies = [bytes([writer]) * size for writer in range(WRITERS)]
            answers = list(pool.map(lambda body: put(s3, bucket, f"k{number}", body, If_None_Match="*"), bodies))
            winners = [writer for writer, answer in enumerate(answers) if answer.status == 200]
            assert len(winners) == 1, [answer.status for answer in answers]
            losers = {(a.status, error_code(a)) for a in answers if a.status != 200}
            assert losers <= {(412, "PreconditionFailed"), (409, "ConditionalRequestConflict")}, losers
            assert s3.get(bucket, f"k{number}").body == bodies[winners[0]]


def test_of_many_compare_and_swaps_none_is_lost(s3: S3, bucket: str):
    """A counter raised by If-Match from many clients ends at the number of successes."""
    s3.put(bucket, "counter", b"0")

    def raise_it(_: int) -> int:
        done = 0
        for _ in range(8):
            seen = s3.get(bucket, "counter")
            new = str(int(seen.body) + 1).encode()
            answer = put(s3, bucket, "counter", new, If_Match=seen.get("etag"))
            assert answer.status in (200, 412, 409), answer.body
            done += answer.status == 200
        return done

    with ThreadPoolExecutor(12) as pool:
        successes = sum(pool.map(raise_it, range(12)))
    assert int(s3.get(bucket, "counter").body) == successes
    assert successes >= 8


def test_concurrent_overwrites_never_mix(s3: S3, bucket: str):
    """64 writers on one key, inline and in volumes: a read is always one writer's whole body with its ETag."""
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
