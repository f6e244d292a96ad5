"""Versioning: writes, delete markers, restores and removals in every versioning state of a bucket."""

import pytest
from botocore.client import BaseClient

from harness.boto import headers, make_client, refused
from harness.expect import assert_error
from harness.s3 import S3, object_target
from harness.server import Cairn


def set_versioning(boto: BaseClient, bucket: str, status: str) -> None:
    """Sets the bucket's versioning status to `Enabled` or `Suspended`."""
    boto.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": status})


def put(boto: BaseClient, bucket: str, key: str, body: bytes) -> str | None:
    """Writes an object and returns its version id, if any."""
    return boto.put_object(Bucket=bucket, Key=key, Body=body).get("VersionId")


def read(boto: BaseClient, bucket: str, key: str, version: str | None = None) -> bytes:
    """Returns the bytes of the given version, or of the current one."""
    return boto.get_object(Bucket=bucket, Key=key, **({"VersionId": version} if version else {}))["Body"].read()


def versions(boto: BaseClient, bucket: str, **options: object) -> list[tuple[str, str, bool]]:
    """Returns key, version id and `IsLatest` of each version in one page."""
    found = boto.list_object_versions(Bucket=bucket, **options).get("Versions", [])
    return [(item["Key"], item["VersionId"], item["IsLatest"]) for item in found]


def markers(boto: BaseClient, bucket: str, **options: object) -> list[tuple[str, str, bool]]:
    """Returns key, version id and `IsLatest` of each delete marker in one page."""
    found = boto.list_object_versions(Bucket=bucket, **options).get("DeleteMarkers", [])
    return [(item["Key"], item["VersionId"], item["IsLatest"]) for item in found]


def test_unversioned_bucket_reports_no_version_ids(boto: BaseClient, bucket: str):
    """The bucket has no status, writes and deletes return no version id, and the list shows `null`."""
    assert "Status" not in boto.get_bucket_versioning(Bucket=bucket)
    assert put(boto, bucket, "k", b"1") is None and put(boto, bucket, "k", b"2") is None
    assert versions(boto, bucket) == [("k", "null", True)]
    found = boto.get_object(Bucket=bucket, Key="k")
    assert "VersionId" not in found and read(boto, bucket, "k", "null") == b"2"
    assert not {"VersionId", "DeleteMarker"} & set(boto.delete_object(Bucket=bucket, Key="k"))
    assert versions(boto, bucket) == [] and markers(boto, bucket) == []


def test_each_put_creates_a_version(boto: BaseClient, versioned: str):
    """Each version can be read by its id and is listed newest first. The last one is current."""
    assert boto.get_bucket_versioning(Bucket=versioned)["Status"] == "Enabled"
    bodies = [b"body %d" % number for number in range(25)]
    ids = [put(boto, versioned, "k", body) for body in bodies]
    assert len(set(ids)) == len(ids) and "null" not in ids
    assert versions(boto, versioned) == [("k", version, version == ids[-1]) for version in reversed(ids)]
    assert [read(boto, versioned, "k", version) for version in ids] == bodies
    found = boto.get_object(Bucket=versioned, Key="k")
    assert found["Body"].read() == bodies[-1] and found["VersionId"] == ids[-1]
    head = boto.head_object(Bucket=versioned, Key="k", VersionId=ids[3])
    assert (head["ContentLength"], head["VersionId"]) == (len(bodies[3]), ids[3])
    assert len(boto.list_objects_v2(Bucket=versioned)["Contents"]) == 1


def test_version_list_matches_the_object_metadata(boto: BaseClient, versioned: str):
    """The list shows size, ETag, checksum, storage class, owner and date of a version, as HEAD does."""
    version = boto.put_object(Bucket=versioned, Key="k", Body=b"12345", ChecksumAlgorithm="CRC32")["VersionId"]
    (item,) = boto.list_object_versions(Bucket=versioned)["Versions"]
    head = boto.head_object(Bucket=versioned, Key="k")
    assert (item["VersionId"], item["Size"], item["ETag"], item["StorageClass"]) == (version, 5, head["ETag"], "STANDARD")
    assert (item["ChecksumAlgorithm"], item["ChecksumType"]) == (["CRC32"], "FULL_OBJECT")
    assert item["Owner"]["ID"] and item["LastModified"].replace(microsecond=0) == head["LastModified"]


def test_delete_marker_hides_the_object_until_it_is_removed(boto: BaseClient, s3: S3, versioned: str):
    """Reads answer 404 with the marker's headers, or 405 by its id. Removing the marker restores the object."""
    version = put(boto, versioned, "k", b"here")
    deleted = boto.delete_object(Bucket=versioned, Key="k")
    marker = deleted["VersionId"]
    assert deleted["DeleteMarker"] is True and marker not in (version, "null")
    with refused(404, "NoSuchKey") as answer:
        boto.get_object(Bucket=versioned, Key="k")
    assert (headers(answer)["x-amz-delete-marker"], headers(answer)["x-amz-version-id"]) == ("true", marker)
    with refused(404) as answer:
        boto.head_object(Bucket=versioned, Key="k")
    assert headers(answer)["x-amz-delete-marker"] == "true"
    by_id = s3.get(versioned, "k", query=f"versionId={marker}")
    assert_error(by_id, 405, "MethodNotAllowed")
    assert by_id.get("allow") == "DELETE" and by_id.get("x-amz-delete-marker") == "true" and by_id.get("last-modified")
    assert s3.head(versioned, "k", query=f"versionId={marker}").status == 405
    assert "Contents" not in boto.list_objects_v2(Bucket=versioned)
    assert markers(boto, versioned) == [("k", marker, True)] and versions(boto, versioned) == [("k", version, False)]
    assert read(boto, versioned, "k", version) == b"here"

    removed = boto.delete_object(Bucket=versioned, Key="k", VersionId=marker)
    assert removed["DeleteMarker"] is True and removed["VersionId"] == marker
    assert read(boto, versioned, "k") == b"here" and versions(boto, versioned) == [("k", version, True)]


def test_delete_of_a_missing_key_creates_a_marker(boto: BaseClient, versioned: str):
    """As on AWS, every further delete adds another marker."""
    first = boto.delete_object(Bucket=versioned, Key="never")["VersionId"]
    second = boto.delete_object(Bucket=versioned, Key="never")["VersionId"]
    assert markers(boto, versioned) == [("never", second, True), ("never", first, False)]


def test_removed_version_is_permanently_deleted(boto: BaseClient, versioned: str):
    """Removing the current version makes the previous one current. Removing an older one does not affect the others."""
    one, two, three = (put(boto, versioned, "k", body) for body in (b"1", b"2", b"3"))
    removed = boto.delete_object(Bucket=versioned, Key="k", VersionId=three)
    assert removed["VersionId"] == three and "DeleteMarker" not in removed
    assert read(boto, versioned, "k") == b"2"
    boto.delete_object(Bucket=versioned, Key="k", VersionId=one)
    assert versions(boto, versioned) == [("k", two, True)]
    for version in (one, three):
        with refused(404, "NoSuchVersion"):
            read(boto, versioned, "k", version)
        with refused(404):
            boto.head_object(Bucket=versioned, Key="k", VersionId=version)
        assert boto.delete_object(Bucket=versioned, Key="k", VersionId=version)["VersionId"] == version
    boto.delete_object(Bucket=versioned, Key="k", VersionId=two)
    with refused(404, "NoSuchKey"):
        read(boto, versioned, "k")
    assert versions(boto, versioned) == []


def test_objects_written_before_versioning_become_version_null(boto: BaseClient, bucket: str):
    """Enabling versioning changes no object, and the next PUT keeps the old object as version `null`."""
    put(boto, bucket, "k", b"before")
    set_versioning(boto, bucket, "Enabled")
    assert versions(boto, bucket) == [("k", "null", True)] and read(boto, bucket, "k") == b"before"
    new = put(boto, bucket, "k", b"after")
    assert versions(boto, bucket) == [("k", new, True), ("k", "null", False)]
    assert read(boto, bucket, "k", "null") == b"before"


def test_suspended_bucket_replaces_only_the_null_version(boto: BaseClient, bucket: str):
    """Other versions survive. Each PUT and each DELETE replaces the previous `null` version."""
    put(boto, bucket, "k", b"before")
    set_versioning(boto, bucket, "Enabled")
    kept = put(boto, bucket, "k", b"kept")
    set_versioning(boto, bucket, "Suspended")
    assert boto.get_bucket_versioning(Bucket=bucket)["Status"] == "Suspended"
    assert put(boto, bucket, "k", b"suspended") is None
    assert versions(boto, bucket) == [("k", "null", True), ("k", kept, False)]
    assert read(boto, bucket, "k") == read(boto, bucket, "k", "null") == b"suspended"
    deleted = boto.delete_object(Bucket=bucket, Key="k")
    assert (deleted["DeleteMarker"], deleted["VersionId"]) == (True, "null")
    assert markers(boto, bucket) == [("k", "null", True)] and versions(boto, bucket) == [("k", kept, False)]
    assert read(boto, bucket, "k", kept) == b"kept"
    put(boto, bucket, "k", b"again")
    assert markers(boto, bucket) == [] and versions(boto, bucket) == [("k", "null", True), ("k", kept, False)]
    boto.delete_object(Bucket=bucket, Key="k", VersionId="null")
    assert read(boto, bucket, "k") == b"kept"
    set_versioning(boto, bucket, "Enabled")
    assert put(boto, bucket, "k", b"enabled again") not in (None, "null", kept)


def test_versions_of_the_same_millisecond_keep_their_order(s3: S3, boto: BaseClient, versioned: str):
    """Versions written as fast as one connection allows are listed in reverse order of writing."""
    with s3.connect() as connection:
        ids = []
        for number in range(200):
            response = s3.request("PUT", object_target(versioned, "k"), body=b"%d" % number, connection=connection)
            ids.append(response.get("x-amz-version-id"))
    assert [version for _, version, _ in versions(boto, versioned)] == ids[::-1]


def whole_list(page: dict) -> list[tuple[str, str]]:
    """Returns key and version id of each version and delete marker in a page."""
    items = page.get("Versions", []) + page.get("DeleteMarkers", [])
    return [(item["Key"], item["VersionId"]) for item in items]


def test_every_version_is_listed_once_across_pages(boto: BaseClient, versioned: str):
    """Versions and delete markers are complete and in order for every page size."""
    for key in ("a", "b/1", "c d+ü"):
        for number in range(3):
            put(boto, versioned, key, b"%d" % number)
        boto.delete_object(Bucket=versioned, Key=key)
    whole = boto.list_object_versions(Bucket=versioned)
    assert len(whole_list(whole)) == 12 and not whole["IsTruncated"]
    for size in (1, 2, 3, 5, 12):
        found, where = [], {}
        while True:
            page = boto.list_object_versions(Bucket=versioned, MaxKeys=size, **where)
            assert len(whole_list(page)) <= size and page["MaxKeys"] == size
            assert not found or max(found)[0] <= min(whole_list(page))[0], "a page has a key that sorts before the previous page"
            found += whole_list(page)
            if not page["IsTruncated"]:
                break
            where = {"KeyMarker": page["NextKeyMarker"], "VersionIdMarker": page["NextVersionIdMarker"]}
        assert sorted(found) == sorted(whole_list(whole)) and len(set(found)) == 12
    after_a = boto.list_object_versions(Bucket=versioned, KeyMarker="a")
    assert {key for key, _ in whole_list(after_a)} == {"b/1", "c d+ü"}
    assert boto.list_object_versions(Bucket=versioned, MaxKeys=0)["IsTruncated"] is False


def test_versions_and_markers_are_listed_in_order(s3: S3, boto: BaseClient, versioned: str):
    """The XML interleaves delete markers with versions, newest first within a key."""
    put(boto, versioned, "k", b"1")
    boto.delete_object(Bucket=versioned, Key="k")
    put(boto, versioned, "k", b"2")
    boto.delete_object(Bucket=versioned, Key="k")
    body = s3.request("GET", f"/{versioned}?versions").body.decode()
    places = [at for at in range(len(body)) if body.startswith(("<Version>", "<DeleteMarker>"), at)]
    assert [body[at : at + 4] for at in places] == ["<Del", "<Ver", "<Del", "<Ver"]


def test_version_lists_honour_prefix_and_delimiter(boto: BaseClient, versioned: str):
    """Each common prefix appears once, counts towards max-keys, and hides the versions below it."""
    for key in ("a", "b/1", "b/2", "c/3", "z"):
        put(boto, versioned, key, b"1")
        put(boto, versioned, key, b"2")
    page = boto.list_object_versions(Bucket=versioned, Delimiter="/")
    assert [item["Key"] for item in page["Versions"]] == ["a", "a", "z", "z"]
    assert [item["Prefix"] for item in page["CommonPrefixes"]] == ["b/", "c/"]
    assert {key for key, _, _ in versions(boto, versioned, Prefix="b/")} == {"b/1", "b/2"}
    found, prefixes, where = [], [], {}
    while True:
        page = boto.list_object_versions(Bucket=versioned, Delimiter="/", MaxKeys=1, **where)
        found += whole_list(page)
        prefixes += [item["Prefix"] for item in page.get("CommonPrefixes", [])]
        if not page["IsTruncated"]:
            break
        where = {"KeyMarker": page["NextKeyMarker"], "VersionIdMarker": page.get("NextVersionIdMarker", "")}
        where = {name: value for name, value in where.items() if value}
    assert [key for key, _ in found] == ["a", "a", "z", "z"] and prefixes == ["b/", "c/"]


@pytest.mark.parametrize("version", ["", "not-a-version", "%00", "null%20"])
def test_invalid_version_ids_are_refused(s3: S3, versioned: str, version: str):
    """Every method answers 400, and the object is unchanged."""
    s3.put(versioned, "k", b"stays")
    for method in ("GET", "DELETE"):
        assert_error(s3.request(method, object_target(versioned, "k", f"versionId={version}")), 400, "InvalidArgument", "InvalidURI")
    assert s3.head(versioned, "k", query=f"versionId={version}").status == 400
    assert s3.get(versioned, "k").body == b"stays"


def test_version_id_marker_without_key_marker_is_refused(s3: S3, versioned: str):
    """The answer is 400. Listing the versions of a single object is refused too."""
    version = s3.put(versioned, "k", b"x").get("x-amz-version-id")
    assert_error(s3.request("GET", f"/{versioned}?versions&version-id-marker={version}"), 400, "InvalidArgument")
    assert_error(s3.get(versioned, "k", query="versions"), 400, "InvalidRequest")


@pytest.mark.parametrize("document", [
    b"", b"<VersioningConfiguration><Status>enabled</Status></VersioningConfiguration>", b"<Other/>",
    b"<VersioningConfiguration><Status>On</Status></VersioningConfiguration>", b"<VersioningConfiguration>",
])
def test_invalid_versioning_documents_are_refused(s3: S3, boto: BaseClient, bucket: str, document: bytes):
    """The versioning state does not change."""
    response = s3.request("PUT", f"/{bucket}?versioning", body=document)
    assert_error(response, 400, "MalformedXML", "IllegalVersioningConfigurationException")
    assert "Status" not in boto.get_bucket_versioning(Bucket=bucket)


def test_versioning_document_with_a_wrong_digest_is_refused(s3: S3, boto: BaseClient, bucket: str):
    """A wrong Content-MD5 or checksum leaves the versioning state unchanged."""
    document = b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"
    for header in (("Content-MD5", "AAAAAAAAAAAAAAAAAAAAAA=="), ("x-amz-checksum-crc32", "AAAAAA==")):
        assert_error(s3.request("PUT", f"/{bucket}?versioning", [header], document), 400, "BadDigest")
    assert "Status" not in boto.get_bucket_versioning(Bucket=bucket)


def test_bucket_with_versions_cannot_be_deleted(boto: BaseClient, versioned: str):
    """A single delete marker is enough to keep the bucket."""
    version = put(boto, versioned, "k", b"x")
    marker = boto.delete_object(Bucket=versioned, Key="k")["VersionId"]
    for left in (version, marker):
        with refused(409, "BucketNotEmpty"):
            boto.delete_bucket(Bucket=versioned)
        boto.delete_object(Bucket=versioned, Key="k", VersionId=left)
    boto.delete_bucket(Bucket=versioned)


def test_write_conditions_treat_a_delete_marker_as_absent(boto: BaseClient, versioned: str):
    """If-None-Match succeeds and If-Match fails after a delete marker."""
    old = put(boto, versioned, "k", b"1")
    with refused(412, "PreconditionFailed"):
        boto.put_object(Bucket=versioned, Key="k", Body=b"2", IfNoneMatch="*")
    boto.delete_object(Bucket=versioned, Key="k")
    with refused(412, "PreconditionFailed"):
        boto.delete_object(Bucket=versioned, Key="k", VersionId=old, IfMatch='"x"')
    assert read(boto, versioned, "k", old) == b"1"
    with refused(404, "NoSuchKey"):
        boto.put_object(Bucket=versioned, Key="k", Body=b"2", IfMatch='"0cc175b9c0f1b6a831c399e269772661"')
    boto.put_object(Bucket=versioned, Key="k", Body=b"3", IfNoneMatch="*")
    assert read(boto, versioned, "k") == b"3"


def test_conditions_and_ranges_apply_to_the_requested_version(boto: BaseClient, versioned: str):
    """The current version has no influence on a read by version id."""
    old = boto.put_object(Bucket=versioned, Key="k", Body=b"0123456789")
    put(boto, versioned, "k", b"new")
    names = {"Bucket": versioned, "Key": "k", "VersionId": old["VersionId"]}
    assert boto.get_object(**names, Range="bytes=2-4", IfMatch=old["ETag"])["Body"].read() == b"234"
    with refused(304):
        boto.get_object(**names, IfNoneMatch=old["ETag"])


def test_kill_9_keeps_versions_and_their_order(own_store: Cairn):
    """The latest delete marker and the versioning state survive too."""
    own_store.s3.create_bucket("killed")
    boto = make_client(own_store.s3)
    set_versioning(boto, "killed", "Enabled")
    for body in (b"1", b"2", b"3"):
        put(boto, "killed", "k", body)
    boto.delete_object(Bucket="killed", Key="k")
    before = versions(boto, "killed"), markers(boto, "killed")
    own_store.kill()
    own_store.start()
    assert (versions(boto, "killed"), markers(boto, "killed")) == before
    assert boto.get_bucket_versioning(Bucket="killed")["Status"] == "Enabled"
    assert [read(boto, "killed", "k", version) for _, version, _ in before[0]] == [b"3", b"2", b"1"]
