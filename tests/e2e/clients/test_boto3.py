"""boto3, with its defaults over plain HTTP and with "when required"."""

import io
from pathlib import Path

import pytest
import requests
from boto3.s3.transfer import TransferConfig
from botocore.exceptions import ClientError

from harness.boto import PART_BYTES, WHEN_REQUIRED, make_client, random_bytes
from harness.s3 import S3

# What a tree of small and large files goes up with: several parts from 8 MiB on, as by default.
COPY_IN_ONE = TransferConfig(multipart_threshold=5 * 2**30)


@pytest.fixture(params=[{}, WHEN_REQUIRED], ids=["defaults", "when required"])
def client(request: pytest.FixtureRequest, s3: S3):
    """Both ways of sending checksums."""
    return make_client(s3, **request.param)


def test_copy_a_tree_in_and_out(client, tree, out: Path, bucket: str):
    """upload_file and download_file of every file, byte for byte; the list agrees."""
    for name in tree.content:
        client.upload_file(str(tree.folder / name), bucket, name)
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, PaginationConfig={"PageSize": 300})
    listed = {item["Key"]: item["Size"] for page in pages for item in page["Contents"]}
    assert listed == {name: size for name, (size, _) in tree.content.items()}
    for name in listed:
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        client.download_file(bucket, name, str(out / name))
    tree.assert_same(out)


@pytest.mark.parametrize("algorithm", ["CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256"])
def test_checksums(client, bucket: str, algorithm: str):
    """Each algorithm of the SDK (two of them need awscrt); the answer is validated by the SDK."""
    client.put_object(Bucket=bucket, Key="k", Body=b"checked" * 5000, ChecksumAlgorithm=algorithm)
    answer = client.get_object(Bucket=bucket, Key="k", ChecksumMode="ENABLED")
    assert answer["Body"].read() == b"checked" * 5000 and answer[f"Checksum{algorithm}"]


def test_metadata_and_headers(client, bucket: str):
    """Metadata and headers are returned unchanged."""
    client.put_object(
        Bucket=bucket, Key="k", Body=b"x", Metadata={"Color": "green", "empty": ""}, ContentType="text/css",
        CacheControl="no-store", ContentDisposition="inline", ContentEncoding="br", ContentLanguage="de",
    )
    head = client.head_object(Bucket=bucket, Key="k")
    assert head["Metadata"] == {"color": "green", "empty": ""}
    assert (head["ContentType"], head["CacheControl"]) == ("text/css", "no-store")
    assert (head["ContentDisposition"], head["ContentEncoding"], head["ContentLanguage"]) == ("inline", "br", "de")


def test_conditional_put(client, bucket: str):
    """IfNoneMatch and IfMatch."""
    etag = client.put_object(Bucket=bucket, Key="k", Body=b"1", IfNoneMatch="*")["ETag"]
    with pytest.raises(ClientError) as refused:
        client.put_object(Bucket=bucket, Key="k", Body=b"2", IfNoneMatch="*")
    assert refused.value.response["Error"]["Code"] == "PreconditionFailed"
    client.put_object(Bucket=bucket, Key="k", Body=b"3", IfMatch=etag)


def test_presigned_urls(client, bucket: str):
    """GET and PUT with the content type signed; another type is 403."""
    put = client.generate_presigned_url("put_object", {"Bucket": bucket, "Key": "a b", "ContentType": "image/png"})
    assert requests.put(put, data=b"png", headers={"Content-Type": "text/html"}, timeout=10).status_code == 403
    assert requests.put(put, data=b"png", headers={"Content-Type": "image/png"}, timeout=10).status_code == 200
    get = client.generate_presigned_url("get_object", {"Bucket": bucket, "Key": "a b"})
    answer = requests.get(get, timeout=10)
    assert answer.content == b"png" and answer.headers["content-type"] == "image/png"
    assert requests.head(get, timeout=10).status_code == 403


def test_the_middle_of_a_video(client, tree, bucket: str):
    """Ranged reads of the largest file, as a player makes them."""
    name = tree.largest()
    client.upload_file(str(tree.folder / name), bucket, "video.mp4", ExtraArgs={"ContentType": "video/mp4"})
    whole = (tree.folder / name).read_bytes()
    middle = len(whole) // 2
    answer = client.get_object(Bucket=bucket, Key="video.mp4", Range=f"bytes={middle}-{middle + 999_999}")
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 206 and answer["ContentType"] == "video/mp4"
    assert answer["Body"].read() == whole[middle : middle + 1_000_000]
    tail = client.get_object(Bucket=bucket, Key="video.mp4", Range="bytes=-1000")
    assert tail["Body"].read() == whole[-1000:]
    assert client.head_object(Bucket=bucket, Key="video.mp4")["ETag"].endswith(f'-{-(-len(whole) // (8 << 20))}"')


def test_streams_of_unknown_kind(client, bucket: str):
    """A file object with a length, as web frameworks hand them over."""
    client.put_object(Bucket=bucket, Key="k", Body=io.BytesIO(b"stream" * 20_000))
    client.upload_fileobj(io.BytesIO(b"fileobj" * 20_000), bucket, "k2")
    assert client.get_object(Bucket=bucket, Key="k")["Body"].read() == b"stream" * 20_000
    assert client.get_object(Bucket=bucket, Key="k2")["Body"].read() == b"fileobj" * 20_000


def test_managed_copies(client, bucket: str):
    """`copy` of a small object; of a large one only in one request, for its pieces would be UploadPartCopy."""
    body = random_bytes("managed copy", 2 * PART_BYTES)
    client.put_object(Bucket=bucket, Key="k", Body=body, Metadata={"color": "green"})
    with pytest.raises(ClientError) as refused:
        client.copy({"Bucket": bucket, "Key": "k"}, bucket, "in-parts")
    assert refused.value.response["Error"]["Code"] == "NotImplemented"
    client.copy({"Bucket": bucket, "Key": "k"}, bucket, "copy", Config=COPY_IN_ONE)
    found = client.get_object(Bucket=bucket, Key="copy")
    assert found["Body"].read() == body and found["Metadata"] == {"color": "green"}
    assert client.list_multipart_uploads(Bucket=bucket).get("Uploads", []) == []


@pytest.mark.parametrize("algorithm", ["CRC32", "CRC64NVME", "SHA256"])
def test_uploads_in_parts_with_checksums(client, bucket: str, algorithm: str):
    """upload_fileobj in parts, each with its checksum, validated on the way back."""
    body = random_bytes("managed upload", 2 * PART_BYTES + 4321)
    config = TransferConfig(multipart_threshold=PART_BYTES, multipart_chunksize=PART_BYTES)
    client.upload_fileobj(io.BytesIO(body), bucket, "k", Config=config, ExtraArgs={"ChecksumAlgorithm": algorithm})
    found = client.get_object(Bucket=bucket, Key="k", ChecksumMode="ENABLED")
    assert found["Body"].read() == body and found[f"Checksum{algorithm}"]


def test_presigned_parts(client, bucket: str):
    """A client with presigned URLs can upload the parts."""
    names = {"Bucket": bucket, "Key": "a b"}
    names["UploadId"] = client.create_multipart_upload(**names)["UploadId"]
    tags = []
    for number, body in ((1, b"1" * PART_BYTES), (2, b"2")):
        url = client.generate_presigned_url("upload_part", names | {"PartNumber": number})
        tags.append({"PartNumber": number, "ETag": requests.put(url, data=body, timeout=10).headers["etag"]})
    client.complete_multipart_upload(**names, MultipartUpload={"Parts": tags})
    assert client.get_object(Bucket=bucket, Key="a b")["Body"].read() == b"1" * PART_BYTES + b"2"


def test_what_is_not_implemented_raises(client, bucket: str):
    """Each operation raises NotImplemented, and the object stays."""
    client.put_object(Bucket=bucket, Key="k", Body=b"stays")
    calls = [
        lambda: client.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "k"}]}),
        lambda: client.list_objects(Bucket=bucket),
        lambda: client.put_object_tagging(Bucket=bucket, Key="k", Tagging={"TagSet": [{"Key": "a", "Value": "b"}]}),
        lambda: client.put_object_acl(Bucket=bucket, Key="k", ACL="public-read"),
        lambda: client.put_object(Bucket=bucket, Key="k", Body=b"x", ACL="public-read"),
        lambda: client.put_object(Bucket=bucket, Key="k", Body=b"x", ServerSideEncryption="AES256"),
        lambda: client.put_object(Bucket=bucket, Key="k", Body=b"x", Tagging="a=b"),
        lambda: client.get_bucket_policy(Bucket=bucket),
    ]
    for call in calls:
        with pytest.raises(ClientError) as refused:
            call()
        assert refused.value.response["Error"]["Code"] == "NotImplemented"
    assert client.get_object(Bucket=bucket, Key="k")["Body"].read() == b"stays"
