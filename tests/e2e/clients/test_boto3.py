"""boto3, with its defaults over plain HTTP and with "when required"."""

import hashlib
import io
from pathlib import Path

import boto3
import pytest
import requests
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import ClientError

from harness.server import Cairn

ONE_PUT = TransferConfig(multipart_threshold=5 * 2**30)


def make_client(store: Cairn, **settings: object):
    """A client of the store."""
    return boto3.client(
        "s3", endpoint_url=store.endpoint, region_name="us-east-1",
        aws_access_key_id=store.secrets.root_access_key, aws_secret_access_key=store.secrets.root_secret_key,
        config=Config(signature_version="s3v4", s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}, **settings),
    )


REQUIRED = {"request_checksum_calculation": "when_required", "response_checksum_validation": "when_required"}


@pytest.fixture(params=[{}, REQUIRED], ids=["defaults", "when required"])
def client(request: pytest.FixtureRequest, store: Cairn):
    """Both ways of sending checksums."""
    return make_client(store, **request.param)


def test_copy_a_tree_in_and_out(client, tree, out: Path, bucket: str):
    """upload_file and download_file of every file, byte for byte; the list agrees."""
    for name in tree.content:
        client.upload_file(str(tree.folder / name), bucket, name, Config=ONE_PUT)
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
    """What goes in comes out."""
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
    client.upload_file(str(tree.folder / name), bucket, "video.mp4", Config=ONE_PUT, ExtraArgs={"ContentType": "video/mp4"})
    whole = (tree.folder / name).read_bytes()
    middle = len(whole) // 2
    answer = client.get_object(Bucket=bucket, Key="video.mp4", Range=f"bytes={middle}-{middle + 999_999}")
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 206 and answer["ContentType"] == "video/mp4"
    assert answer["Body"].read() == whole[middle : middle + 1_000_000]
    tail = client.get_object(Bucket=bucket, Key="video.mp4", Range="bytes=-1000")
    assert tail["Body"].read() == whole[-1000:]
    assert hashlib.md5(whole).hexdigest() == client.head_object(Bucket=bucket, Key="video.mp4")["ETag"].strip('"')


def test_streams_of_unknown_kind(client, bucket: str):
    """A file object with a length, as web frameworks hand them over."""
    client.put_object(Bucket=bucket, Key="k", Body=io.BytesIO(b"stream" * 20_000))
    client.upload_fileobj(io.BytesIO(b"fileobj" * 20_000), bucket, "k2", Config=ONE_PUT)
    assert client.get_object(Bucket=bucket, Key="k")["Body"].read() == b"stream" * 20_000
    assert client.get_object(Bucket=bucket, Key="k2")["Body"].read() == b"fileobj" * 20_000


def test_what_is_not_implemented_raises(client, bucket: str):
    """Each by its name, and the object stays."""
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
