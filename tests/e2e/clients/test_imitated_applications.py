"""Applications that no test machine can run, imitated: the kinds of requests that they and their S3 libraries send.

Each has the account that `cairn app create` makes, and the public prefixes that its page in `docs/applications` names. This is our
code, written from their sources and documents: it shows that these requests work, not that the applications do. All against the
extended mode, which their pages ask for.
"""

import base64
import hashlib
import re
from dataclasses import dataclass

import pytest
import requests
from botocore.client import BaseClient

from harness.accounts import client
from harness.boto import PART_BYTES, make_client, random_bytes, refused, upload_in_parts
from harness.cli import Cli
from harness.management import expect
from harness.s3 import S3, object_target
from harness.server import Cairn
from harness.sigv4 import UNSIGNED_PAYLOAD

SECONDS = 30
SITE = "https://videos.example.org"
LARGE = [random_bytes("an application", PART_BYTES), b"the end"]
SMALL = b"some bytes"


@dataclass
class Application:
    """An application with its account, its bucket of the same name, and what its visitors do."""

    store: Cairn
    bucket: str
    s3: S3
    boto: BaseClient

    def visit(self, key: str = "", method: str = "GET", **headers: str) -> requests.Response:
        """Sends a request without a signature, as a browser does."""
        return requests.request(method, f"{self.store.endpoint}/{self.bucket}/{key}", headers=headers, timeout=SECONDS)

    def make_public(self, *prefixes: str) -> None:
        """Sets rules as `cairn public set` does."""
        rules = [{"prefix": prefix, "read": True, "list": False} for prefix in prefixes]
        expect(self.store.admin.put(f"/buckets/{self.bucket}/public-access", {"rules": rules, "blocked": False}), 200)

    def put(self, key: str, body: bytes = SMALL, **options: object) -> dict:
        """Uploads an object."""
        return self.boto.put_object(Bucket=self.bucket, Key=key, Body=body, **options)

    def get(self, key: str, **options: object) -> bytes:
        """Reads an object, or a range of it."""
        return self.boto.get_object(Bucket=self.bucket, Key=key, **options)["Body"].read()

    def keys(self, prefix: str = "") -> list[str]:
        """Lists the keys below a prefix."""
        return [item["Key"] for item in self.boto.list_objects_v2(Bucket=self.bucket, Prefix=prefix).get("Contents", [])]

    def remove(self, *keys: str) -> None:
        """Deletes objects in one request."""
        answer = self.boto.delete_objects(Bucket=self.bucket, Delete={"Objects": [{"Key": key} for key in keys], "Quiet": True})
        assert "Errors" not in answer


@pytest.fixture
def application(extended_store: Cairn, request: pytest.FixtureRequest) -> Application:
    """The application that a test is about, made by the command of its page."""
    name = re.sub(r"\W|_", "-", request.node.name.removeprefix("test_")).strip("-")
    cli = Cli(extended_store.management, extended_store.secrets.system_token)
    made = cli.json("app", "create", name, "--bucket", name)
    s3 = client(extended_store, made)
    return Application(extended_store, name, s3, make_client(s3))


def md5(body: bytes) -> str:
    """The value of Content-MD5."""
    return base64.b64encode(hashlib.md5(body).digest()).decode()


def test_nextcloud(application: Application):
    """Primary storage: uploads with a private ACL, whole and in parts, reads of ranges, copies, single deletes."""
    bucket = application.bucket
    assert application.boto.head_bucket(Bucket=bucket)["ResponseMetadata"]["HTTPStatusCode"] == 200
    application.put("urn:oid:1", ACL="private", ContentType="application/octet-stream", StorageClass="STANDARD")
    upload_in_parts(application.boto, bucket, "urn:oid:2", LARGE, ACL="private", ContentType="video/mp4")
    assert application.get("urn:oid:2", Range=f"bytes={PART_BYTES - 1}-{PART_BYTES + 1}") == LARGE[0][-1:] + LARGE[1][:2]
    application.boto.copy_object(Bucket=bucket, Key="urn:oid:3", CopySource=f"{bucket}/urn:oid:2", ACL="private")
    copied = application.boto.create_multipart_upload(Bucket=bucket, Key="urn:oid:4", ACL="private")["UploadId"]
    names = {"Bucket": bucket, "Key": "urn:oid:4", "UploadId": copied}
    part = application.boto.upload_part_copy(**names, PartNumber=1, CopySource=f"{bucket}/urn:oid:2")["CopyPartResult"]
    application.boto.complete_multipart_upload(**names, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]})
    assert application.get("urn:oid:3") == application.get("urn:oid:4") == b"".join(LARGE)
    application.boto.delete_object(Bucket=bucket, Key="urn:oid:1")
    with refused(404, "404"):
        application.boto.head_object(Bucket=bucket, Key="urn:oid:1")
    assert application.visit("urn:oid:2").status_code == 403


def test_mastodon(application: Application):
    """Media are public: with no ACL, with an empty one, with `public-read`. ACLs change nothing; deletes come in batches."""
    application.make_public("")
    application.put("media_attachments/1/original/a.png", ContentType="image/png", CacheControl="public, max-age=315576000, immutable")
    application.put("media_attachments/1/small/a.png", ACL="public-read")
    empty = application.s3.put(application.bucket, "accounts/avatars/1.png", SMALL, [("x-amz-acl", "")])
    assert empty.status == 200, empty.body
    for key in application.keys():
        assert (application.visit(key).status_code, application.visit(key).content) == (200, SMALL)
    assert application.visit("media_attachments/1/original/a.png").headers["Cache-Control"] == "public, max-age=315576000, immutable"
    assert application.visit().status_code == 403
    # What a suspended account has posted.
    application.boto.put_object_acl(Bucket=application.bucket, Key="accounts/avatars/1.png", ACL="private")
    assert application.visit("accounts/avatars/1.png").status_code == 200
    application.remove(*application.keys())
    assert application.keys() == [] and application.visit("accounts/avatars/1.png").status_code == 403


def test_peertube(application: Application):
    """Players read public playlists in ranges from another origin; the files of private videos are for PeerTube alone."""
    application.make_public("streaming-playlists/", "web-videos/")
    rule = {"allowed_origins": [SITE], "allowed_methods": ["GET", "HEAD"], "allowed_headers": ["range"], "expose_headers": ["Content-Range"], "max_age_seconds": 60}
    expect(application.store.admin.put(f"/buckets/{application.bucket}/cors", {"rules": [rule]}), 200)
    video = "streaming-playlists/hls/1/1-720-fragmented.mp4"
    upload_in_parts(application.boto, application.bucket, video, LARGE, ContentType="video/mp4", ACL="public-read")
    application.put("streaming-playlists/hls/1/master.m3u8", b"#EXTM3U")
    application.put("original-video-files/1.mp4")
    preflight = application.visit(video, "OPTIONS", **{"Origin": SITE, "Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "range"})
    assert (preflight.status_code, preflight.headers["Access-Control-Allow-Origin"]) == (200, SITE)
    piece = application.visit(video, Range="bytes=10-19", Origin=SITE)
    assert (piece.status_code, piece.content, piece.headers["Access-Control-Allow-Origin"]) == (206, LARGE[0][10:20], SITE)
    assert "Content-Range" in piece.headers["Access-Control-Expose-Headers"] and piece.headers["Content-Type"] == "video/mp4"
    assert application.visit(video, "HEAD").headers["Content-Length"] == str(sum(map(len, LARGE)))
    assert application.visit("original-video-files/1.mp4").status_code == 403
    with refused(400, "AccessControlListNotSupported"):
        application.put("original-video-files/2.mp4", ACL="public-read")
    for key in application.keys("streaming-playlists/hls/1/"):
        application.boto.delete_object(Bucket=application.bucket, Key=key)
    assert application.visit(video).status_code == 403


def test_outline(application: Application):
    """Browsers upload with forms: attachments with the ACL `private`, avatars with `public-read`; attachments are read by links."""
    application.make_public("avatars/", "public/")
    for key, acl in (("uploads/u/1/a.pdf", "private"), ("avatars/u/1/me.png", "public-read")):
        fields = {"Cache-Control": "max-age=31557600", "Content-Type": "application/pdf", "acl": acl, "Content-Disposition": "attachment"}
        conditions = [["content-length-range", 0, 1000], *({name: value} for name, value in fields.items())]
        post = application.boto.generate_presigned_post(application.bucket, key, Fields=fields, Conditions=conditions, ExpiresIn=3600)
        answer = requests.post(post["url"], data=post["fields"], files={"file": ("a", SMALL)}, timeout=SECONDS)
        assert answer.status_code == 204, answer.text
        answer = requests.post(post["url"], data=post["fields"], files={"file": ("a", b"x" * 1001)}, timeout=SECONDS)
        assert answer.status_code == 400
    assert application.visit("uploads/u/1/a.pdf").status_code == 403 and application.visit("avatars/u/1/me.png").content == SMALL
    link = application.boto.generate_presigned_url("get_object", Params={"Bucket": application.bucket, "Key": "uploads/u/1/a.pdf"}, ExpiresIn=60)
    answer = requests.get(link, timeout=SECONDS)
    assert (answer.content, answer.headers["Content-Disposition"]) == (SMALL, "attachment")


def test_django_public_media(application: Application):
    """`default_acl` with `public-read`, a HEAD before each name is used, links without a signature."""
    application.make_public("assets/")
    with refused(404, "404"):
        application.boto.head_object(Bucket=application.bucket, Key="assets/logo.svg")
    application.put("assets/logo.svg", ACL="public-read", ContentType="image/svg+xml")
    answer = application.visit("assets/logo.svg")
    assert (answer.content, answer.headers["Content-Type"]) == (SMALL, "image/svg+xml")
    application.put("private/report.pdf")
    assert application.visit("private/report.pdf").status_code == 403


def test_rails(application: Application):
    """Active Storage: a browser uploads by a signed PUT with its MD5, readers get links with a name, variants go in a batch."""
    names = {"Bucket": application.bucket, "Key": "x7k2"}
    headers = {"Content-MD5": md5(SMALL), "Content-Type": "image/png", "Content-Disposition": 'inline; filename="a.png"'}
    told = {"ContentMD5": md5(SMALL), "ContentType": "image/png", "ContentDisposition": headers["Content-Disposition"]}
    link = application.boto.generate_presigned_url("put_object", Params=names | told, ExpiresIn=300)
    assert requests.put(link, SMALL, headers=headers, timeout=SECONDS).status_code == 200
    assert requests.put(link, b"other bytes", headers=headers, timeout=SECONDS).status_code == 400
    link = application.boto.generate_presigned_url("get_object", Params=names | {"ResponseContentDisposition": 'attachment; filename="b.png"'}, ExpiresIn=300)
    answer = requests.get(link, timeout=SECONDS)
    assert (answer.content, answer.headers["Content-Disposition"]) == (SMALL, 'attachment; filename="b.png"')
    for variant in ("a", "b", "c"):
        upload_in_parts(application.boto, application.bucket, f"variants/x7k2/{variant}", [SMALL])
    application.remove(*application.keys("variants/x7k2/"))
    assert application.keys() == ["x7k2"]


def test_laravel(application: Application):
    """Flysystem sends an ACL with everything, asks for the ACL before it copies, and deletes folders in batches."""
    application.make_public("public/")
    application.put("private/a.txt", ACL="private", ContentType="text/plain")
    application.put("public/a.txt", ACL="public-read", ContentType="text/plain")
    grants = application.boto.get_object_acl(Bucket=application.bucket, Key="private/a.txt")["Grants"]
    assert [grant["Permission"] for grant in grants] == ["FULL_CONTROL"]
    for key, acl in (("private/b.txt", "private"), ("public/b.txt", "public-read")):
        application.boto.copy_object(Bucket=application.bucket, Key=key, CopySource=f"{application.bucket}/{key[:-5]}a.txt", ACL=acl, MetadataDirective="COPY")
    assert application.visit("public/b.txt").content == SMALL and application.visit("private/b.txt").status_code == 403
    with refused(400, "AccessControlListNotSupported"):
        application.put("private/c.txt", ACL="public-read")
    application.remove(*application.keys("public/"))
    assert application.keys() == ["private/a.txt", "private/b.txt"]


def test_wordpress(application: Application):
    """The plugin S3 Uploads uploads with `public-read`, which a rule must allow first."""
    with refused(400, "AccessControlListNotSupported"):
        application.put("uploads/2026/11/a.jpg", ACL="public-read")
    application.make_public("uploads/")
    application.put("uploads/2026/11/a.jpg", ACL="public-read", ContentType="image/jpeg")
    assert application.visit("uploads/2026/11/a.jpg").content == SMALL
    folders = application.boto.list_objects_v2(Bucket=application.bucket, Prefix="uploads/2026/", Delimiter="/")["CommonPrefixes"]
    assert [item["Prefix"] for item in folders] == ["uploads/2026/11/"]
    application.boto.delete_object(Bucket=application.bucket, Key="uploads/2026/11/a.jpg")


def test_gitlab(application: Application):
    """Workhorse uploads to signed addresses, whole and in parts; Rails moves the result in pieces and hands out links with a name."""
    bucket = application.bucket

    def signed(call: str, **parameters: object) -> str:
        return application.boto.generate_presigned_url(call, Params={"Bucket": bucket, **parameters}, ExpiresIn=900)

    assert requests.put(signed("put_object", Key="uploads/tmp/1"), SMALL, timeout=SECONDS).status_code == 200
    key = "artifacts/tmp/uploads/2"
    upload = application.boto.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]
    tags = [requests.put(signed("upload_part", Key=key, UploadId=upload, PartNumber=number), body, timeout=SECONDS).headers["ETag"] for number, body in enumerate(LARGE, 1)]
    parts = "".join(f"<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>" for number, tag in enumerate(tags, 1))
    document = f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>"
    assert requests.post(signed("complete_multipart_upload", Key=key, UploadId=upload), document, timeout=SECONDS).status_code == 200
    moved = application.boto.create_multipart_upload(Bucket=bucket, Key="artifacts/2")["UploadId"]
    names = {"Bucket": bucket, "Key": "artifacts/2", "UploadId": moved}
    spans = (f"bytes=0-{PART_BYTES - 1}", f"bytes={PART_BYTES}-{PART_BYTES + len(LARGE[1]) - 1}")
    copied = [application.boto.upload_part_copy(**names, PartNumber=number, CopySource=f"{bucket}/{key}", CopySourceRange=span) for number, span in enumerate(spans, 1)]
    tags = [{"PartNumber": number, "ETag": part["CopyPartResult"]["ETag"]} for number, part in enumerate(copied, 1)]
    application.boto.complete_multipart_upload(**names, MultipartUpload={"Parts": tags})
    application.boto.delete_object(Bucket=bucket, Key=key)
    answer = requests.get(signed("get_object", Key="artifacts/2", ResponseContentDisposition='attachment; filename="a.zip"'), timeout=SECONDS)
    assert (answer.content, answer.headers["Content-Disposition"]) == (b"".join(LARGE), 'attachment; filename="a.zip"')
    assert requests.head(signed("head_object", Key="uploads/tmp/1"), timeout=SECONDS).status_code == 200


def test_wal_g(application: Application):
    """Segments and backups in parts, sentinels, lists of folders; old backups go in batches."""
    for segment in range(3):
        upload_in_parts(application.boto, application.bucket, f"main/wal_005/00000001000000000000000{segment}.br", [SMALL])
    upload_in_parts(application.boto, application.bucket, "main/basebackups_005/base_1/tar_partitions/part_001.tar.br", LARGE)
    application.put("main/basebackups_005/base_1_backup_stop_sentinel.json", b"{}", StorageClass="STANDARD")
    page = application.boto.list_objects_v2(Bucket=application.bucket, Prefix="main/basebackups_005/", Delimiter="/")
    assert [item["Key"] for item in page["Contents"]] == ["main/basebackups_005/base_1_backup_stop_sentinel.json"]
    assert [item["Prefix"] for item in page["CommonPrefixes"]] == ["main/basebackups_005/base_1/"]
    assert application.get("main/basebackups_005/base_1/tar_partitions/part_001.tar.br") == b"".join(LARGE)
    application.remove(*application.keys("main/wal_005/"))
    assert len(application.keys()) == 2


@pytest.mark.parametrize("name", ["kopia", "thanos", "loki", "juicefs"])
def test_blobs(application: Application, name: str):
    """Blobs that are written once, with an MD5 (Kopia, Thanos) or an unsigned body (JuiceFS), read in ranges, listed, deleted."""
    key = f"{name}/chunks/01ABC/index"
    if name in ("kopia", "thanos"):
        application.put(key, ContentMD5=md5(SMALL), ContentType="application/octet-stream")
    elif name == "juicefs":
        assert application.s3.request("PUT", object_target(application.bucket, key), [("x-amz-meta-Checksum", "1")], SMALL, payload=UNSIGNED_PAYLOAD).status == 200
    else:
        application.put(key)
    upload_in_parts(application.boto, application.bucket, f"{name}/chunks/01ABC/large", LARGE)
    assert application.get(key, Range="bytes=5-9") == SMALL[5:10]
    page = application.boto.list_objects_v2(Bucket=application.bucket, Prefix=f"{name}/chunks/", Delimiter="/")
    assert [item["Prefix"] for item in page["CommonPrefixes"]] == [f"{name}/chunks/01ABC/"]
    assert application.boto.head_object(Bucket=application.bucket, Key=key)["ContentLength"] == len(SMALL)
    with refused(404, "NoSuchKey"):
        application.get(f"{name}/missing")
    for stored in application.keys(f"{name}/"):
        application.boto.delete_object(Bucket=application.bucket, Key=stored)
    assert application.keys() == []


def test_clickhouse(application: Application):
    """A disk: small and large parts of tables, ranges, copies, and old parts that go in batches."""
    bucket = application.bucket
    application.put("disk/abc/small")
    upload_in_parts(application.boto, bucket, "disk/abc/large", LARGE)
    assert application.get("disk/abc/large", Range="bytes=100-199") == LARGE[0][100:200]
    application.boto.copy_object(Bucket=bucket, Key="disk/backup", CopySource=f"{bucket}/disk/abc/large", MetadataDirective="REPLACE")
    application.remove("disk/abc/small", "disk/abc/large", "disk/abc/never")
    assert application.keys() == ["disk/backup"]
