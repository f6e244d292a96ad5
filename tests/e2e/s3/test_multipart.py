"""Multipart uploads: order and replacement of parts, listing, completion, abort and invalid part lists."""

import io
from concurrent.futures import ThreadPoolExecutor

import pytest
from boto3.s3.transfer import TransferConfig
from botocore.client import BaseClient

from harness.boto import PART_BYTES, Upload, make_client, random_bytes, refused, upload_in_parts
from harness.expect import assert_error
from harness.s3 import S3, md5_etag, multipart_etag, object_target
from harness.server import Cairn

FIRST, SECOND, LAST = random_bytes(1, PART_BYTES), random_bytes(2, PART_BYTES), random_bytes(3, 70_001)
NO_SUCH_UPLOAD = "A0B1C2D3E4F5"


def content(client: BaseClient, bucket: str, key: str) -> bytes:
    """Returns the whole object."""
    return client.get_object(Bucket=bucket, Key=key)["Body"].read()


def test_completed_parts_become_one_object(boto: BaseClient, bucket: str):
    """Parts sent in reverse order give the right bytes, ETag, size and metadata, and the upload no longer exists."""
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


def test_uploaded_parts_are_invisible_until_completion(boto: BaseClient, bucket: str):
    """Reads and lists show the old object until the upload completes."""
    boto.put_object(Bucket=bucket, Key="k", Body=b"old")
    upload = Upload(boto, bucket, "k")
    upload.send(1, LAST)
    assert content(boto, bucket, "k") == b"old"
    assert [item["Size"] for item in boto.list_objects_v2(Bucket=bucket)["Contents"]] == [3]
    upload.complete()
    assert content(boto, bucket, "k") == LAST


def test_range_across_a_part_boundary(boto: BaseClient, bucket: str):
    """For example the last byte of one part and the first byte of the next."""
    upload_in_parts(boto, bucket, "k", [FIRST, LAST])
    whole = FIRST + LAST
    for begin, end in ((PART_BYTES - 1, PART_BYTES), (PART_BYTES - 70_000, PART_BYTES + 50_000), (len(whole) - 1, len(whole))):
        assert boto.get_object(Bucket=bucket, Key="k", Range=f"bytes={begin}-{end}")["Body"].read() == whole[begin : end + 1]


def test_resent_part_replaces_the_earlier_one(boto: BaseClient, bucket: str):
    """The list and the object use the later part. The ETag of the earlier part is refused."""
    upload = Upload(boto, bucket, "k")
    old = upload.send(1, SECOND)["ETag"]
    upload.send(1, FIRST)
    upload.send(2, LAST)
    assert [(part["PartNumber"], part["ETag"]) for part in upload.listed()["Parts"]] == [(1, md5_etag(FIRST)), (2, md5_etag(LAST))]
    with refused(400, "InvalidPart"):
        upload.complete([{"PartNumber": 1, "ETag": old}, upload.parts[2]])
    assert upload.complete()["ETag"] == multipart_etag(FIRST, LAST)
    assert content(boto, bucket, "k") == FIRST + LAST


def test_upload_completes_with_a_subset_of_its_parts(boto: BaseClient, bucket: str):
    """Part numbers need not be consecutive, and uploaded parts may be omitted."""
    upload = Upload(boto, bucket, "k")
    for number, body in ((2, FIRST), (7, SECOND), (10_000, LAST)):
        upload.send(number, body)
    assert upload.complete([upload.parts[2], upload.parts[10_000]])["ETag"] == multipart_etag(FIRST, LAST)
    assert content(boto, bucket, "k") == FIRST + LAST


def test_complete_accepts_etags_without_quotes(boto: BaseClient, bucket: str):
    """Some clients strip the quotes."""
    upload = Upload(boto, bucket, "k")
    upload.send(1, LAST)
    assert upload.complete([{"PartNumber": 1, "ETag": md5_etag(LAST).strip('"')}])["ETag"] == multipart_etag(LAST)


def test_repeated_complete_returns_the_same_answer(boto: BaseClient, bucket: str):
    """A client that lost its connection repeats the request and must not get NoSuchUpload."""
    upload = Upload(boto, bucket, "k")
    upload.send(1, FIRST)
    upload.send(2, LAST)
    first, second = upload.complete(), upload.complete()
    assert [second[name] for name in ("ETag", "Key", "Location")] == [first[name] for name in ("ETag", "Key", "Location")]
    with refused(404, "NoSuchUpload"):
        upload.complete([upload.parts[1]])
    assert content(boto, bucket, "k") == FIRST + LAST


def test_invalid_part_lists_are_refused_and_the_upload_remains(boto: BaseClient, bucket: str):
    """Each kind of mistake has its own error code. A correct list still completes the upload afterwards."""
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
def test_malformed_complete_documents_are_refused(s3: S3, boto: BaseClient, bucket: str, document: bytes):
    """Invalid XML, a wrong root element, parts without a number or an ETag, and document types are refused."""
    upload = Upload(boto, bucket, "k")
    upload.send(1, LAST)
    target = object_target(bucket, "k", f"uploadId={upload.names['UploadId']}")
    assert_error(s3.request("POST", target, body=document), 400, "MalformedXML", "InvalidRequest")
    upload.complete()


def test_namespace_and_unknown_elements_are_accepted(s3: S3, boto: BaseClient, bucket: str):
    """A document with the S3 namespace, reordered elements and an unknown element is valid."""
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
def test_part_numbers_out_of_range_are_refused(s3: S3, boto: BaseClient, bucket: str, number: str):
    """Only numbers from 1 to 10000 are valid, and no part is stored under another number."""
    upload = Upload(boto, bucket, "k")
    target = object_target(bucket, "k", f"partNumber={number}&uploadId={upload.names['UploadId']}")
    assert_error(s3.request("PUT", target, body=LAST), 400, "InvalidArgument")
    assert "Parts" not in upload.listed()


def test_upload_id_is_refused_for_another_bucket_or_key(boto: BaseClient, bucket: str):
    """An upload id is valid only for its own bucket and key. An unknown id is always refused."""
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


def test_abort_removes_the_upload_and_its_parts(boto: BaseClient, bucket: str):
    """Every later operation on the upload answers NoSuchUpload, no object exists, and the bucket can be deleted."""
    upload = Upload(boto, bucket, "k")
    upload.send(1, LAST)
    upload.abort()
    for call in (upload.abort, upload.listed, upload.complete, lambda: upload.send(2, LAST)):
        with refused(404, "NoSuchUpload"):
            call()
    with refused(404, "NoSuchKey"):
        content(boto, bucket, "k")
    boto.delete_bucket(Bucket=bucket)


def test_every_part_is_listed_once_across_pages(boto: BaseClient, bucket: str):
    """Pages have exactly max-parts entries. Each part appears once, with its size, ETag and date."""
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
    """Returns the keys and upload ids of a page."""
    return [(item["Key"], item["UploadId"]) for item in page.get("Uploads", [])]


def test_every_upload_is_listed_once_across_pages(boto: BaseClient, bucket: str):
    """Uploads are sorted by key, then by creation time, for every page size."""
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


def test_upload_lists_honour_prefix_and_delimiter(boto: BaseClient, bucket: str):
    """Common prefixes count towards max-uploads."""
    for key in ("a", "b/1", "b/2", "c/3", "z"):
        Upload(boto, bucket, key)
    page = boto.list_multipart_uploads(Bucket=bucket, Delimiter="/")
    assert [key for key, _ in uploads_of(page)] == ["a", "z"]
    assert [item["Prefix"] for item in page["CommonPrefixes"]] == ["b/", "c/"]
    assert [key for key, _ in uploads_of(boto.list_multipart_uploads(Bucket=bucket, Prefix="b/"))] == ["b/1", "b/2"]
    page = boto.list_multipart_uploads(Bucket=bucket, Delimiter="/", MaxUploads=2)
    assert page["IsTruncated"] and [key for key, _ in uploads_of(page)] == ["a"]
    assert [item["Prefix"] for item in page["CommonPrefixes"]] == ["b/"]


def test_conditions_are_evaluated_when_the_upload_completes(boto: BaseClient, bucket: str):
    """The object at the time of completion decides. After a failed condition the upload can still be completed."""
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


def test_wrong_announced_object_size_is_refused(boto: BaseClient, bucket: str):
    """Complete compares `x-amz-mp-object-size` with the size of the object."""
    upload = Upload(boto, bucket, "k")
    upload.send(1, LAST)
    with refused(400, "InvalidRequest"):
        upload.complete(MpuObjectSize=len(LAST) + 1)
    upload.complete(MpuObjectSize=len(LAST))


def test_parts_can_be_transferred_concurrently(boto: BaseClient, bucket: str):
    """boto3's transfer manager uploads and downloads an object with eight threads."""
    body = random_bytes(9, 6 * PART_BYTES + 12_345)
    config = TransferConfig(multipart_threshold=PART_BYTES, multipart_chunksize=PART_BYTES, max_concurrency=8)
    boto.upload_fileobj(io.BytesIO(body), bucket, "k", Config=config)
    got = io.BytesIO()
    boto.download_fileobj(bucket, "k", got, Config=config)
    assert got.getvalue() == body
    assert boto.head_object(Bucket=bucket, Key="k")["ETag"].endswith('-7"')


def test_concurrent_uploads_of_one_part_store_one_body(boto: BaseClient, bucket: str):
    """One of the bodies is stored completely, and the list returns its ETag."""
    bodies = [random_bytes(f"side {number}", 300_000) for number in range(8)]
    upload = Upload(boto, bucket, "k")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda body: boto.upload_part(**upload.names, PartNumber=1, Body=body), bodies))
    (part,) = upload.listed()["Parts"]
    upload.complete([{"PartNumber": 1, "ETag": part["ETag"]}])
    winner = content(boto, bucket, "k")
    assert winner in bodies and md5_etag(winner) == part["ETag"]


def test_concurrent_completes_all_succeed(boto: BaseClient, bucket: str):
    """Every request gets the same successful answer."""
    upload = Upload(boto, bucket, "k")
    upload.send(1, LAST)
    with ThreadPoolExecutor(6) as pool:
        tags = {answer["ETag"] for answer in pool.map(lambda _: upload.complete(), range(6))}
    assert tags == {multipart_etag(LAST)} and content(boto, bucket, "k") == LAST


def test_uploads_survive_kill_9(own_store: Cairn):
    """After SIGKILL the acknowledged uploads and parts exist, and aborted uploads do not come back."""
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


def test_part_with_a_wrong_digest_is_not_stored(boto: BaseClient, s3: S3, bucket: str):
    """The Content-MD5 belongs to another body, or is malformed."""
    upload = Upload(boto, bucket, "k")
    target = object_target(bucket, "k", f"partNumber=1&uploadId={upload.names['UploadId']}")
    assert_error(s3.request("PUT", target, [("Content-MD5", "1B2M2Y8AsgTpgAmY7PhCfg==")], LAST), 400, "BadDigest")
    assert_error(s3.request("PUT", target, [("Content-MD5", "short")], LAST), 400, "InvalidDigest")
    assert "Parts" not in upload.listed()


def test_upload_part_copy_is_not_implemented(boto: BaseClient, bucket: str):
    """UploadPartCopy is refused and stores no part."""
    boto.put_object(Bucket=bucket, Key="source", Body=b"source")
    upload = Upload(boto, bucket, "k")
    with refused(501, "NotImplemented"):
        boto.upload_part_copy(**upload.names, PartNumber=1, CopySource=f"{bucket}/source")
    assert "Parts" not in upload.listed()


def test_listing_uploads_of_an_object_is_refused(s3: S3, bucket: str):
    """GET with `?uploads` is valid for a bucket only."""
    s3.put(bucket, "k", b"stays")
    assert_error(s3.get(bucket, "k", query="uploads"), 400, "InvalidRequest")
    assert s3.get(bucket, "k").body == b"stays"


def test_upload_ids_cannot_be_taken_for_numbers(boto: BaseClient, bucket: str):
    """minio-js read `0000000000000101` as 101, and found no such upload. Ids without the letter in front are still accepted."""
    upload = Upload(boto, bucket, "k")
    given = upload.names["UploadId"]
    assert given.startswith("u") and not given.isdigit()
    upload.send(1, b"content")
    before = upload.names | {"UploadId": given.removeprefix("u")}
    assert len(boto.list_parts(**before)["Parts"]) == 1
    upload.complete()
    assert boto.get_object(Bucket=bucket, Key="k")["Body"].read() == b"content"
