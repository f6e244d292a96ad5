"""CopyObject: metadata, tags, copies onto themselves, versions, checksums, unusual keys."""

from ..case import Case, scenario
from .multipart import upload_in_parts

JSON = '{"key": "value"}'


class Source:
    """A source object and the copies of it."""

    def __init__(self, case: Case, *, versioned: bool = False):
        self.case = case
        bucket = case.bucket()
        self.bucket = case.versioned(bucket) if versioned else bucket
        self.object = {"Bucket": self.bucket, "Key": "source-object"}
        self.path = f"{self.bucket}/source-object"

    def put(self, step: str, **options: object) -> dict:
        """Puts the source as a step."""
        return self.case.step(step, "put_object", **self.object, **options)

    def copy(self, step: str, key: str = "source-object", source: str = "", **options: object) -> dict:
        """Copies as a step, by default onto the source. A refusal does not end the scenario in strict mode."""
        answer = self.case.call("copy_object", Bucket=self.bucket, Key=key, CopySource=source or self.path, **options)
        self.case.match(step, answer)
        return answer

    def head(self, step: str, key: str = "source-object", **options: object) -> None:
        """Reads the metadata as a step."""
        self.case.step(step, "head_object", Bucket=self.bucket, Key=key, **options)

    def attributes(self, step: str, *names: str, key: str = "source-object") -> None:
        """Reads attributes as a step."""
        self.case.step(step, "get_object_attributes", Bucket=self.bucket, Key=key, ObjectAttributes=list(names))

    def tags(self, step: str, key: str = "source-object", **options: object) -> None:
        """Reads tags as a step."""
        self.case.step(step, "get_object_tagging", Bucket=self.bucket, Key=key, **options)


@scenario("TestS3::test_s3_copy_metadata_replace")
def metadata_replaced(case: Case) -> None:
    source = Source(case)
    source.put("put_object", Body=JSON, ContentType="application/json", Metadata={"key": "value"}, ContentLanguage="en-US")
    source.head("head_object")
    new = {"Metadata": {"another-key": "value"}, "ContentType": "image/jpg", "MetadataDirective": "REPLACE"}
    source.copy("copy_object", "source-object-copy", **new)
    source.head("head_object_copy", "source-object-copy")


@scenario("TestS3::test_s3_copy_metadata_directive_copy")
def metadata_copied(case: Case) -> None:
    source = Source(case)
    source.put("put-object", Body="test", Metadata={"key": "value"}, ContentLanguage="en-US")
    source.head("head-object")
    new = {"Metadata": {"another-key": "value"}, "ContentLanguage": "en-GB", "ContentType": "image/jpg", "MetadataDirective": "COPY"}
    source.copy("copy-object", "source-object-copy", **new)
    source.head("head-object-copy", "source-object-copy")


@scenario("TestS3::test_s3_copy_content_type_and_metadata")
def metadata_by_default(case: Case) -> None:
    source = Source(case)
    source.put("put_object", Body=JSON, ContentType="application/json", Metadata={"key": "value"})
    source.head("head_object")
    source.copy("copy_object", "source-object-copy")
    source.head("head_object_copy", "source-object-copy")
    source.copy("copy_object_second", "source-object-second-copy", Metadata={"another-key": "value"}, ContentType="application/javascript")
    source.head("head_object_second_copy", "source-object-second-copy")


def directive(case: Case) -> dict:
    """Returns the tagging directive of a scenario's name."""
    return {} if case.parameter == "None" else {"TaggingDirective": case.parameter}


@scenario("TestS3::test_s3_copy_tagging_directive", "COPY", "REPLACE", "None")
def tags_of_copies(case: Case) -> None:
    source = Source(case)
    source.put("put-object", Body="test", Tagging="key1=value1")
    source.tags("get-object-tag")
    source.copy("copy-object", "source-object-copy", Tagging="key2=value2", **directive(case))
    source.tags("get-copy-object-tag", "source-object-copy")
    source.copy("copy-object-tag-empty", "source-object-copy-tag-empty", **directive(case))
    source.tags("get-copy-object-tag-empty", "source-object-copy-tag-empty")


@scenario("TestS3::test_s3_copy_tagging_directive_versioned", "COPY", "REPLACE", "None")
def tags_of_copied_versions(case: Case) -> None:
    source = Source(case, versioned=True)
    first = source.put("put-object", Body="test", Tagging="key1=value1")["VersionId"]
    source.put("put-object-v2", Body="test-v2", Tagging="key1=value1-v2")
    source.tags("get-object-tag")
    source.tags("get-object-tag-v1", VersionId=first)
    for name, path in (("", source.path), ("-v1", f"{source.path}?versionId={first}")):
        copy, empty = f"source-object-copy{name}", f"source-object-copy-tag-empty{name}"
        source.copy(f"copy-object{name}", copy, path, Tagging="key2=value2", **directive(case))
        source.tags(f"get-copy-object-tag{name}", copy)
        source.copy(f"copy-object-tag-empty{name}", empty, path, **directive(case))
        source.tags(f"get-copy-object-tag-empty{name}", empty)


@scenario("TestS3::test_s3_copy_object_in_place")
def in_place(case: Case) -> None:
    source = Source(case)
    source.put("put_object", Body=JSON, ContentType="application/json", Metadata={"key": "value"})
    source.head("head_object")
    source.attributes("object-attrs", "StorageClass")
    source.copy("copy-object-in-place-no-change")
    source.copy("copy-object-in-place-with-storage-class", ChecksumAlgorithm="SHA256", StorageClass="STANDARD")
    source.attributes("object-attrs-after-copy", "StorageClass")
    case.step("object-acl", "get_object_acl", **source.object)
    source.copy("copy-object-in-place-with-acl", ACL="public-read")


@scenario("TestS3::test_s3_copy_object_in_place_versioned")
def in_place_versioned(case: Case) -> None:
    source = Source(case, versioned=True)
    source.put("put_object", Body=JSON, ContentType="application/json", Metadata={"key": "value"})
    source.head("head_object")
    source.attributes("object-attrs", "StorageClass")
    source.copy("copy-object-in-place-no-change")
    version = source.copy("copy-in-place-versioned", MetadataDirective="REPLACE")["VersionId"]
    source.head("head-object-copied")
    case.step("get-object-copied", "get_object", **source.object)
    case.versioned(source.bucket, "Suspended")
    source.copy("copy-in-place-versioned-suspended", MetadataDirective="REPLACE")
    source.head("head-object-copied-suspended")
    case.step("get-object-copied-suspended", "get_object", **source.object)
    source.head("head-object-previous-version-suspended", VersionId=version)
    case.versioned(source.bucket)
    source.copy("copy-in-place-versioned-re-enabled", MetadataDirective="REPLACE")


@scenario("TestS3::test_s3_copy_object_in_place_suspended_only")
def in_place_suspended(case: Case) -> None:
    source = Source(case)
    source.put("put_object", Body=JSON, ContentType="application/json", Metadata={"key": "value"})
    source.head("head_object")
    source.copy("copy-in-place-non-versioned", MetadataDirective="REPLACE")
    source.head("head-object-copied")
    case.step("get-object-copied", "get_object", **source.object)
    case.versioned(source.bucket, "Suspended")
    source.copy("copy-in-place-versioned-suspended", MetadataDirective="REPLACE")
    source.head("head-object-copied-suspended")
    case.step("get-object-copied-suspended", "get_object", **source.object)
    source.copy("copy-in-place-versioned-suspended-twice", MetadataDirective="REPLACE")


@scenario("TestS3::test_s3_copy_object_in_place_storage_class")
def in_place_with_class(case: Case) -> None:
    source = Source(case)
    source.put("put-object", Body="test", StorageClass="STANDARD")
    source.head("head-object")
    source.attributes("object-attrs", "StorageClass")
    source.copy("copy-object-in-place-with-storage-class", StorageClass="STANDARD")
    source.attributes("object-attrs-after-copy", "StorageClass")


@scenario("TestS3::test_s3_copy_object_in_place_metadata_directive")
def in_place_metadata(case: Case) -> None:
    source = Source(case)
    source.put("put_object", Body=JSON, ContentType="application/json", Metadata={"key": "value"})
    source.head("head_object")
    source.copy("no-metadata-directive-fail", Metadata={"key": "value"})
    source.copy("copy-replace-directive", Metadata={"key2": "value2"}, MetadataDirective="REPLACE")
    source.head("head-replace-directive")
    same = {"MetadataDirective": "COPY", "StorageClass": "STANDARD"}
    source.copy("copy-copy-directive", **same)
    source.head("head-copy-directive")
    source.copy("copy-copy-directive-ignore", **same, Metadata={"key3": "value3"})
    source.head("head-copy-directive-ignore")
    source.copy("copy-replace-directive-empty", MetadataDirective="REPLACE")
    source.head("head-replace-directive-empty")


ALGORITHMS = ("CRC32", "CRC32C", "SHA1", "SHA256", "CRC64NVME")


@scenario("TestS3::test_s3_copy_object_with_checksum", *ALGORITHMS)
def copy_with_checksum(case: Case) -> None:
    source = Source(case)
    source.put("put-object-no-checksum", Body=JSON, ContentType="application/json", Metadata={"key": "value"})
    source.attributes("object-attrs", "Checksum")
    new = {"Metadata": {"key1": "value1"}, "MetadataDirective": "REPLACE"}
    source.copy("copy-object-in-place-with-checksum", ChecksumAlgorithm=case.parameter, **new)
    source.attributes("object-attrs-after-copy", "Checksum")
    source.copy("copy-object-to-dest-keep-checksum", "dest-object")


@scenario("TestS3::test_s3_copy_object_with_default_checksum", *ALGORITHMS)
def copy_keeps_checksum(case: Case) -> None:
    source = Source(case)
    put = {"Body": JSON, "ContentType": "application/json", "Metadata": {"key": "value"}, "ChecksumAlgorithm": case.parameter}
    source.put("put-object-no-checksum", **put)
    source.attributes("object-attrs", "Checksum")
    source.copy("copy-object-in-place-with-no-checksum", Metadata={"key1": "value1"}, MetadataDirective="REPLACE")
    source.attributes("object-attrs-after-copy", "Checksum")
    source.copy("copy-object-to-dest-keep-checksum", "dest-object")
    source.attributes("dest-object-attrs-after-copy", "Checksum", key="dest-object")


@scenario("TestS3::test_s3_copy_object_wrong_format")
def malformed_source(case: Case) -> None:
    case.step("copy-object-wrong-copy-source", "copy_object", Bucket=case.bucket(), Key="destination-key", CopySource="wrongformat")


@scenario("TestS3::test_s3_copy_object_src_not_exists")
def missing_source(case: Case) -> None:
    case.without_checksums()
    bucket = case.bucket()
    target = {"Bucket": bucket, "Key": "copied-object"}
    case.step("copy-object-src-bucket-not-exists", "copy_object", **target, CopySource=f"{case.bucket_name()}/random-src-key")
    case.step("copy-object-src-object-not-exists", "copy_object", **target, CopySource=f"{bucket}/random-src-key")
    case.versioned(bucket)
    source = {"Bucket": bucket, "Key": "random-src-key"}
    version = case.step("put-obj-versioned", "put_object", **source, Body="")["VersionId"]
    marker = case.step("del-obj-versioned", "delete_object", **source)["VersionId"]
    case.step("copy-object-src-delete-marker-current-version", "copy_object", **target, CopySource=f"{bucket}/random-src-key")
    case.step("copy-object-src-target-delete-marker", "copy_object", **target, CopySource=f"{bucket}/random-src-key?versionId={marker}")
    case.step("copy-object-src-target-object-version", "copy_object", **target, CopySource=f"{bucket}/random-src-key?versionId={version}")


@scenario("TestS3::test_copy_object_special_character")
def unusual_sources(case: Case) -> None:
    bucket, target = case.bucket(), case.bucket()
    for key in ("file%2Fname", "test@key/", "test key/", "test key//", "a/%F0%9F%98%80/", "test+key"):
        case.step(f"put-object-src-special-char-{key}", "put_object", Bucket=bucket, Key=key, Body=b"test")
        # boto3 encodes the source.
        case.step(f"copy-object-special-char-{key}", "copy_object", Bucket=target, Key=key, CopySource=f"{bucket}/{key}")
    case.step("list-object-copy-dest-special-char", "list_objects_v2", Bucket=target)


@scenario("TestS3::test_multipart_copy_object_etag")
def copy_of_parts(case: Case) -> None:
    bucket = case.bucket()
    case.match("multipart-upload", upload_in_parts(case, bucket, "test.file", "test content 123"))
    copy = {"Bucket": bucket, "CopySource": f"{bucket}/test.file"}
    case.step("copy-object", "copy_object", **copy, Key="copy.file")
    case.step("copy-object-in-place", "copy_object", **copy, Key="test.file", MetadataDirective="REPLACE")
    case.step("head-obj", "head_object", Bucket=bucket, Key="test.file", ChecksumMode="ENABLED")
