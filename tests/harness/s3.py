"""A small S3 client for tests that sends exactly the given request plus its signature."""

import hashlib
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field

from . import sigv4
from .sigv4 import Credential, Scope, uri_encode
from .wire import Connection, Response, encode_head

Headers = list[tuple[str, str]]
NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"


def sha256_hex(body: bytes) -> str:
    """Returns the value of `x-amz-content-sha256` for a body."""
    return hashlib.sha256(body).hexdigest()


def md5_etag(body: bytes) -> str:
    """Returns the ETag of an object that was written by one PUT, with quotes."""
    return f'"{hashlib.md5(body).hexdigest()}"'


def multipart_etag(*bodies: bytes) -> str:
    """Returns the ETag of a multipart object: the MD5 of the parts' MD5 digests, then the number of parts."""
    digest = hashlib.md5(b"".join(hashlib.md5(body).digest() for body in bodies)).hexdigest()
    return f'"{digest}-{len(bodies)}"'


def object_target(bucket: str, key: str | bytes, query: str = "") -> str:
    """Returns the strictly encoded request target of a key."""
    return f"/{bucket}/{uri_encode(key, keep_slash=True)}" + (f"?{query}" if query else "")


def strip_namespaces(root: ElementTree.Element) -> ElementTree.Element:
    """Removes the namespaces from all tag names of a tree."""
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    return root


def xml(response: Response) -> ElementTree.Element:
    """Parses the body as XML. Fails if it is not well-formed."""
    return strip_namespaces(ElementTree.fromstring(response.body))


def error_code(response: Response) -> str:
    """Returns the `Code` of an error response, or an empty string."""
    if not response.body:
        return ""
    try:
        return xml(response).findtext("Code") or ""
    except ElementTree.ParseError:
        return ""


@dataclass
class Listing:
    """A ListObjectsV2 page, decoded if the response has an encoding type."""

    keys: list[str]
    prefixes: list[str]
    truncated: bool
    key_count: int
    token: str | None
    root: ElementTree.Element = field(repr=False)


def parse_listing(response: Response) -> Listing:
    """Parses a page of ListObjectsV2."""
    root = xml(response)
    assert root.tag == "ListBucketResult", root.tag
    encoded = root.findtext("EncodingType") == "url"

    def text(value: str | None) -> str:
        if not encoded or value is None:
            return value or ""
        return sigv4.unquote_to_bytes(value.replace("+", " ")).decode()

    return Listing(
        keys=[text(item.findtext("Key")) for item in root.findall("Contents")],
        prefixes=[text(item.findtext("Prefix")) for item in root.findall("CommonPrefixes")],
        truncated={"true": True, "false": False}[root.findtext("IsTruncated")],
        key_count=int(root.findtext("KeyCount")),
        token=root.findtext("NextContinuationToken"),
        root=root,
    )


class S3:
    """An S3 client for one endpoint and one credential."""

    def __init__(self, host: str, port: int, credential: Credential):
        self.host, self.port, self.credential = host, port, credential
        self.authority = f"{host}:{port}"

    def connect(self, **options: int | str) -> Connection:
        """Opens a connection to the data plane."""
        return Connection(self.host, self.port, **options)

    def signed_head(
        self,
        method: str,
        target: str,
        headers: Headers | None = None,
        body: bytes = b"",
        *,
        payload: str | None = None,
        scope: Scope | None = None,
        signed: list[str] | None = None,
        credential: Credential | None = None,
        content_length: int | None = None,
        host: str | None = None,
    ) -> Headers:
        """Returns all headers of a signed request. Headers that `headers` already contains are not added again."""
        scope = scope or Scope(sigv4.amz_date())
        payload = sha256_hex(body) if payload is None else payload
        complete = [("Host", host or self.authority), *(headers or [])]
        present = {name.lower() for name, _ in complete}
        if "x-amz-date" not in present and "date" not in present:
            complete.append(("x-amz-date", scope.amz_date))
        if "x-amz-content-sha256" not in present:
            complete.append(("x-amz-content-sha256", payload))
        authorization = sigv4.sign_headers(
            method, target, complete, credential or self.credential, payload=payload, scope=scope, signed=signed
        )
        complete.append(("Authorization", authorization))
        if method in ("PUT", "POST") and "content-length" not in present and "transfer-encoding" not in present:
            complete.append(("Content-Length", str(len(body) if content_length is None else content_length)))
        return complete

    def send_raw(self, method: str, target: str, headers: Headers, body: bytes = b"") -> Response:
        """Sends a request unchanged on a new connection."""
        with self.connect() as connection:
            connection.send(encode_head(method, target, headers) + body)
            return connection.read_response(method)

    def request(
        self,
        method: str,
        target: str,
        headers: Headers | None = None,
        body: bytes = b"",
        *,
        connection: Connection | None = None,
        **signing: object,
    ) -> Response:
        """Sends a signed request, on the given or a new connection."""
        head = self.signed_head(method, target, headers, body, **signing)
        if connection is None:
            return self.send_raw(method, target, head, body)
        connection.send(encode_head(method, target, head) + body)
        return connection.read_response(method)

    def presigned(self, method: str, target: str, **options: object) -> str:
        """Returns a presigned target for this endpoint."""
        credential = options.pop("credential", self.credential)
        return sigv4.presign(method, target, self.authority, credential, **options)

    def use_presigned(self, method: str, target: str, headers: Headers | None = None, body: bytes = b"") -> Response:
        """Sends a presigned request as curl does."""
        complete = [("Host", self.authority), *(headers or [])]
        if method in ("PUT", "POST"):
            complete.append(("Content-Length", str(len(body))))
        return self.send_raw(method, target, complete, body)

    def put(self, bucket: str, key: str | bytes, body: bytes = b"", headers: Headers | None = None) -> Response:
        """Sends a PUT that must succeed."""
        response = self.request("PUT", object_target(bucket, key), headers, body)
        assert response.status == 200, (response.status, response.body)
        return response

    def get(self, bucket: str, key: str | bytes, headers: Headers | None = None, query: str = "") -> Response:
        """Sends a GET and returns any response."""
        return self.request("GET", object_target(bucket, key, query), headers)

    def head(self, bucket: str, key: str | bytes, headers: Headers | None = None, query: str = "") -> Response:
        """Sends a HEAD and returns any response."""
        return self.request("HEAD", object_target(bucket, key, query), headers)

    def delete(self, bucket: str, key: str | bytes, headers: Headers | None = None) -> Response:
        """Sends a DELETE and returns any response."""
        return self.request("DELETE", object_target(bucket, key), headers)

    def list_page(self, bucket: str, connection: Connection | None = None, **parameters: str | int) -> Response:
        """Requests one page of ListObjectsV2. Parameter names use `_` for `-`."""
        query = "".join(
            f"&{name.replace('_', '-')}={uri_encode(str(value))}" for name, value in parameters.items()
        )
        return self.request("GET", f"/{bucket}?list-type=2{query}", connection=connection)

    def list(self, bucket: str, **parameters: str | int) -> Listing:
        """Returns one page of a list request that must succeed."""
        response = self.list_page(bucket, **parameters)
        assert response.status == 200, (response.status, response.body)
        return parse_listing(response)

    def list_all(self, bucket: str) -> dict[str, tuple[int, str]]:
        """Returns size and ETag of every object, from all pages."""
        found, token = {}, {}
        while True:
            page = self.list(bucket, encoding_type="url", **token)
            for key, item in zip(page.keys, page.root.findall("Contents"), strict=True):
                found[key] = (int(item.findtext("Size")), item.findtext("ETag"))
            if not page.truncated:
                return found
            token = {"continuation_token": page.token}

    def create_bucket(self, bucket: str) -> None:
        """Creates a bucket that must not exist yet."""
        response = self.request("PUT", f"/{bucket}")
        assert response.status == 200, (response.status, response.body)
