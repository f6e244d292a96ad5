"""A real browser uploads by presigned PUT from a page of another origin: what its JavaScript sees, and what is stored.

The page picks a file the way a person does, through an `<input type=file>`, and sends it with `fetch` and with
`XMLHttpRequest`. A refusal by CORS is a TypeError without a status; a refusal by the store is a status that can be read.
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

# The file of the input, sent with this type; what the page can read of the answer.
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
# The same with progress, as upload widgets do it.
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
    """The page's origin."""
    with web_site() as origin:
        yield origin


@pytest.fixture(scope="module")
def browser(run_folder: Path) -> Iterator[Browser]:
    """One browser for all of these tests."""
    with chromium(run_folder / "browser") as opened:
        yield opened


@pytest.fixture
def page(browser: Browser, site: str, tmp_path: Path) -> Browser:
    """The page, freshly loaded, with the file picked."""
    file = tmp_path / "picked.png"
    file.write_bytes(BODY)
    browser.open(f"{site}/upload.html")
    element = browser.call("element", using="css selector", value="#file")
    browser.call(f"element/{next(iter(element.values()))}/value", text=str(file))
    return browser


def share(boto: BaseClient, bucket: str, origin: str, **change: object) -> None:
    """One rule for one origin, as a site with uploads needs it."""
    rule = {
        "AllowedOrigins": [origin], "AllowedMethods": ["PUT", "GET"], "AllowedHeaders": ["content-type", "range"],
        "ExposeHeaders": ["ETag"], "MaxAgeSeconds": 0,
    }
    boto.put_bucket_cors(Bucket=bucket, CORSConfiguration={"CORSRules": [rule | change]})


def put_url(boto: BaseClient, bucket: str, key: str = "picked.png") -> str:
    """A presigned PUT with its content type signed."""
    return boto.generate_presigned_url("put_object", {"Bucket": bucket, "Key": key, "ContentType": TYPE})


def assert_nothing_stored(s3: S3, bucket: str) -> None:
    """No object under the key."""
    assert error_code(s3.get(bucket, "picked.png")) == "NoSuchKey"


def test_an_upload_that_is_allowed(boto: BaseClient, s3: S3, bucket: str, page: Browser, site: str):
    """Status and the exposed ETag are readable, other headers are not, and the object is the file."""
    share(boto, bucket, site)
    seen = page.run(UPLOAD, put_url(boto, bucket), TYPE)
    assert seen == {"status": 200, "etag": md5_etag(BODY), "version": None, "hidden": None, "code": None}
    stored = s3.get(bucket, "picked.png")
    assert stored.body == BODY and stored.get("content-type") == TYPE


def test_progress_of_an_upload(boto: BaseClient, s3: S3, bucket: str, page: Browser, site: str):
    """XMLHttpRequest with upload events."""
    share(boto, bucket, site)
    seen = page.run(UPLOAD_WITH_PROGRESS, put_url(boto, bucket), TYPE)
    assert seen == {"status": 200, "etag": md5_etag(BODY), "sent": len(BODY)}
    assert s3.get(bucket, "picked.png").body == BODY


def test_an_upload_without_a_rule(boto: BaseClient, s3: S3, bucket: str, page: Browser):
    """The preflight is refused, so the browser never sends the file: a TypeError, no status."""
    assert page.run(UPLOAD, put_url(boto, bucket), TYPE) == {"error": "TypeError"}
    assert page.run(UPLOAD_WITH_PROGRESS, put_url(boto, bucket), TYPE) == {"error": "network", "status": 0}
    assert_nothing_stored(s3, bucket)


@pytest.mark.parametrize("change", [
    {"AllowedOrigins": ["http://other.example.com"]}, {"AllowedMethods": ["GET"]}, {"AllowedHeaders": ["x-other"]},
], ids=["another origin", "another method", "another header"])
def test_an_upload_that_no_rule_fits(boto: BaseClient, s3: S3, bucket: str, page: Browser, site: str, change: dict):
    """As without any."""
    share(boto, bucket, site, **change)
    assert page.run(UPLOAD, put_url(boto, bucket), TYPE) == {"error": "TypeError"}
    assert_nothing_stored(s3, bucket)


def test_the_wrong_content_type(boto: BaseClient, s3: S3, bucket: str, page: Browser, site: str):
    """CORS lets it through, the signature does not: the page reads 403 and its code, and nothing is stored."""
    share(boto, bucket, site)
    seen = page.run(UPLOAD, put_url(boto, bucket), "text/html")
    assert (seen["status"], seen["code"], seen["etag"]) == (403, "SignatureDoesNotMatch", None)
    assert_nothing_stored(s3, bucket)


def test_a_url_that_has_expired(boto: BaseClient, s3: S3, bucket: str, page: Browser, site: str):
    """The page can tell its user so."""
    share(boto, bucket, site)
    url = s3.presigned("PUT", object_target(bucket, "picked.png"), expires=1, scope=Scope(amz_date(-60)))
    seen = page.run(UPLOAD, f"http://{s3.authority}{url}", TYPE)
    assert (seen["status"], seen["code"]) == (403, "AccessDenied")
    assert_nothing_stored(s3, bucket)


def test_downloads_and_ranges(boto: BaseClient, s3: S3, bucket: str, page: Browser, site: str):
    """Readable for the page that the rule names, whole and in part; without a rule the answer is closed to it."""
    s3.put(bucket, "k", BODY)
    url = boto.generate_presigned_url("get_object", {"Bucket": bucket, "Key": "k"})
    assert page.run(DOWNLOAD, url, None) == {"error": "TypeError"}
    share(boto, bucket, site)
    whole, piece = page.run(DOWNLOAD, url, None), page.run(DOWNLOAD, url, "bytes=1000-1999")
    assert whole == {"status": 200, "digest": sha256_hex(BODY), "etag": md5_etag(BODY)}
    assert (piece["status"], piece["digest"]) == (206, sha256_hex(BODY[1000:2000]))


def test_an_upload_in_parts(boto: BaseClient, s3: S3, bucket: str, page: Browser, site: str):
    """Each part by a URL of its own; the page reads the tags that complete needs."""
    share(boto, bucket, site)
    names = {"Bucket": bucket, "Key": "picked.png"}
    names["UploadId"] = boto.create_multipart_upload(**names)["UploadId"]
    url = boto.generate_presigned_url("upload_part", names | {"PartNumber": 1})
    seen = page.run(UPLOAD, url, TYPE)
    assert (seen["status"], seen["etag"]) == (200, md5_etag(BODY))
    boto.complete_multipart_upload(**names, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": seen["etag"]}]})
    assert s3.get(bucket, "picked.png").body == BODY
