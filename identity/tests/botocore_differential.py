"""Signs random and peculiar requests with botocore and prints them as JSON lines, one request each.

Most S3 clients in Python use botocore. What it signs must verify, and what is changed after signing must be refused.
`botocore_vectors.rs` reads the lines:

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install botocore
    /tmp/venv/bin/python identity/tests/botocore_differential.py --seed 7 --count 5000 > /tmp/vectors.jsonl
    CAIRN_BOTOCORE_VECTORS=/tmp/vectors.jsonl cargo test -p cairn-identity --test main botocore

`vectors/botocore.jsonl` is the output for the default seed and count. Fields of a line: name, method, path and
query (both raw), headers (pairs in the order sent), now (seconds, the time of verification), verdict ("ok" or an
S3 error code), payload (the digest that verification must report; null if the body is unsigned).
"""

import argparse
import datetime
import json
import random
import uuid
from unittest import mock
from urllib.parse import quote, urlsplit

import botocore.config
import botocore.session
from botocore.auth import S3SigV4Auth, S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest, AWSResponse
from botocore.credentials import Credentials

ACCESS_KEY = "AKIAIOSFODNN7EXAMPLE"
SECRET_KEY = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
SIGNED_AT = datetime.datetime(2013, 5, 24, tzinfo=datetime.timezone.utc)
NOW = int(SIGNED_AT.timestamp())
ENDPOINT = "http://127.0.0.1:7600"

PECULIAR_KEYS = [
    "plain", "with space", "a+b", "a%2Fb", "%20", "%", "a//b", "//leading", "a/./b", "a/../b", "..", "trailing/",
    "semi;colon", "eq=ual", "til~de", "a&b", "a?b", "a#b", "quo'te\"", "(par)[en]{s}", "back\\slash", "comma,dollar$",
    "at@colon:", "star*bang!", "pipe|caret^`", "ünïcödé", "日本語/キー", "emoji-😀", "new\nline", "tab\tkey", "<xml>&amp;",
    "a" * 300, "é", "e\u0301", "-._~", "+", " ", "a b+c%2Bd", "x/" * 40 + "y",
]
ALPHABET = "abzAZ09-._~/ +%;=&?#:@!$'()*,<>[]{}|\\^`\"\t\u00e9\u65e5\U0001f600"


def random_text(rng, longest):
    return "".join(rng.choice(ALPHABET) for _ in range(rng.randint(1, longest)))


def line_of(name, method, url, headers, verdict="ok", now=NOW):
    parts = urlsplit(url)
    pairs = [(key, value if isinstance(value, str) else value.decode()) for key, value in headers]
    # Never signed, and telling of the host that made the vectors.
    pairs = [(key, value) for key, value in pairs if key.lower() != "user-agent"]
    if not any(key.lower() == "host" for key, _ in pairs):
        pairs.insert(0, ("Host", parts.netloc))
    digest = next((value for key, value in pairs if key.lower() == "x-amz-content-sha256"), "UNSIGNED-PAYLOAD")
    return {
        "name": name,
        "method": method,
        "path": parts.path,
        "query": parts.query if "?" in url else None,
        "headers": pairs,
        "now": now,
        "verdict": verdict,
        "payload": None if digest == "UNSIGNED-PAYLOAD" else digest,
    }


class Client:
    """The real client, with its requests caught before they leave."""

    def __init__(self, endpoint=ENDPOINT):
        session = botocore.session.Session()
        session.set_credentials(ACCESS_KEY, SECRET_KEY)
        self.s3 = session.create_client(
            "s3",
            region_name="us-east-1",
            endpoint_url=endpoint,
            config=botocore.config.Config(
                signature_version="s3v4", s3={"addressing_style": "path"}, retries={"max_attempts": 0}
            ),
        )
        self.s3.meta.events.register("before-send.s3", self._catch)
        self.caught = None

    def _catch(self, request, **_):
        self.caught = request
        body = mock.Mock(stream=lambda *_, **__: iter([b""]), read=lambda *_: b"")
        return AWSResponse(request.url, 200, {}, body)

    def call(self, operation, **arguments):
        try:
            getattr(self.s3, operation)(**arguments)
        except Exception:  # the empty answer may not parse; the request is all that is wanted
            if self.caught is None:
                raise
        request, self.caught = self.caught, None
        return line_of(operation, request.method, request.url, list(request.headers.items()))


def client_requests(rng, count):
    """Yields the requests that the client itself makes of peculiar keys, prefixes and metadata."""
    plain, tls = Client(), Client("https://127.0.0.1:7600")
    for index in range(count):
        key = PECULIAR_KEYS[index] if index < len(PECULIAR_KEYS) else random_text(rng, 40)
        choice = index % 6
        if choice == 0:
            yield plain.call("get_object", Bucket="bucket", Key=key, Range="bytes=0-9")
        elif choice == 1:
            metadata = {"one": "  two   inner    spaces ", "two": "a,b;c", "three": ""}
            yield plain.call("put_object", Bucket="bucket", Key=key, Body=b"body", Metadata=metadata)
        elif choice == 2:
            yield plain.call("list_objects_v2", Bucket="bucket", Prefix=key, Delimiter="/", StartAfter="a b+c")
        elif choice == 3:
            yield plain.call("copy_object", Bucket="bucket", Key="to", CopySource={"Bucket": "from", "Key": key})
        elif choice == 4:
            operation = rng.choice(["get_object", "put_object", "head_object", "delete_object"])
            url = plain.s3.generate_presigned_url(operation, {"Bucket": "bucket", "Key": key}, ExpiresIn=60)
            method = {"get": "GET", "put": "PUT", "head": "HEAD", "delete": "DELETE"}[operation.split("_")[0]]
            yield line_of(f"presigned {operation}", method, url, [])
        else:
            # Over TLS the client puts its checksum behind the body, which is refused with a hint.
            line = tls.call("put_object", Bucket="bucket", Key=key, Body=b"body")
            yield {**line, "verdict": "NotImplemented", "payload": None}


def signed(rng, method, url, headers, kind):
    request = AWSRequest(method=method, url=url, data=b"body" if kind == "header" else None)
    for name, value in headers:
        request.headers.add_header(name, value)
    region = rng.choice(["us-east-1", "eu-central-1", "auto", "mars"])
    credentials = Credentials(ACCESS_KEY, SECRET_KEY)
    if kind == "header":
        S3SigV4Auth(credentials, "s3", region).add_auth(request)
    else:
        S3SigV4QueryAuth(credentials, "s3", region, expires=rng.choice([60, 3600, 604800])).add_auth(request)
    return line_of(kind, request.method, request.url, list(request.headers.items()))


def signer_requests(rng, count):
    """Bare signatures over shapes that the client's operations never produce."""
    for index in range(count):
        path = "/bucket/" + quote(random_text(rng, 30), safe="/~")
        pairs = [(random_text(rng, 6), random_text(rng, 10)) for _ in range(rng.randint(0, 4))]
        pairs += [("empty", "")] * rng.randint(0, 1) + [("same", "2"), ("same", "1")] * rng.randint(0, 1)
        rng.shuffle(pairs)
        kind = rng.choice(["header", "presigned"])
        # botocore signs a query in the URL as it stands; only the strict spelling is what S3 computes.
        query = "&".join(f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}" for name, value in pairs)
        headers = [("x-amz-meta-repeated", "1"), ("x-amz-meta-repeated", "  2   3 ")] * rng.randint(0, 1)
        headers += [("x-amz-meta-a", "".join(rng.choice("ab ,;=\"") for _ in range(rng.randint(0, 12))))]
        if kind == "header" and rng.random() < 0.3:
            headers += [("Date", "to be replaced")]
        url = ENDPOINT + path + ("?" + query if query else "")
        yield signed(rng, rng.choice(["GET", "PUT", "HEAD", "DELETE", "POST"]), url, headers, kind)


def changed_requests(rng, lines, count):
    """The same requests with one thing changed, and what has to come of it."""
    for _ in range(count):
        line = json.loads(json.dumps(rng.choice([line for line in lines if line["verdict"] == "ok"])))
        presigned = "X-Amz-Signature" in (line["query"] or "")
        change = rng.choice(["method", "path", "query", "added header", "time", "host", "both", "access key"])
        verdict = "SignatureDoesNotMatch"
        if change == "method":
            line["method"] = "PATCH"
        elif change == "path":
            line["path"] += "x"
        elif change == "query":
            line["query"] = ((line["query"] or "") + "&added=").lstrip("&")
        elif change == "added header":
            line["headers"].append(["x-amz-copy-source", "/other/key"])
            copied = any(name.lower() == "x-amz-copy-source" for name, _ in line["headers"][:-1])
            verdict = verdict if copied else "AccessDenied"
        elif change == "time":
            line["now"] += rng.choice([-901, 604801])
            verdict = "AccessDenied" if presigned else "RequestTimeTooSkewed"
        elif change == "host":
            line["headers"] = [[name, "elsewhere" if name.lower() == "host" else value] for name, value in line["headers"]]
        elif change == "access key":
            line["query"] = line["query"] and line["query"].replace(ACCESS_KEY, "NOBODY")
            line["headers"] = [[name, value.replace(ACCESS_KEY, "NOBODY")] for name, value in line["headers"]]
            verdict = "InvalidAccessKeyId"
        elif presigned:
            line["headers"].append(["Authorization", "AWS4-HMAC-SHA256 Credential=a"])
            verdict = "InvalidArgument"
        else:
            line["query"] = ((line["query"] or "") + "&X-Amz-Algorithm=AWS4-HMAC-SHA256").lstrip("&")
            verdict = "InvalidArgument"
        yield {**line, "name": f"{line['name']}, changed: {change}", "verdict": verdict, "payload": None}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    # Time and invocation ids go into signatures: fixed, so that a seed always gives the same lines.
    mock.patch("botocore.auth.get_current_datetime", lambda *_, **__: SIGNED_AT).start()
    mock.patch("uuid.uuid4", lambda: uuid.UUID(int=rng.getrandbits(128))).start()
    third = arguments.count // 3
    lines = list(client_requests(rng, third)) + list(signer_requests(rng, third))
    lines += list(changed_requests(rng, lines, arguments.count - len(lines)))
    for line in lines:
        print(json.dumps(line, ensure_ascii=False, sort_keys=True))


if __name__ == "__main__":
    main()
