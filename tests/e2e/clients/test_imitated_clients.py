"""Clients that no test machine can run, imitated: the kinds of requests that their sources send, in their order.

Proxmox Backup Server (its own client in Rust), mountpoint-s3 (needs FUSE and the AWS Common Runtime) and Velero's plugin for AWS
(needs a cluster). This is our code, written from their sources of 2026: it shows that their requests work, not that they do.
All against the extended mode; what the strict mode answers is in `test_not_implemented.py`.
"""

import base64
import hashlib
import urllib.request
from collections.abc import Callable
from xml.sax.saxutils import escape

import pytest
from awscrt.checksums import crc32c
from botocore.client import BaseClient

from harness.aws_chunked import UNSIGNED_TRAILER, ChunkedUpload
from harness.boto import PART_BYTES, make_client, random_bytes, refused
from harness.expect import assert_error
from harness.s3 import S3, Headers, md5_etag, object_target, parse_listing, xml
from harness.server import Cairn
from harness.sigv4 import uri_encode
from harness.wire import Response

BACKUP_HOST = "backup.example"
CHUNK = random_bytes("a chunk of a backup", 1 << 20)


@pytest.fixture(scope="module")
def extended_store(make_module_store: Callable[..., Cairn]) -> Cairn:
    """Starts a server with a name below which buckets are hosts."""
    return make_module_store(SERVICE_S3_COMPATIBILITY="extended", SERVICE_SERVER_BASE_HOSTS=BACKUP_HOST).start()


# Proxmox Backup Server


class BackupServer:
    """Sends what Proxmox Backup Server sends: the SHA-256 and the MD5 of every body, with either style of addressing."""

    def __init__(self, s3: S3, bucket: str, *, path_style: bool):
        self.s3, self.bucket, self.path_style = s3, bucket, path_style

    def send(self, method: str, key: str, headers: Headers | None = None, body: bytes = b"", query: str = "") -> Response:
        """Sends a request about a key, or about the bucket if the key is empty."""
        headers = list(headers or [])
        if body:
            headers.append(("Content-MD5", base64.b64encode(hashlib.md5(body).digest()).decode()))
        place = f"/{self.bucket}/" if self.path_style else "/"
        host = None if self.path_style else f"{self.bucket}.{BACKUP_HOST}"
        return self.s3.request(method, f"{place}{uri_encode(key, keep_slash=True)}{query}", headers, body, host=host)

    def put(self, key: str, body: bytes, *, replace: bool) -> int:
        """Uploads an object; returns the status."""
        headers = [("Content-Type", "application/octet-stream")] + ([] if replace else [("If-None-Match", "*")])
        return self.send("PUT", key, headers, body).status

    def listed(self, prefix: str) -> list[str]:
        """Lists all keys below a prefix, page by page."""
        keys, token = [], None
        while True:
            query = f"?list-type=2&prefix={uri_encode(prefix)}" + (f"&continuation-token={uri_encode(token)}" if token else "")
            page = parse_listing(self.send("GET", "", query=query))
            keys += page.keys
            if not page.truncated:
                return keys
            token = page.token

    def delete(self, keys: list[str]) -> list[str]:
        """Deletes many objects; returns the keys that the answer names as deleted."""
        named = "".join(f"<Object><Key>{escape(key)}</Key></Object>" for key in keys)
        body = f'<Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{named}</Delete>'.encode()
        root = xml(self.send("POST", "", body=body, query="?delete"))
        assert root.find("Error") is None
        return [item.findtext("Key") for item in root.findall("Deleted")]


@pytest.fixture(params=["path style", "virtual-hosted"])
def backup_server(request: pytest.FixtureRequest, extended: S3, extended_bucket: str) -> BackupServer:
    """Returns the imitation, in both styles of addressing."""
    return BackupServer(extended, extended_bucket, path_style=request.param == "path style")


def test_proxmox_stores_a_chunk_once(backup_server: BackupServer):
    """A chunk that exists is not replaced, which it takes for success; index files and owners are replaced."""
    assert backup_server.send("HEAD", "").status == 200
    chunk = f"store/.chunks/0f1e/{hashlib.sha256(CHUNK).hexdigest()}"
    assert backup_server.put(chunk, CHUNK, replace=False) == 200
    assert backup_server.put(chunk, b"other", replace=False) == 412
    head, got = backup_server.send("HEAD", chunk), backup_server.send("GET", chunk)
    assert (head.get("content-length"), got.body, got.get("etag")) == (str(len(CHUNK)), CHUNK, md5_etag(CHUNK))
    assert backup_server.send("HEAD", f"{chunk}.0.bad").status == 404
    assert [backup_server.put("store/ct/100/owner", body, replace=True) for body in (b"root@pam", b"me@pbs")] == [200, 200]
    assert backup_server.send("GET", "store/ct/100/owner").body == b"me@pbs"
    # A file that is in use: the mark is an empty object.
    assert backup_server.put("store/.in-use", b"", replace=True) == 200
    assert backup_server.send("DELETE", "store/.in-use").status == 204


def test_proxmox_renames_bad_chunks_and_refuses_damaged_uploads(backup_server: BackupServer):
    """A rename is a copy with new metadata and a delete. A body that does not have its MD5 is refused."""
    key = "store/.chunks/00aa/chunk +ü"
    assert backup_server.put(key, CHUNK, replace=False) == 200
    source = uri_encode(f"{backup_server.bucket}/{key}", keep_slash=True)
    told = [("x-amz-copy-source", source), ("Content-Type", "application/octet-stream"), ("x-amz-metadata-directive", "REPLACE")]
    copied = backup_server.send("PUT", f"{key}.0.bad", told)
    assert (copied.status, xml(copied).findtext("ETag")) == (200, md5_etag(CHUNK)) and xml(copied).findtext("LastModified")
    assert backup_server.send("DELETE", key).status == 204
    assert backup_server.listed("store/.chunks/") == [f"{key}.0.bad"]
    wrong = base64.b64encode(hashlib.md5(b"other").digest()).decode()
    target = object_target(backup_server.bucket, "damaged")
    assert_error(backup_server.s3.request("PUT", target, [("Content-MD5", wrong)], CHUNK), 400, "BadDigest")


def test_proxmox_lists_and_deletes_by_prefix(backup_server: BackupServer, extended: S3):
    """More snapshots than a page has; each page is deleted with one request, while the list goes on."""
    with extended.connect() as connection:
        for number in range(1003):
            target = object_target(backup_server.bucket, f"store/vm/1/{number:05}")
            assert extended.request("PUT", target, connection=connection).status == 200
    backup_server.put("store/vm/10/stays", b"x", replace=True)
    keys = backup_server.listed("store/vm/1/")
    assert len(keys) == 1003
    for first in (0, 1000):
        assert backup_server.delete(keys[first : first + 1000]) == keys[first : first + 1000]
    assert backup_server.listed("store/") == ["store/vm/10/stays"]


# mountpoint-s3


def crc(body: bytes) -> str:
    """Returns the CRC-32C of a body as a header value."""
    return base64.b64encode(crc32c(body).to_bytes(4, "big")).decode()


def mount_upload(s3: S3, bucket: str, key: str, parts: list[bytes]) -> Response:
    """Uploads as mountpoint-s3 does: always in parts, each with a CRC-32C behind its unsigned body."""
    target = object_target(bucket, key)
    begun = s3.request("POST", f"{target}?uploads", [("x-amz-checksum-algorithm", "CRC32C"), ("x-amz-checksum-type", "COMPOSITE")])
    upload, named = xml(begun).findtext("UploadId"), ""
    for number, body in enumerate(parts, 1):
        query = f"partNumber={number}&uploadId={upload}"
        trailer = ("x-amz-checksum-crc32c", crc(body))
        sent = ChunkedUpload(s3, bucket, key, body, UNSIGNED_TRAILER, query=query, trailer=trailer).send()
        assert (sent.status, sent.get("x-amz-checksum-crc32c")) == (200, crc(body))
        named += f"<Part><ETag>{escape(sent.get('etag'))}</ETag><ChecksumCRC32C>{crc(body)}</ChecksumCRC32C><PartNumber>{number}</PartNumber></Part>"
    document = f'<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{named}</CompleteMultipartUpload>'
    return s3.request("POST", f"{target}?uploadId={upload}", body=document.encode())


def lookup(s3: S3, bucket: str, name: str) -> str | None:
    """Finds out what a name is: by a HEAD of the key and a list of one key below it."""
    head = s3.request("HEAD", object_target(bucket, name))
    page = s3.list(bucket, prefix=f"{name}/", delimiter="/", **{"max-keys": 1})
    return "folder" if page.keys or page.prefixes else "file" if head.status == 200 else None


@pytest.mark.parametrize("sizes", [[0], [10], [PART_BYTES, 321], [PART_BYTES, PART_BYTES, 1]], ids=str)
def test_mountpoint_writes_and_reads(extended: S3, extended_bucket: str, sizes: list[int]):
    """Files of any length, an empty one in one empty part; reads are ranges of the version that was opened."""
    parts = [random_bytes(f"mount {number}", size) for number, size in enumerate(sizes)]
    content = b"".join(parts)
    done = mount_upload(extended, extended_bucket, "dir/file", parts)
    etag = xml(done).findtext("ETag")
    assert done.status == 200 and etag.endswith(f'-{len(parts)}"')
    target = object_target(extended_bucket, "dir/file")
    head = extended.request("HEAD", target, [("x-amz-checksum-mode", "ENABLED")])
    assert (head.get("content-length"), head.get("etag"), head.get("x-amz-checksum-type")) == (str(len(content)), etag, "COMPOSITE")
    read = b""
    while len(read) < len(content):
        span = [("Range", f"bytes={len(read)}-{min(len(read) + (3 << 20), len(content)) - 1}"), ("If-Match", etag)]
        piece = extended.request("GET", target, span)
        assert piece.status == 206
        read += piece.body
    assert read == content
    asked = [("x-amz-object-attributes", "ETag,Checksum,ObjectParts,StorageClass,ObjectSize"), ("x-amz-max-parts", "1000")]
    found = xml(extended.request("GET", f"{target}?attributes", asked))
    assert [part.findtext("ChecksumCRC32C") for part in found.findall("ObjectParts/Part")] == [crc(part) for part in parts]
    assert [int(part.findtext("Size")) for part in found.findall("ObjectParts/Part")] == sizes
    assert found.findtext("ObjectSize") == str(len(content))


def test_mountpoint_notices_that_a_file_was_replaced(extended: S3, extended_bucket: str):
    """An open file whose object was replaced is no longer read."""
    etag = xml(mount_upload(extended, extended_bucket, "k", [b"first"])).findtext("ETag")
    extended.put(extended_bucket, "k", b"second")
    target = object_target(extended_bucket, "k")
    assert_error(extended.request("GET", target, [("Range", "bytes=0-4"), ("If-Match", etag)]), 412, "PreconditionFailed")


def test_mountpoint_lists_folders(extended: S3, extended_bucket: str):
    """Names are looked up, folders listed with continuation, files removed."""
    for key in ("a/1", "a/b/2", "a/b/3", "c"):
        mount_upload(extended, extended_bucket, key, [key.encode()])
    assert [lookup(extended, extended_bucket, name) for name in ("a", "a/b", "c", "a/1", "d")] == ["folder", "folder", "file", "file", None]
    page = extended.list(extended_bucket, prefix="a/", delimiter="/", **{"max-keys": 1})
    rest = extended.list(extended_bucket, prefix="a/", delimiter="/", **{"continuation-token": page.token})
    assert (page.keys + rest.keys, page.prefixes + rest.prefixes) == (["a/1"], ["a/b/"])
    assert extended.request("DELETE", object_target(extended_bucket, "a/1")).status == 204
    assert lookup(extended, extended_bucket, "a/1") is None


def test_mountpoint_learns_what_is_not_there(extended: S3, extended_bucket: str):
    """Appending and renaming are of directory buckets: 501, which mountpoint-s3 reports as not supported. Nothing changes."""
    extended.put(extended_bucket, "k", b"first")
    checksum = ("x-amz-checksum-crc32c", crc(b"more"))
    appended = extended.request("PUT", object_target(extended_bucket, "k"), [("x-amz-write-offset-bytes", "5"), checksum], b"more")
    assert_error(appended, 501, "NotImplemented")
    renamed = extended.request("PUT", object_target(extended_bucket, "to", "renameObject"), [("x-amz-rename-source", f"/{extended_bucket}/k")])
    assert_error(renamed, 501, "NotImplemented")
    assert extended.list_all(extended_bucket) == {"k": (5, md5_etag(b"first"))}


# Velero


@pytest.fixture
def velero(extended: S3) -> BaseClient:
    """Returns an SDK with the defaults of the plugin: CRC-32 of every upload, path style."""
    return make_client(extended, request_checksum_calculation="when_supported", response_checksum_validation="when_supported")


def test_velero_keeps_a_backup(velero: BaseClient, extended_bucket: str):
    """Uploads with tags and a CRC-32, looks whether a file exists, lists folders and files, reads, removes."""
    names = {"Bucket": extended_bucket}
    files = {f"backups/{name}/{file}": file.encode() for name in ("daily-1", "daily-2") for file in ("velero-backup.json", "a.tar.gz")}
    for key, body in files.items():
        put = velero.put_object(**names, Key=key, Body=body, Tagging="team=a%20b&velero=yes", ChecksumAlgorithm="CRC32")
        assert put["ChecksumCRC32"]
    with refused(404, "404"):
        velero.head_object(**names, Key="backups/daily-1/missing")
    pages = velero.get_paginator("list_objects_v2").paginate(**names, Prefix="backups/", Delimiter="/")
    assert [item["Prefix"] for page in pages for item in page["CommonPrefixes"]] == ["backups/daily-1/", "backups/daily-2/"]
    pages = velero.get_paginator("list_objects_v2").paginate(**names, Prefix="backups/daily-1/")
    keys = [item["Key"] for page in pages for item in page["Contents"]]
    got = velero.get_object(**names, Key=keys[0])
    assert (got["Body"].read(), got["TagCount"]) == (files[keys[0]], 2)
    assert velero.get_object_tagging(**names, Key=keys[0])["TagSet"] == [{"Key": "team", "Value": "a b"}, {"Key": "velero", "Value": "yes"}]
    for key in sorted(keys, reverse=True):
        velero.delete_object(**names, Key=key)
    assert velero.list_objects_v2(**names)["KeyCount"] == 2


def test_velero_uploads_in_parts_and_shares_logs(velero: BaseClient, extended_bucket: str):
    """Archives of unknown length go in parts, with tags; logs are downloaded with a presigned URL."""
    names = {"Bucket": extended_bucket, "Key": "backups/x/x.tar.gz"}
    bodies = [random_bytes("velero", PART_BYTES), b"end"]
    upload = velero.create_multipart_upload(**names, Tagging="velero=yes", ChecksumAlgorithm="CRC32")["UploadId"]
    parts = []
    for number, body in enumerate(bodies, 1):
        sent = velero.upload_part(**names, UploadId=upload, PartNumber=number, Body=body, ChecksumAlgorithm="CRC32")
        parts.append({"PartNumber": number, "ETag": sent["ETag"], "ChecksumCRC32": sent["ChecksumCRC32"]})
    velero.complete_multipart_upload(**names, UploadId=upload, MultipartUpload={"Parts": parts})
    assert velero.get_object(**names, ChecksumMode="ENABLED")["TagCount"] == 1
    url = velero.generate_presigned_url("get_object", Params=names, ExpiresIn=600)
    with urllib.request.urlopen(url, timeout=30) as answer:
        assert answer.read() == b"".join(bodies)
