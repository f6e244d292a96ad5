"""Conditions on what PutObject, CompleteMultipartUpload, CopyObject and DeleteObject replace."""

import datetime as dt

from ..case import Case, scenario

KEY = "test-precondition"
EMPTY_MD5 = "d41d8cd98f00b204e9800998ecf8427e"


class Target:
    """The object that a scenario writes, and its uploads of one part."""

    def __init__(self, case: Case, *, versioned: bool = False, key: str = KEY):
        self.case = case
        bucket = case.bucket()
        self.bucket = case.versioned(bucket) if versioned else bucket
        self.object = {"Bucket": self.bucket, "Key": key}

    def put(self, step: str, **options: object) -> dict:
        """Puts the object as a step."""
        return self.case.step(step, "put_object", **self.object, **options)

    def delete(self, step: str, **options: object) -> dict:
        """Deletes the object as a step."""
        return self.case.step(step, "delete_object", **self.object, **options)

    def start(self, step: str | None) -> dict:
        """Creates an upload, as a step if it is one, sends its part, and returns the parameters of its completion."""
        create = "create_multipart_upload"
        made = self.case.step(step, create, **self.object) if step else self.case.do(create, **self.object)
        upload = self.object | {"UploadId": made["UploadId"]}
        part = self.case.do("upload_part", **upload, PartNumber=1, Body="test")
        return upload | {"MultipartUpload": {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}}

    def complete(self, step: str, upload: dict, **conditions: str) -> dict:
        """Completes an upload as a step."""
        return self.case.step(step, "complete_multipart_upload", **upload, **conditions)

    def list(self) -> None:
        """Lists the versions."""
        self.case.step("list-object-versions", "list_object_versions", Bucket=self.bucket)


@scenario("TestS3ObjectWritePrecondition::test_put_object_if_none_match")
def put_if_none_match(case: Case) -> None:
    target = Target(case)
    target.put("put-obj", IfNoneMatch="*")
    target.put("put-obj-if-none-match", IfNoneMatch="*")
    target.delete("del-obj")
    target.put("put-obj-after-del", IfNoneMatch="*")


@scenario("TestS3ObjectWritePrecondition::test_put_object_if_none_match_validation")
def put_if_none_match_tag(case: Case) -> None:
    target = Target(case, key="test-precondition-validation")
    tag = target.put("put-obj")["ETag"]
    target.put("put-obj-if-none-match-bad-value", IfNoneMatch=tag)


@scenario("TestS3ObjectWritePrecondition::test_put_object_if_none_match_versioned_bucket")
def put_if_none_match_versioned(case: Case) -> None:
    target = Target(case, versioned=True)
    target.put("put-obj", IfNoneMatch="*")
    target.put("put-obj-if-none-match", IfNoneMatch="*")
    target.delete("del-obj")
    target.put("put-obj-after-del", IfNoneMatch="*")
    target.list()


@scenario("TestS3ObjectWritePrecondition::test_multipart_if_none_match_with_delete")
def complete_if_none_match_deleted(case: Case) -> None:
    target = Target(case)
    target.put("put-obj", IfNoneMatch="*")
    upload = target.start("create-multipart")
    target.complete("complete-multipart-if-none-match", upload, IfNoneMatch="*")
    target.delete("del-obj")
    target.complete("complete-multipart-after-del", upload, IfNoneMatch="*")
    target.complete("complete-multipart-after-del-restart", target.start(None), IfNoneMatch="*")


@scenario("TestS3ObjectWritePrecondition::test_multipart_if_none_match_with_put")
def complete_if_none_match_put(case: Case) -> None:
    target = Target(case)
    upload = target.start("create-multipart")
    target.put("put-obj", IfNoneMatch="*")
    target.complete("complete-multipart-if-none-match-put-during", upload, IfNoneMatch="*")


@scenario("TestS3ObjectWritePrecondition::test_put_object_if_match")
def put_if_match(case: Case) -> None:
    target = Target(case)
    tag = target.put("put-obj", Body="test")["ETag"]
    target.put("put-obj-if-match-wrong-etag", IfMatch=EMPTY_MD5)
    target.put("put-obj-overwrite", IfMatch=tag)
    target.delete("del-obj")
    target.put("put-obj-if-match-key-not-exists", IfMatch=tag)
    target.put("put-obj-after-del")


@scenario("TestS3ObjectWritePrecondition::test_put_object_if_match_validation")
def put_if_match_odd(case: Case) -> None:
    target = Target(case, key="test-precondition-validation")
    target.put("put-obj-if-match-star-value", IfMatch="*")
    target.put("put-obj-if-match-bad-value", IfMatch="abcdef")
    target.put("put-obj-if-match-bad-value-2", IfMatch="bad-char_/")


@scenario("TestS3ObjectWritePrecondition::test_put_object_if_match_and_if_none_match_validation")
def put_both(case: Case) -> None:
    Target(case, key="test-precondition-validation").put("put-obj-both-precondition", IfMatch="abcdef", IfNoneMatch="*")


@scenario("TestS3ObjectWritePrecondition::test_put_object_if_match_versioned_bucket")
def put_if_match_versioned(case: Case) -> None:
    target = Target(case, versioned=True)
    first = target.put("put-obj", Body="test")["ETag"]
    target.put("put-obj-if-none-match-bad-value", IfMatch="abcdef")
    target.delete("del-obj")
    target.put("put-obj-after-del-exc", IfMatch=first)
    second = target.put("put-obj-after-del", Body="test-after-del")["ETag"]
    target.put("put-obj-if-match", Body="test-if-match", IfMatch=second)
    target.list()


@scenario("TestS3ObjectWritePrecondition::test_multipart_if_match_with_put")
def complete_if_match_put(case: Case) -> None:
    target = Target(case)
    before = target.put("put-obj", Body="test")["ETag"]
    upload = target.start("create-multipart")
    during = target.put("put-obj-during", Body="test2")["ETag"]
    target.complete("complete-multipart-if-match-put-before", upload, IfMatch=before)
    target.complete("complete-multipart-if-match-put-during", upload, IfMatch=during)
    target.complete("complete-multipart-if-match-put-before-restart", target.start("create-multipart-again"), IfMatch=during)


@scenario("TestS3ObjectWritePrecondition::test_multipart_if_match_with_put_identical")
def complete_if_match_same(case: Case) -> None:
    target = Target(case)
    target.put("put-obj", Body="test")
    upload = target.start("create-multipart")
    tag = target.put("put-obj-during", Body="test")["ETag"]
    target.complete("complete-multipart-if-match-put-during", upload, IfMatch=tag)
    target.complete("complete-multipart-if-match-put-before-restart", target.start("create-multipart-again"), IfMatch=tag)


@scenario("TestS3ObjectWritePrecondition::test_multipart_if_match_with_delete")
def complete_if_match_deleted(case: Case) -> None:
    target = Target(case)
    tag = target.put("put-obj", Body="test")["ETag"]
    upload = target.start("create-multipart")
    target.delete("del-obj")
    target.complete("complete-multipart-after-del", upload, IfMatch=tag)
    again = target.put("put-obj-2", Body="test")["ETag"]
    target.complete("complete-multipart-if-match-after-put", upload, IfMatch=again)


@scenario("TestS3ObjectWritePrecondition::test_multipart_if_match_etag")
def complete_if_match_tag(case: Case) -> None:
    target = Target(case)
    tag = target.put("put-obj", Body="test")["ETag"]
    made = target.complete("complete-multipart-if-match", target.start("create-multipart"), IfMatch=tag)
    upload = target.start("create-multipart-overwrite")
    target.complete("complete-multipart-if-match-true-etag", upload, IfMatch=tag)
    target.complete("complete-multipart-if-match-overwrite-multipart", upload, IfMatch=made["ETag"])


def copier(case: Case, target: Target, key: str = "source-object") -> dict:
    """Puts the source of a copy and returns the copy's parameters."""
    case.put(target.bucket, key, "source content")
    return {"CopySource": f"{target.bucket}/{key}"}


@scenario("TestS3ObjectWritePrecondition::test_copy_object_if_none_match")
def copy_if_none_match(case: Case) -> None:
    target = Target(case, key="dest-object")
    copy = target.object | copier(case, target) | {"IfNoneMatch": "*"}
    case.step("copy-obj", "copy_object", **copy)
    case.step("copy-obj-if-none-match-fail", "copy_object", **copy)


@scenario("TestS3ObjectWritePrecondition::test_copy_object_if_match")
def copy_if_match(case: Case) -> None:
    target = Target(case, key="dest-object")
    source = copier(case, target)
    tag = case.do("put_object", **target.object, Body="initial content")["ETag"]
    case.step("copy-obj-if-match", "copy_object", **target.object, **source, IfMatch=tag)
    case.step("copy-obj-if-match-fail-wrong-etag", "copy_object", **target.object, **source, IfMatch='"wrong-etag"')
    case.step("copy-obj-if-match-fail-no-object", "copy_object", **target.object | {"Key": "non-existent-key"}, **source, IfMatch=tag)


@scenario("TestS3ObjectWritePrecondition::test_copy_object_if_none_match_versioned_bucket")
def copy_if_none_match_versioned(case: Case) -> None:
    target = Target(case, versioned=True, key="dest-object")
    copy = target.object | copier(case, target) | {"IfNoneMatch": "*"}
    case.step("copy-obj", "copy_object", **copy)
    case.step("copy-obj-if-none-match-fail", "copy_object", **copy)
    target.delete("del-obj")
    case.step("copy-obj-after-del", "copy_object", **copy)
    target.list()


@scenario("TestS3ObjectWritePrecondition::test_copy_object_if_match_versioned_bucket")
def copy_if_match_versioned(case: Case) -> None:
    target = Target(case, versioned=True, key="dest-object")
    copy = target.object | copier(case, target)
    first = target.put("put-obj", Body="initial content")["ETag"]
    case.step("copy-obj-if-match-wrong-etag", "copy_object", **copy, IfMatch='"wrong-etag"')
    target.delete("del-obj")
    case.step("copy-obj-after-del-exc", "copy_object", **copy, IfMatch=first)
    second = target.put("put-obj-after-del", Body="new content after delete")["ETag"]
    case.step("copy-obj-if-match", "copy_object", **copy, IfMatch=second)
    target.list()


@scenario("TestS3ObjectWritePrecondition::test_copy_object_precondition_write_validation")
def copy_odd_conditions(case: Case) -> None:
    target = Target(case, key="dest-object")
    tag = case.put(target.bucket, "source-object", "source content")["ETag"]
    copy = target.object | {"CopySource": f"{target.bucket}/source-object"}
    case.match("copy-obj-none-match-etag", case.call("copy_object", **copy, IfNoneMatch=tag))
    case.match("copy-obj-if-match-star", case.call("copy_object", **copy, IfMatch="*"))
    case.match("copy-obj-both", case.call("copy_object", **copy, IfMatch="*", IfNoneMatch=tag))


@scenario("TestS3ObjectWritePrecondition::test_copy_object_if_none_match_in_place")
def copy_in_place_if_none_match(case: Case) -> None:
    target = Target(case, key="source-object")
    copy = target.object | copier(case, target) | {"StorageClass": "STANDARD"}
    case.step("copy-obj-if-none-match-fail", "copy_object", **copy, IfNoneMatch="*")


@scenario("TestS3ObjectWritePrecondition::test_copy_object_if_match_in_place")
def copy_in_place_if_match(case: Case) -> None:
    target = Target(case, key="source-object")
    tag = case.do("put_object", **target.object, Body="source content")["ETag"]
    copy = target.object | {"CopySource": f"{target.bucket}/source-object", "StorageClass": "STANDARD"}
    case.step("copy-obj-if-match-in-place", "copy_object", **copy, IfMatch=tag)


def delete_if(case: Case, step: str, **conditions: object) -> None:
    """Deletes an object on conditions that do not hold."""
    target = Target(case)
    case.do("put_object", **target.object)
    target.delete(step, **conditions)


YESTERDAY = dt.timedelta(days=-1)


@scenario("TestS3DeletePrecondition::test_delete_object_if_match_non_express")
def delete_if_match(case: Case) -> None:
    delete_if(case, "delete-obj-if-match", IfMatch="badvalue")


@scenario("TestS3DeletePrecondition::test_delete_object_if_match_modified_non_express")
def delete_if_modified(case: Case) -> None:
    delete_if(case, "delete-obj-if-match-last-modified", IfMatchLastModifiedTime=dt.datetime.now(dt.UTC) + YESTERDAY)


@scenario("TestS3DeletePrecondition::test_delete_object_if_match_size_non_express")
def delete_if_size(case: Case) -> None:
    delete_if(case, "delete-obj-if-match-size", IfMatchSize=10)


@scenario("TestS3DeletePrecondition::test_delete_object_if_match_all_non_express")
def delete_if_all(case: Case) -> None:
    modified = dt.datetime.now(dt.UTC) + YESTERDAY
    delete_if(case, "delete-obj-if-match-all", IfMatch="badvalue", IfMatchSize=10, IfMatchLastModifiedTime=modified)
