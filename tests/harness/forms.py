"""Browser forms (POST Object): policies, their signatures and multipart bodies, implemented independently of the server.

Written from "Browser-Based Uploads Using POST" in the Amazon S3 API reference and from RFC 7578.
"""

import base64
import datetime as dt
import hashlib
import hmac
import json

from . import sigv4
from .s3 import S3, Headers
from .sigv4 import Credential, Scope
from .wire import Connection, Response, encode_head

BOUNDARY = "----test-boundary"
Fields = list[tuple[str, str]]


def expiration(seconds: float = 300) -> str:
    """Returns a time from now on, as policies have it."""
    moment = dt.datetime.now(dt.timezone.utc) + dt.timedelta(seconds=seconds)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.000Z")


def encode_policy(document: object) -> str:
    """Returns a policy as a form sends it."""
    text = document if isinstance(document, str) else json.dumps(document)
    return base64.b64encode(text.encode()).decode()


def signature_fields(credential: Credential, scope: Scope) -> Fields:
    """Returns the fields of a signature that the policy must cover."""
    return [
        ("x-amz-algorithm", sigv4.ALGORITHM), ("x-amz-credential", f"{credential.access_key}/{scope.text()}"), ("x-amz-date", scope.amz_date),
    ]


def sign_policy(credential: Credential, scope: Scope, policy: str) -> str:
    """Returns the signature of an encoded policy."""
    return hmac.new(sigv4.signing_key(credential.secret_key, scope), policy.encode(), hashlib.sha256).hexdigest()


class Form:
    """A form for one bucket. Its policy allows exactly its fields, unless a test changes something before it is sent."""

    def __init__(self, s3: S3, bucket: str, key: str = "k", content: bytes = b"content", **fields: str):
        self.s3, self.bucket, self.content, self.filename = s3, bucket, content, "a.txt"
        self.fields: Fields = [("key", key), *((name.replace("_", "-"), value) for name, value in fields.items())]
        self.credential, self.scope = s3.credential, Scope(sigv4.amz_date())
        # Further conditions, and those that replace the ones of the fields.
        self.more: list = []
        self.conditions: list | None = None
        self.expiration = expiration()
        # Fields that are sent and that the policy does not cover.
        self.uncovered: Fields = []
        self.policy: str | None = None
        self.after_file = b""
        self.boundary = BOUNDARY

    def covered_fields(self) -> Fields:
        """Returns the fields that need a condition."""
        return [*self.fields, *signature_fields(self.credential, self.scope)]

    def all_fields(self) -> Fields:
        """Returns all fields before the file, with a signed policy."""
        covered = self.covered_fields()
        conditions = self.conditions
        if conditions is None:
            conditions = [{"bucket": self.bucket}, *({name: value} for name, value in covered)]
        policy = self.policy
        if policy is None:
            policy = encode_policy({"expiration": self.expiration, "conditions": [*conditions, *self.more]})
        signed = sign_policy(self.credential, self.scope, policy)
        return [*covered, *self.uncovered, ("policy", policy), ("x-amz-signature", signed)]

    def body(self, fields: Fields | None = None) -> bytes:
        """Returns the multipart body."""
        parts = b"".join(field(name, value, self.boundary) for name, value in (self.all_fields() if fields is None else fields))
        return parts + file_part(self.content, self.filename, self.boundary) + self.after_file + f"--{self.boundary}--\r\n".encode()

    def headers(self, body: bytes, more: Headers | None = None) -> Headers:
        """Returns the header fields of the request."""
        kind = f"multipart/form-data; boundary={self.boundary}"
        return [("Host", self.s3.authority), ("Content-Type", kind), ("Content-Length", str(len(body))), *(more or [])]

    def send(self, body: bytes | None = None, headers: Headers | None = None, connection: Connection | None = None, target: str | None = None) -> Response:
        """Posts the form, on the given or a new connection."""
        body = self.body() if body is None else body
        head = encode_head("POST", target or f"/{self.bucket}", self.headers(body, headers))
        if connection is not None:
            connection.send(head + body)
            return connection.read_response("POST")
        with self.s3.connect() as opened:
            opened.send(head + body)
            return opened.read_response("POST")


def field(name: str, value: str | bytes, boundary: str = BOUNDARY) -> bytes:
    """Returns the part of a field."""
    content = value.encode() if isinstance(value, str) else value
    return f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'.encode() + content + b"\r\n"


def file_part(content: bytes, filename: str = "a.txt", boundary: str = BOUNDARY) -> bytes:
    """Returns the part of the file."""
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{filename}"\r\nContent-Type: text/x-part\r\n\r\n'
    return head.encode() + content + b"\r\n"
