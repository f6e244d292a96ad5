"""Compares the harness's signer and the server with botocore's signer on random inputs."""

import itertools
import os
import random
from urllib.parse import urlsplit

import pytest
from botocore.auth import S3SigV4Auth, S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from harness import sigv4
from harness.s3 import S3
from harness.sigv4 import Scope, uri_encode
from harness.wire import Connection, encode_head

SEED = 20261121
OFFLINE_CASES = 1500
ONLINE_CASES = 250
_addresses = itertools.count()
KEY_ALPHABET = "abcXYZ019-._~/ !$&'()*+,:;=@%#?[]{}|^`\"<>\\é日🗝\u0301"
VALUE_ALPHABET = "abc XYZ 019-._~/!$&'()*+,:;=@%#?[]{}|^`\"<>"


def random_text(rng: random.Random, alphabet: str, longest: int) -> str:
    """Returns a random text of 1 to `longest` characters."""
    return "".join(rng.choice(alphabet) for _ in range(rng.randint(1, longest)))


def random_request(rng: random.Random, bucket: str) -> tuple[str, str, list[tuple[str, str]], bytes]:
    """Returns method, target, extra headers and body of a request that answers 404 if its signature is valid."""
    key = random_text(rng, KEY_ALPHABET, 40)
    query = "&".join(
        f"{uri_encode('q' + random_text(rng, VALUE_ALPHABET, 6))}={uri_encode(random_text(rng, VALUE_ALPHABET, 12))}"
        for _ in range(rng.randrange(4))
    )
    headers = [
        (f"x-amz-meta-{number}-{rng.randrange(99)}", random_text(rng, VALUE_ALPHABET, 20))
        for number in range(rng.randrange(3))
    ]
    target = f"/{bucket}/{uri_encode(key, keep_slash=True)}" + (f"?{query}" if query else "")
    return rng.choice(("GET", "HEAD")), target, headers, b""


def botocore_headers(s3: S3, method: str, target: str, headers: list[tuple[str, str]], region: str) -> dict[str, str]:
    """Returns the headers that botocore has signed."""
    request = AWSRequest(method=method, url=f"http://{s3.authority}{target}", headers=dict(headers))
    keys = Credentials(s3.credential.access_key, s3.credential.secret_key)
    S3SigV4Auth(keys, "s3", region).add_auth(request)
    return dict(request.headers.items())


def test_harness_signer_agrees_with_botocore():
    """Compares header signatures without a server."""
    rng = random.Random(SEED)
    s3 = S3("host.example", 7600, sigv4.Credential("AKEXAMPLE", "secret/with+odd=chars"))
    for number in range(OFFLINE_CASES):
        method, target, headers, _ = random_request(rng, "bucket")
        theirs = botocore_headers(s3, method, target, headers, "eu-west-3")
        pairs = [("Host", s3.authority)] + [(k, v) for k, v in theirs.items() if k != "Authorization"]
        scope = Scope(theirs["X-Amz-Date"], region="eu-west-3")
        ours = sigv4.sign_headers(
            method, target, pairs, s3.credential, payload=theirs["X-Amz-Content-SHA256"], scope=scope
        )
        assert ours == theirs["Authorization"], (number, method, target, headers)


class Clients:
    """Clients with wrong signatures, one after the other: the server delays the answers to an address after 16 of them."""

    REFUSALS_OF_ONE = 12

    def __init__(self, s3: S3):
        self.s3, self.refusals = s3, 0
        self.connection = self.connect()

    def connect(self) -> Connection:
        """Connects from an address that has sent nothing before."""
        number = next(_addresses)
        return self.s3.connect(source=f"127.{os.getpid() % 200 + 20}.{number // 250}.{number % 250 + 1}")

    def __enter__(self) -> "Clients":
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def refused(self, method: str, target: str, headers: list[tuple[str, str]]) -> int:
        """Sends a request that is to be refused, and returns its status."""
        if self.refusals == self.REFUSALS_OF_ONE:
            self.connection.close()
            self.connection, self.refusals = self.connect(), 0
        self.refusals += 1
        return answer(self.connection, method, target, headers)


def answer(connection: Connection, method: str, target: str, headers: list[tuple[str, str]]) -> int:
    """Sends a request on an open connection and returns its status."""
    connection.send_must(encode_head(method, target, headers))
    return connection.read_response(method).status


def test_server_accepts_botocore_header_signatures(s3: S3, bucket: str):
    """A request that botocore signed answers 404 (no such key). With one wrong bit in the signature it is refused."""
    rng = random.Random(SEED + 1)
    with s3.connect() as connection, Clients(s3) as clients:
        for number in range(ONLINE_CASES):
            method, target, headers, _ = random_request(rng, bucket)
            theirs = botocore_headers(s3, method, target, headers, rng.choice(("us-east-1", "auto", "x-1")))
            pairs = [("Host", s3.authority), *theirs.items()]
            assert answer(connection, method, target, pairs) == 404, (number, method, target, headers)
            last = theirs["Authorization"][-1]
            theirs["Authorization"] = theirs["Authorization"][:-1] + ("0" if last != "0" else "1")
            pairs = [("Host", s3.authority), *theirs.items()]
            assert clients.refused(method, target, pairs) == 403, (number, method, target, headers)


def test_server_accepts_botocore_presigned_urls(s3: S3, bucket: str):
    """A presigned URL answers 404 (no such key). With one wrong bit in the signature it is refused."""
    rng = random.Random(SEED + 2)
    keys = Credentials(s3.credential.access_key, s3.credential.secret_key)
    with s3.connect() as connection, Clients(s3) as clients:
        for number in range(ONLINE_CASES):
            method, target, _, _ = random_request(rng, bucket)
            request = AWSRequest(method=method, url=f"http://{s3.authority}{target}")
            S3SigV4QueryAuth(keys, "s3", "us-east-1", expires=rng.randint(60, 604800)).add_auth(request)
            parts = urlsplit(request.url)
            signed = f"{parts.path}?{parts.query}"
            assert answer(connection, method, signed, [("Host", s3.authority)]) == 404, (number, method, signed)
            spoilt = signed[:-1] + ("0" if signed[-1] != "0" else "1")
            assert clients.refused(method, spoilt, [("Host", s3.authority)]) == 403, (number, method, spoilt)


@pytest.mark.parametrize("kind", ["drop", "swap", "value"])
def test_server_refuses_requests_changed_after_signing(s3: S3, bucket: str, kind: str):
    """A signed header is removed or changed, or two query values are swapped."""
    rng = random.Random(SEED + 3)
    with Clients(s3) as clients:
        for _ in range(40):
            first, second = (random_text(rng, "abc", 8) for _ in range(2))
            target = f"/{bucket}/k?qa={first}&qb={second}x"
            head = s3.signed_head("GET", target, [("x-amz-meta-a", first), ("x-amz-meta-b", second)])
            if kind == "drop":
                head = [pair for pair in head if pair[0] != "x-amz-meta-a"]
            elif kind == "value":
                head = [(n, v + "y" if n == "x-amz-meta-b" else v) for n, v in head]
            else:
                target = f"/{bucket}/k?qa={second}x&qb={first}"
            assert clients.refused("GET", target, head) == 403, (kind, target)
