"""AWS Signature Version 4 for S3, implemented independently of the server.

It is written from the public description, so that tests do not repeat a mistake of the server.
`test_signature_differential.py` compares it with botocore's signer on random inputs.
"""

import datetime as dt
import hashlib
import hmac
from dataclasses import dataclass, field
from urllib.parse import unquote_to_bytes

ALGORITHM = "AWS4-HMAC-SHA256"
EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()
UNSIGNED_PAYLOAD = "UNSIGNED-PAYLOAD"
UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


@dataclass(frozen=True)
class Credential:
    """An access key and its secret."""

    access_key: str
    secret_key: str = field(repr=False)


@dataclass(frozen=True)
class Scope:
    """The credential scope and date of a signature. Tests can set each part to a wrong value."""

    amz_date: str
    region: str = "us-east-1"
    service: str = "s3"
    terminator: str = "aws4_request"
    date: str | None = None

    def text(self) -> str:
        """Returns the credential scope as it is signed."""
        return "/".join((self.date or self.amz_date[:8], self.region, self.service, self.terminator))


def amz_date(offset_seconds: float = 0) -> str:
    """Returns the shifted current time in the format of `x-amz-date`."""
    moment = dt.datetime.now(dt.timezone.utc) + dt.timedelta(seconds=offset_seconds)
    return moment.strftime("%Y%m%dT%H%M%SZ")


def uri_encode(data: bytes | str, *, keep_slash: bool = False) -> str:
    """Percent-encodes everything except unreserved characters, with upper-case digits."""
    raw = data.encode() if isinstance(data, str) else data
    return "".join(
        chr(byte) if byte in UNRESERVED or (keep_slash and byte == 0x2F) else f"%{byte:02X}" for byte in raw
    )


def split_target(target: str) -> tuple[str, list[tuple[bytes, bytes]]]:
    """Splits a request target into its raw path and decoded query pairs. `+` decodes to a space, as in forms."""
    path, _, query = target.partition("?")
    pairs = []
    for part in query.split("&") if query else []:
        name, _, value = part.partition("=")
        pairs.append((unquote_to_bytes(name.replace("+", " ")), unquote_to_bytes(value.replace("+", " "))))
    return path, pairs


def canonical_query(pairs: list[tuple[bytes, bytes]], leave_out: bytes | None = None) -> str:
    """Returns the encoded pairs, sorted by encoded name, then by encoded value."""
    encoded = sorted((uri_encode(name), uri_encode(value)) for name, value in pairs if name != leave_out)
    return "&".join(f"{name}={value}" for name, value in encoded)


def canonical_headers(headers: list[tuple[str, str]], signed: list[str]) -> str:
    """Returns the header block: lower-case names, values trimmed and folded, repeated headers joined in order."""
    lines = []
    for name in sorted(signed):
        values = [" ".join(value.split()) for sent, value in headers if sent.lower() == name]
        lines.append(f"{name}:{','.join(values)}\n")
    return "".join(lines)


def canonical_request(
    method: str, target: str, headers: list[tuple[str, str]], signed: list[str], payload: str
) -> str:
    """Returns the canonical request. The path is decoded and encoded once, and never normalised."""
    path, pairs = split_target(target)
    return "\n".join(
        (
            method,
            uri_encode(unquote_to_bytes(path), keep_slash=True),
            canonical_query(pairs, leave_out=b"X-Amz-Signature"),
            canonical_headers(headers, signed),
            ";".join(sorted(signed)),
            payload,
        )
    )


def signing_key(secret_key: str, scope: Scope) -> bytes:
    """Returns the signing key of a day, region and service."""
    key = ("AWS4" + secret_key).encode()
    for part in scope.text().split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key


def signature(secret_key: str, scope: Scope, canonical: str) -> str:
    """Returns the signature of the string to sign, in hex."""
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    to_sign = "\n".join((ALGORITHM, scope.amz_date, scope.text(), digest))
    return hmac.new(signing_key(secret_key, scope), to_sign.encode(), hashlib.sha256).hexdigest()


def default_signed(headers: list[tuple[str, str]]) -> list[str]:
    """Returns the headers that must be signed (host and every x-amz-*) and the content headers."""
    names = {name.lower() for name, _ in headers}
    return sorted(
        name for name in names if name in ("host", "content-type", "content-md5") or name.startswith("x-amz-")
    )


def sign_headers(
    method: str,
    target: str,
    headers: list[tuple[str, str]],
    credential: Credential,
    *,
    payload: str,
    scope: Scope,
    signed: list[str] | None = None,
) -> str:
    """Returns the value of `Authorization` for a request with complete headers."""
    names = default_signed(headers) if signed is None else signed
    value = signature(credential.secret_key, scope, canonical_request(method, target, headers, names, payload))
    return (
        f"{ALGORITHM} Credential={credential.access_key}/{scope.text()}, "
        f"SignedHeaders={';'.join(sorted(names))}, Signature={value}"
    )


def presign(
    method: str,
    target: str,
    host: str,
    credential: Credential,
    *,
    expires: int | str = 300,
    scope: Scope | None = None,
    headers: list[tuple[str, str]] | None = None,
    payload: str = UNSIGNED_PAYLOAD,
) -> str:
    """Returns a presigned target. `headers` are signed headers that the holder of the URL must send."""
    scope = scope or Scope(amz_date())
    all_headers = [("host", host), *(headers or [])]
    names = sorted({name.lower() for name, _ in all_headers})
    query = {
        "X-Amz-Algorithm": ALGORITHM,
        "X-Amz-Credential": f"{credential.access_key}/{scope.text()}",
        "X-Amz-Date": scope.amz_date,
        "X-Amz-Expires": str(expires),
        "X-Amz-SignedHeaders": ";".join(names),
    }
    glue = "&" if "?" in target else "?"
    target += glue + "&".join(f"{name}={uri_encode(value)}" for name, value in query.items())
    canonical = canonical_request(method, target, all_headers, names, payload)
    return f"{target}&X-Amz-Signature={signature(credential.secret_key, scope, canonical)}"
