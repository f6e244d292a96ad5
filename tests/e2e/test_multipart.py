"""Attacks multipart uploads: parts in any order, replaced, left out, listed, completed twice, aborted, and every wrong list."""

import hashlib
import io
from concurrent.futures import ThreadPoolExecutor

import pytest
from boto3.s3.transfer import TransferConfig
from botocore.client import BaseClient

from harness.boto import PART_BYTES, Upload, make_client, random_bytes, refused, upload_in_parts
from harness.expect import assert_error
from harness.s3 import S3, md5_etag, object_target
from harness.server import Cairn

FIRST, SECOND, LAST = random_bytes(1, PART_BYTES), random_bytes(2, PART_BYTES), random_bytes(3, 70_001)
NO_SUCH_UPLOAD = "A0B1C2D3E4F5"


def multipart_etag(*bodies: bytes) -> str:
    """MD5 of the parts' MD5 digests, and how many there are."""
    digest = hashlib.md5(b"".join(hashlib.md5(body).digest() for body in bodies)).hexdigest()
    return f'"{digest}-{len(bodies)}"'


def content(client: BaseClient, bucket: str, key: str) -> bytes:
    """The whole object."""
    return client.get_object(Bucket=bucket, Key=key)["Body"].read()


def test_parts_become_one_object(boto: BaseClient, bucket: str):
    """Sent last first; bytes, ETag, size and what create was told come out, and nothing is left of the upload."""
    told = {"Metadata": {"color": "green"}, "ContentType": "video/mp4", "CacheControl": "no-store"}
    upload = Upload(boto, bucket, "dir/a b+c.mp4", **told)
    for number, body in ((3, LAST), (2, SECOND), (1, FIRST)):
        assert upload.send(number, body)["ETag"] == md5_etag(body)
    answer = upload.complete()
    etag = multipart_etag(FIRST, SECOND, LAST)
    assert (answer["ETag"], answer["Bucket"], answer["Key"]) == (etag, bucket, "dir/a b+c.mp4")
    assert answer["Location"].startswith("http") and bucket in answer["Location"]
    found = boto.get_object(Bucket=bucket, Key="dir/a b+c.mp4")
    assert found["Body"].read() == FIRST + SECOND + LAST
    assert {name: found[name] for name in told} == told and found["ETag"] == etag
    (item,) = boto.list_objects_v2(Bucket=bucket)["Contents"]
    assert (item["ETag"], item["Size"]) == (etag, len(FIRST + SECOND + LAST))
    assert "Uploads" not in boto.list_multipart_uploads(Bucket=bucket)
    with refused(404, "NoSuchUpload"):
        upload.listed()


def test_nothing_is_seen_before_the_end(boto: BaseClient, bucket: str):
    """Until complete the old object stands, in reads and in lists."""
    boto.put_object(Bucket=bucket, Key="k", Body=b"old")
    upload = Upload(boto, bucket, "k")
    upload.send(1, LAST)
    assert content(boto, bucket, "k") == b"old"
    assert [item["Size"] for item in boto.list_objects_v2(Bucket=bucket)["Contents"]] == [3]
    upload.complete()
    assert content(boto, bucket, "k") == LAST


def test_a_range_over_the_border_of_parts(boto: BaseClient, bucket: str):
    """The last byte of a part and the first of the next."""
    upload_in_parts(boto, bucket, "k", [FIRST, LAST])
    whole = FIRST + LAST
    for begin, end in ((PART_BYTES - 1, PART_BYTES), (PART_BYTES - 70_000, PART_BYTES + 50_000), (len(whole) - 1, len(whole))):
        assert boto.get_object(Bucket=bucket, Key="k", Range=f"bytes={begin}-{end}")["Body"].read() == whole[begin : end + 1]


def test_a_part_sent_again_replaces_the_first(boto: BaseClient, bucket: str):
    """The later one counts, in the list and in the object; the tag of the earlier is no good any more."""
    upload = Upload(boto, bucket, "k")
    old = upload.send(1, SECOND)["ETag"]
    upload.send(1, FIRST)
    upload.send(2, LAST)
    assert [(part["PartNumber"], part["ETag"]) for part in upload.listed()["Parts"]] == [(1, md5_etag(FIRST)), (2, md5_etag(LAST))]
    with refused(400, "InvalidPart"):
        upload.complete([{"PartNumber": 1, "ETag": old}, upload.parts[2]])
    assert upload.complete()["ETag"] == multipart_etag(FIRST, LAST)
    assert content(boto, bucket, "k") == FIRST + LAST


def test_a_subset_with_gaps(boto: BaseClient, bucket: str):
    """Numbers need not be next to each other, and parts may be left out."""
    upload = Upload(boto, bucket, "k")
    for number, body in ((2, FIRST), (7, SECOND), (10_000, LAST)):
        upload.send(number, body)
    assert upload.complete([upload.parts[2], upload.parts[10_000]])["ETag"] == multipart_etag(FIRST, LAST)
    assert content(boto, bucket, "k") == FIRST + LAST


def test_tags_without_quotes(boto: BaseClient, bucket: str):
    """Some clients strip them."""
    upload = Upload(boto, bucket, "k")
    upload.send(1, LAST)
    assert upload.complete([{"PartNumber": 1, "ETag": md5_etag(LAST).strip('"')}])["ETag"] == multipart_etag(LAST)


def test_complete_twice_answers_the_same(boto: BaseClient, bucket: str):
    """A client whose connection broke asks again, and must not hear that its upload never was."""
    upload = Upload(boto, bucket, "k")
    upload.send(1, FIRST)
    upload.send(2, LAST)
    first, second = upload.complete(), upload.complete()
    assert [second[name] for name in ("ETag", "Key", "Location")] == [first[name] for name in ("ETag", "Key", "Location")]
    assert content(boto, bucket, "k") == FIRST + LAST


def test_wrong_lists_are_refused_and_the_upload_stays(boto: BaseClient, bucket: str):
    """Each by its own code; afterwards the right list still completes."""
    upload = Upload(boto, bucket, "k")
    for number, body in ((1, FIRST), (2, LAST), (3, LAST)):
        upload.send(number, body)
    one, two, three = (upload.parts[number] for number in (1, 2, 3))
    wrong = {
        "InvalidPartOrder": [[two, one], [one, one], [one, three, two]],
        "InvalidPart": [[one, {"PartNumber": 4, "ETag": md5_etag(LAST)}], [one, {"PartNumber": 2, "ETag": md5_etag(b"other")}]],
        "EntityTooSmall": [[one, two, three]],
        "MalformedXML": [[]],
    }
    for code, lists in wrong.items():
        for parts in lists:
            with refused(400, code):
                upload.complete(parts)
    with refused(404, "NoSuchKey"):
        content(boto, bucket, "k")
    upload.complete([one, two])
    assert content(boto, bucket, "k") == FIRST + LAST


@pytest.mark.parametrize("document", [
    b"", b"<CompleteMultipartUpload>", b"<Other/>", b"<CompleteMultipartUpload><Part/></CompleteMultipartUpload>",
    b"<CompleteMultipartUpload><Part><PartNumber>one</PartNumber><ETag>x</ETag></Part></CompleteMultipartUpload>",
    b"<!DOCTYPE a [<!ENTITY e '1'>]><CompleteMultipartUpload><Part><PartNumber>&e;</PartNumber></Part></CompleteMultipartUpload>",
])
def test_documents_that_are_none(s3: S3, boto: BaseClient, bucket: str, document: bytes):
    """Not XML, another element, a part without its number or tag, a document type."""
    upload = Upload(boto, bucket, "k")
    upload.send(1, LAST)
    target = object_target(bucket, "k", f"uploadId={upload.names['UploadId']}")
    assert_error(s3.request("POST", target, body=document), 400, "MalformedXML", "InvalidRequest")
    upload.complete()


def test_namespace_and_unknown_elements(s3: S3, boto: BaseClient, bucket: str):
    """With the namespace of S3, in another order, with an element of tomorrow."""
    upload = Upload(boto, bucket, "k")
    upload.send(1, LAST)
    document = (
        '<?xml version="1.0"?><CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
        f"<Part><ETag>&quot;{md5_etag(LAST)[1:-1]}&quot;</ETag><Tomorrow/><PartNumber>1</PartNumber></Part></CompleteMultipartUpload>"
    ).encode()
    response = s3.request("POST", object_target(bucket, "k", f"uploadId={upload.names['UploadId']}"), body=document)
    assert response.status == 200, response.body
    assert content(boto, bucket, "k") == LAST


@pytest.mark.parametrize("number", ["0", "10001", "-1", "x", "", "1.0", "99999999999999999999"])
def test_part_numbers_out_of_range(s3: S3, boto: BaseClient, bucket: str, number: str):
    """1 to 10000, and nothing is stored under another."""
    upload = Upload(boto, bucket, "k")
    target = object_target(bucket, "k", f"partNumber={number}&uploadId={upload.names['UploadId']}")
    assert_error(s3.request("PUT", target, body=LAST), 400, "InvalidArgument")
    assert "Parts" not in upload.listed()


def test_upload_ids_of_others(boto: BaseClient, bucket: str):
    """An id works for its own bucket and key only, and an unknown one for none."""
    upload = Upload(boto, bucket, "k")
    upload.send(1, LAST)
    boto.create_bucket(Bucket=f"{bucket}-other")
    for change in ({"Key": "other"}, {"Bucket": f"{bucket}-other"}, {"UploadId": NO_SUCH_UPLOAD}):
        names = upload.names | change
        calls = (
            lambda: boto.upload_part(**names, PartNumber=1, Body=b"x"),
            lambda: boto.list_parts(**names),
            lambda: boto.complete_multipart_upload(**names, MultipartUpload={"Parts": [upload.parts[1]]}),
            lambda: boto.abort_multipart_upload(**names),
        )
        for call in calls:
            with refused(404, "NoSuchUpload"):
                call()
    upload.complete()
    assert content(boto, bucket, "k") == LAST


def test_abort_leaves_nothing(boto: BaseClient, bucket: str):
    """The upload is gone from every operation, the object was never there, and the bucket can go."""
    upload = Upload(boto, bucket, "k")
    upload.send(1, LAST)
    with refused(409, "BucketNotEmpty"):
        boto.delete_bucket(Bucket=bucket)
    upload.abort()
    for call in (upload.abort, upload.listed, upload.complete, lambda: upload.send(2, LAST)):
        with refused(404, "NoSuchUpload"):
            call()
    with refused(404, "NoSuchKey"):
        content(boto, bucket, "k")
    boto.delete_bucket(Bucket=bucket)


def test_pages_of_parts(boto: BaseClient, bucket: str):
    """max-parts is exact, markers lead on, and every part comes once with size, tag and date."""
    upload = Upload(boto, bucket, "k")
    bodies = {number: random_bytes(number, 100 + number) for number in (1, 2, 3, 50, 9_999)}
    for number, body in bodies.items():
        upload.send(number, body)
    for size in (1, 2, 5):
        marker, pages = 0, []
        while True:
            page = upload.listed(MaxParts=size, PartNumberMarker=marker)
            pages.append(page["Parts"])
            assert page["MaxParts"] == size and page["PartNumberMarker"] == marker
            if not page["IsTruncated"]:
                break
            marker = page["NextPartNumberMarker"]
        assert [len(parts) for parts in pages[:-1]] == [size] * (len(pages) - 1)
        found = {part["PartNumber"]: (part["Size"], part["ETag"]) for parts in pages for part in parts}
        assert found == {number: (len(body), md5_etag(body)) for number, body in bodies.items()}
        assert all(part["LastModified"] for parts in pages for part in parts)
    page = upload.listed()
    assert page["StorageClass"] == "STANDARD" and page["Owner"]["ID"] and page["Initiator"]["ID"]
    assert "Parts" not in upload.listed(PartNumberMarker=9_999)


def uploads_of(page: dict) -> list[tuple[str, str]]:
    """Keys and ids of a page."""
    return [(item["Key"], item["UploadId"]) for item in page.get("Uploads", [])]


def test_pages_of_uploads(boto: BaseClient, bucket: str):
    """By key, then by time; every one once, whatever the size of the pages."""
    keys = ["a", "a", "b/1", "b/2", "c d+ü", "a"]
    ids = [(key, Upload(boto, bucket, key).names["UploadId"]) for key in keys]
    expected = sorted(ids, key=lambda pair: pair[0])
    assert uploads_of(boto.list_multipart_uploads(Bucket=bucket)) == expected
    for size in (1, 2, 4):
        found, markers = [], {}
        while True:
            page = boto.list_multipart_uploads(Bucket=bucket, MaxUploads=size, **markers)
            found += uploads_of(page)
            if not page["IsTruncated"]:
                break
            assert len(uploads_of(page)) == size
            markers = {"KeyMarker": page["NextKeyMarker"], "UploadIdMarker": page["NextUploadIdMarker"]}
        assert found == expected
    assert [key for key, _ in uploads_of(boto.list_multipart_uploads(Bucket=bucket, KeyMarker="a"))] == ["b/1", "b/2", "c d+ü"]


def test_prefix_and_delimiter_of_uploads(boto: BaseClient, bucket: str):
    """Folders of uploads, counted with the uploads in a page."""
    for key in ("a", "b/1", "b/2", "c/3", "z"):
        Upload(boto, bucket, key)
    page = boto.list_multipart_uploads(Bucket=bucket, Delimiter="/")
    assert [key for key, _ in uploads_of(page)] == ["a", "z"]
    assert [item["Prefix"] for item in page["CommonPrefixes"]] == ["b/", "c/"]
    assert [key for key, _ in uploads_of(boto.list_multipart_uploads(Bucket=bucket, Prefix="b/"))] == ["b/1", "b/2"]
    page = boto.list_multipart_uploads(Bucket=bucket, Delimiter="/", MaxUploads=2)
    assert page["IsTruncated"] and [key for key, _ in uploads_of(page)] == ["a"]
    assert [item["Prefix"] for item in page["CommonPrefixes"]] == ["b/"]


def test_conditions_of_complete(boto: BaseClient, bucket: str):
    """Decided when it completes, not when it was created; refused, the upload can still be completed without."""
    upload = Upload(boto, bucket, "k")
    upload.send(1, LAST)
    etag = boto.put_object(Bucket=bucket, Key="k", Body=b"came first")["ETag"]
    with refused(412, "PreconditionFailed"):
        upload.complete(IfNoneMatch="*")
    with refused(412, "PreconditionFailed"):
        upload.complete(IfMatch=md5_etag(b"other"))
    assert content(boto, bucket, "k") == b"came first"
    upload.complete(IfMatch=etag)
    assert content(boto, bucket, "k") == LAST


def test_the_announced_size_is_checked(boto: BaseClient, bucket: str):
    """x-amz-mp-object-size."""
    upload = Upload(boto, bucket, "k")
    upload.send(1, LAST)
    with refused(400, "InvalidRequest"):
        upload.complete(MpuObjectSize=len(LAST) + 1)
    upload.complete(MpuObjectSize=len(LAST))


def test_many_parts_side_by_side(boto: BaseClient, bucket: str):
    """The transfer manager with eight threads, and a ranged download by the same."""
    body = random_bytes(9, 6 * PART_BYTES + 12_345)
    config = TransferConfig(multipart_threshold=PART_BYTES, multipart_chunksize=PART_BYTES, max_concurrency=8)
    boto.upload_fileobj(io.BytesIO(body), bucket, "k", Config=config)
    got = io.BytesIO()
    boto.download_fileobj(bucket, "k", got, Config=config)
    assert got.getvalue() == body
    assert boto.head_object(Bucket=bucket, Key="k")["ETag"].endswith('-7"')


def test_the_same_part_from_many_sides(boto: BaseClient, bucket: str):
    """One of the bodies wins whole, and the list names its tag."""
    bodies = [random_bytes(f"side {number}", 300_000) for number in range(8)]
    upload = Upload(boto, bucket, "k")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda body: boto.upload_part(**upload.names, PartNumber=1, Body=body), bodies))
    (part,) = upload.listed()["Parts"]
    upload.complete([{"PartNumber": 1, "ETag": part["ETag"]}])
    winner = content(boto, bucket, "k")
    assert winner in bodies and md5_etag(winner) == part["ETag"]


def test_completes_side_by_side(boto: BaseClient, bucket: str):
    """Each is told the same success."""
    upload = Upload(boto, bucket, "k")
    upload.send(1, LAST)
    with ThreadPoolExecutor(6) as pool:
        tags = {answer["ETag"] for answer in pool.map(lambda _: upload.complete(), range(6))}
    assert tags == {multipart_etag(LAST)} and content(boto, bucket, "k") == LAST


def test_kill_9_between_the_parts(own_store: Cairn):
    """What was acknowledged is there afterwards: the upload, its parts, and what was aborted stays away."""
    own_store.s3.create_bucket("killed")
    boto = make_client(own_store.s3)
    upload, gone = Upload(boto, "killed", "k", Metadata={"a": "b"}), Upload(boto, "killed", "gone")
    upload.send(1, FIRST)
    gone.send(1, LAST)
    gone.abort()
    own_store.kill()
    own_store.start()
    assert uploads_of(boto.list_multipart_uploads(Bucket="killed")) == [("k", upload.names["UploadId"])]
    upload.send(2, LAST)
    upload.complete()
    own_store.kill()
    own_store.start()
    found = boto.get_object(Bucket="killed", Key="k")
    assert found["Body"].read() == FIRST + LAST and found["Metadata"] == {"a": "b"}
    assert upload.complete()["ETag"] == multipart_etag(FIRST, LAST)


def test_a_part_with_a_wrong_digest_is_not_stored(boto: BaseClient, s3: S3, bucket: str):
    """Content-MD5 of something else, and a body that ends too early."""
    upload = Upload(boto, bucket, "k")
    target = object_target(bucket, "k", f"partNumber=1&uploadId={upload.names['UploadId']}")
    assert_error(s3.request("PUT", target, [("Content-MD5", "1B2M2Y8AsgTpgAmY7PhCfg==")], LAST), 400, "BadDigest")
    assert_error(s3.request("PUT", target, [("Content-MD5", "short")], LAST), 400, "InvalidDigest")
    assert "Parts" not in upload.listed()


def test_parts_from_copies_are_refused(boto: BaseClient, bucket: str):
    """UploadPartCopy is not implemented and stores no part."""
    boto.put_object(Bucket=bucket, Key="source", Body=b"source")
    upload = Upload(boto, bucket, "k")
    with refused(501, "NotImplemented"):
        boto.upload_part_copy(**upload.names, PartNumber=1, CopySource=f"{bucket}/source")
    assert "Parts" not in upload.listed()


def test_uploads_belong_to_objects_and_lists_to_buckets(s3: S3, bucket: str):
    """`?uploads` reads a bucket's uploads; at an object it is a mistake."""
    s3.put(bucket, "k", b"stays")
    assert_error(s3.get(bucket, "k", query="uploads"), 400, "InvalidRequest")
    assert s3.get(bucket, "k").body == b"stays"
