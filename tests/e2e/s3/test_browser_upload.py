"""Presigned uploads by a real browser from a page of another origin.

The file comes from an `<input type=file>` and is sent with `fetch` and with `XMLHttpRequest`. The tests check what
JavaScript sees and what is stored. A refusal by CORS is a TypeError without a status. A refusal by the store has a
status that the page can read.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from botocore.client import BaseClient

from harness.boto import random_bytes
from harness.browser import Browser, chromium, web_site
from harness.s3 import S3, error_code, md5_etag, object_target, sha256_hex
from harness.sigv4 import Scope, amz_date

BODY = random_bytes("picked by a person", 3_000_001)
TYPE = "image/png"

# Sends the selected file with this content type. Returns what the page can read of the response.
UPLOAD = """async (url, type) => {
    const file = document.getElementById("file").files[0];
    try {
        const answer = await fetch(url, {method: "PUT", body: file, headers: {"Content-Type": type}});
        const text = await answer.text();
        return {
            status: answer.status, etag: answer.headers.get("ETag"), version: answer.headers.get("x-amz-version-id"),
            hidden: answer.headers.get("x-amz-request-id"), code: (text.match(/<Code>(.*)<.Code>/) || [])[1] || null,
        };
    } catch (error) { return {error: error.name}; }
}"""
# The same with progress events, as upload widgets do it.
UPLOAD_WITH_PROGRESS = """async (url, type) => new Promise(done => {
    const request = new XMLHttpRequest(), file = document.getElementById("file").files[0];
    let sent = 0;
    request.upload.onprogress = event => { sent = event.loaded; };
    request.onload = () => done({status: request.status, etag: request.getResponseHeader("ETag"), sent});
    request.onerror = () => done({error: "network", status: request.status});
    request.open("PUT", url);
    request.setRequestHeader("Content-Type", type);
    request.send(file);
})"""
DOWNLOAD = """async (url, range) => {
    try {
        const answer = await fetch(url, range ? {headers: {Range: range}} : {});
        const digest = await crypto.subtle.digest("SHA-256", await answer.arrayBuffer());
        const hex = Array.from(new Uint8Array(digest), byte => byte.toString(16).padStart(2, "0")).join("");
        return {status: answer.status, digest: hex, etag: answer.headers.get("ETag")};
    } catch (error) { return {error: error.name}; }
}"""


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """The origin of the page."""
    with web_site() as origin:
        yield origin


@pytest.fixture(scope="module")
def browser(run_folder: Path) -> Iterator[Browser]:
    """One browser for all tests of this file."""
    with chromium(run_folder / "browser") as opened:
        yield opened


@pytest.fixture
def page(browser: Browser, site: str, tmp_path: Path) -> Browser:
    """The newly loaded page with the file selected."""
    file = tmp_path / "picked.png"
    file.write_bytes(BODY)
    browser.open(f"{site}/upload.html")
    element = browser.call("element", using="css selector", value="#file")
    browser.call(f"element/{next(iter(element.values()))}/value", text=str(file))
    return browser


def share(boto: BaseClient, bucket: str, origin: str, **change: object) -> None:
    """Stores one CORS rule for one origin, as a site with uploads needs it."""
    rule = {
        "AllowedOrigins": [origin], "AllowedMethods": ["PUT", "GET"], "AllowedHeaders": ["content-type", "range"],
        "ExposeHeaders": ["ETag"], "MaxAgeSeconds": 0,
    }
    boto.put_bucket_cors(Bucket=bucket, CORSConfiguration={"CORSRules": [rule | change]})


def put_url(boto: BaseClient, bucket: str, key: str = "picked.png") -> str:
    """Returns a presigned PUT URL whose signature covers the content type."""
    return boto.generate_presigned_url("put_object", {"Bucket": bucket, "Key": key, "ContentType": TYPE})


def assert_nothing_stored(s3: S3, bucket: str) -> None:
    """Asserts that no object was stored."""
    assert error_code(s3.get(bucket, "picked.png")) == "NoSuchKey"


def test_allowed_upload_stores_the_file(boto: BaseClient, s3: S3, bucket: str, page: Browser, site: str):
    """The page can read the status and the exposed ETag, but no other header."""
    share(boto, bucket, site)
    seen = page.run(UPLOAD, put_url(boto, bucket), TYPE)
    assert seen == {"status": 200, "etag": md5_etag(BODY), "version": None, "hidden": None, "code": None}
    stored = s3.get(bucket, "picked.png")
    assert stored.body == BODY and stored.get("content-type") == TYPE


def test_upload_reports_progress(boto: BaseClient, s3: S3, bucket: str, page: Browser, site: str):
    """Uses XMLHttpRequest with upload events."""
    share(boto, bucket, site)
    seen = page.run(UPLOAD_WITH_PROGRESS, put_url(boto, bucket), TYPE)
    assert seen == {"status": 200, "etag": md5_etag(BODY), "sent": len(BODY)}
    assert s3.get(bucket, "picked.png").body == BODY


def test_upload_without_a_cors_rule_is_not_sent(boto: BaseClient, s3: S3, bucket: str, page: Browser):
    """The preflight is refused, so the browser does not send the file. The page gets an error without a status."""
    assert page.run(UPLOAD, put_url(boto, bucket), TYPE) == {"error": "TypeError"}
    assert page.run(UPLOAD_WITH_PROGRESS, put_url(boto, bucket), TYPE) == {"error": "network", "status": 0}
    assert_nothing_stored(s3, bucket)


@pytest.mark.parametrize("change", [
    {"AllowedOrigins": ["http://other.example.com"]}, {"AllowedMethods": ["GET"]}, {"AllowedHeaders": ["x-other"]},
], ids=["another origin", "another method", "another header"])
def test_upload_that_matches_no_rule_is_not_sent(boto: BaseClient, s3: S3, bucket: str, page: Browser, site: str, change: dict):
    """The page gets a TypeError, as without any rule."""
    share(boto, bucket, site, **change)
    assert page.run(UPLOAD, put_url(boto, bucket), TYPE) == {"error": "TypeError"}
    assert_nothing_stored(s3, bucket)


def test_upload_with_an_unsigned_content_type_is_refused(boto: BaseClient, s3: S3, bucket: str, page: Browser, site: str):
    """CORS allows the request, but the signature does not match. The page can read 403 and the error code."""
    share(boto, bucket, site)
    seen = page.run(UPLOAD, put_url(boto, bucket), "text/html")
    assert (seen["status"], seen["code"], seen["etag"]) == (403, "SignatureDoesNotMatch", None)
    assert_nothing_stored(s3, bucket)


def test_upload_with_an_expired_url_is_refused(boto: BaseClient, s3: S3, bucket: str, page: Browser, site: str):
    """The page can read 403 and the error code."""
    share(boto, bucket, site)
    url = s3.presigned("PUT", object_target(bucket, "picked.png"), expires=1, scope=Scope(amz_date(-60)))
    seen = page.run(UPLOAD, f"http://{s3.authority}{url}", TYPE)
    assert (seen["status"], seen["code"]) == (403, "AccessDenied")
    assert_nothing_stored(s3, bucket)


def test_downloads_and_ranges_need_a_cors_rule(boto: BaseClient, s3: S3, bucket: str, page: Browser, site: str):
    """Without a rule the page cannot read the response. With a rule it can read whole objects and ranges."""
    s3.put(bucket, "k", BODY)
    url = boto.generate_presigned_url("get_object", {"Bucket": bucket, "Key": "k"})
    assert page.run(DOWNLOAD, url, None) == {"error": "TypeError"}
    share(boto, bucket, site)
    whole, piece = page.run(DOWNLOAD, url, None), page.run(DOWNLOAD, url, "bytes=1000-1999")
    assert whole == {"status": 200, "digest": sha256_hex(BODY), "etag": md5_etag(BODY)}
    assert (piece["status"], piece["digest"]) == (206, sha256_hex(BODY[1000:2000]))


def test_multipart_upload_from_the_browser(boto: BaseClient, s3: S3, bucket: str, page: Browser, site: str):
    """Each part has its own presigned URL. The page can read the ETag that CompleteMultipartUpload needs."""
    share(boto, bucket, site)
    names = {"Bucket": bucket, "Key": "picked.png"}
    names["UploadId"] = boto.create_multipart_upload(**names)["UploadId"]
    url = boto.generate_presigned_url("upload_part", names | {"PartNumber": 1})
    seen = page.run(UPLOAD, url, TYPE)
    assert (seen["status"], seen["etag"]) == (200, md5_etag(BODY))
    boto.complete_multipart_upload(**names, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": seen["etag"]}]})
    assert s3.get(bucket, "picked.png").body == BODY
