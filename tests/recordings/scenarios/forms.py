"""Browser forms: policies, their conditions, fields, errors."""

import datetime as dt

import requests

from ..case import STRICT, Case, Ended, scenario
from .presigned import VERSIONS, document, signer


class Form:
    """Forms for one key."""

    def __init__(self, case: Case, key: str, version: str = "s3v4"):
        self.case, self.key, self.bucket = case, key, case.bucket()
        self.client = signer(case, version)

    def sign(self, *conditions: object, key: str = "", expires: int = 60, **fields: str) -> dict:
        """Returns a signed form with conditions and further fields."""
        names = {name.replace("_", "-") if name.startswith(("x_amz", "Con", "Cac")) else name: value for name, value in fields.items()}
        return self.client.generate_presigned_post(
            self.bucket, key or self.key, Fields=names, Conditions=[{"bucket": self.bucket}, *conditions], ExpiresIn=expires,
        )

    def post(self, form: dict, body: object = "abcdef", **headers: str) -> requests.Response:
        """Posts a form. Strict mode has none, which ends the scenario."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        response = requests.post(form["url"], data=form["fields"], files={"file": body}, headers=sent, allow_redirects=False)
        if self.case.mode == STRICT:
            # Without the content type of a form it is a request without a signature.
            assert response.status_code == (403 if "Content-Type" in sent else 501), response.text
            raise Ended
        return response

    def refuse(self, step: str, form: dict, body: object = "abcdef", **headers: str) -> None:
        """Posts a form that is refused, as a step."""
        response = self.post(form, body, **headers)
        self.case.match(step, document(response, status="StatusCode" in self.case.recorded[step]))

    def head(self, step: str, **options: str) -> None:
        """Reads the object's metadata as a step."""
        self.case.step(step, "head_object", Bucket=self.bucket, Key=self.key, **options)

    def get(self, step: str) -> None:
        """Reads the object as a step."""
        self.case.step(step, "get_object", Bucket=self.bucket, Key=self.key)


@scenario("TestS3PresignedPost::test_post_request_expires")
def expired(case: Case) -> None:
    form = Form(case, "test-presigned-post-key")
    form.refuse("exception", form.sign(expires=-2), "file content")


@scenario("TestS3PresignedPost::test_post_request_malformed_policy", *VERSIONS)
def changed_policy(case: Case) -> None:
    form = Form(case, "test-presigned-malformed-policy", case.parameter)
    signed = form.sign()
    signed["fields"]["policy"] = signed["fields"]["policy"][:-2]
    form.refuse("exception-policy", signed, "file content")


@scenario("TestS3PresignedPost::test_post_request_missing_signature", *VERSIONS)
def missing_signature(case: Case) -> None:
    form = Form(case, "test-presigned-missing-signature", case.parameter)
    signed = form.sign()
    signed["fields"].pop("signature" if case.parameter == "s3" else "x-amz-signature")
    form.refuse("exception-missing-signature", signed, "file content")


@scenario("TestS3PresignedPost::test_post_request_missing_fields", *VERSIONS)
def missing_fields(case: Case) -> None:
    form = Form(case, "test-presigned-missing-fields", case.parameter)
    signed = form.sign()
    for name in ("AWSAccessKeyId", "x-amz-algorithm", "x-amz-credential"):
        signed["fields"].pop(name, None)
    form.refuse("exception-missing-fields", signed, "file content")
    signed["fields"] = {name: value for name, value in signed["fields"].items() if name in ("key", "policy")}
    form.refuse("exception-no-sig-related-fields", signed, "file content")


TAGS = {
    "single": "<Tagging><TagSet><Tag><Key>TagName</Key><Value>TagValue</Value></Tag></TagSet></Tagging>",
    "list": "<Tagging><TagSet><Tag><Key>TagName</Key><Value>TagValue</Value></Tag>"
    "<Tag><Key>TagName2</Key><Value>TagValue2</Value></Tag></TagSet></Tagging>",
    "invalid": "<InvalidXmlTagging></InvalidXmlTagging>", "notxml": "not-xml",
}


@scenario("TestS3PresignedPost::test_post_object_with_tags", *TAGS)
def tags(case: Case) -> None:
    form = Form(case, "test-presigned-post-key-tagging")
    signed = form.sign(["eq", "$tagging", TAGS[case.parameter]], tagging=TAGS[case.parameter])
    if case.parameter == "notxml":
        form.refuse("tagging-error", signed, "test-body-tagging")
        return
    form.post(signed, "test-body-tagging")
    case.step("get-tagging", "get_object_tagging", Bucket=form.bucket, Key=form.key)


def soon() -> str:
    """Returns a date that caches understand."""
    return (dt.datetime.now(dt.UTC) + dt.timedelta(minutes=10)).strftime("%a, %d %b %Y %H:%M:%S GMT")


@scenario("TestS3PresignedPost::test_post_object_with_metadata")
def metadata(case: Case) -> None:
    form, until = Form(case, "test-presigned-post-key-metadata"), soon()
    fields = {"x-amz-meta-test-1": "test-meta-1", "x-amz-meta-TEST-2": "test-meta-2", "Content-Type": "text/plain", "Expires": until}
    form.post(form.sign(*(["eq", f"${name}", value] for name, value in fields.items()), **fields), "test-body-tagging")
    form.head("head-object")


@scenario("TestS3PresignedPost::test_post_object_with_unicode_metadata")
def utf8_metadata(case: Case) -> None:
    form = Form(case, "test_unicode—_file.pdf")
    safe = "! \"#$%&'()*+,-./0123456789:;<>'?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~\t"
    fields = {
        "Content-Disposition": 'filename="test_—_file%E2%80%94_é_2-.pdf"', "Cache-Control": "non-ascii-%E2%80%94_—_é_",
        "x-amz-meta-nonascii": "ÄMÄZÕÑ S3", "x-amz-meta-nonascii-2": "test_—_file%E2%80%94_é_2👑.pdf", "x-amz-meta-safe-chars": safe,
        "x-amz-meta-utf-8": "\x00\x01\x02\x03\x04", "x-amz-meta-q-encoded": "=?UTF-8?Q?actually-ascii?=",
        "x-amz-meta-b-encoded": "=?UTF-8?B?YWJj?=", "success_action_status": "201",
    }
    response = form.post(form.sign(*(["eq", f"${name}", value] for name, value in fields.items()), **fields), "test-body-tagging")
    case.match("post-object", document(response, status=False) | {"LocationHeader": response.headers.get("Location", "")})
    form.head("head-object")


@scenario("TestS3PresignedPost::test_post_object_with_storage_class")
def storage_class(case: Case) -> None:
    form = Form(case, "test-presigned-post-key-storage-class")
    for name in ("STANDARD_IA", "FakeClass"):
        signed = form.sign(["eq", "$x-amz-storage-class", name], **{"x-amz-storage-class": name})
        if name == "FakeClass":
            form.refuse("invalid-storage-error", signed, "test-body-storage-class")
        else:
            form.post(signed, "test-body-storage-class")
            form.head("head-object")


@scenario("TestS3PresignedPost::test_post_object_with_wrong_content_type")
def another_type(case: Case) -> None:
    form = Form(case, "test-presigned-post-key-wrong-content-type")
    form.refuse("invalid-content-type-error", form.sign(), "test-body-wrong-content-type", Content_Type="text/html")


@scenario("TestS3PresignedPost::test_post_object_default_checksum")
def default_checksum(case: Case) -> None:
    form = Form(case, "test-presigned-post-checksum")
    form.post(form.sign(), "test-body-tagging")
    form.head("head-object", ChecksumMode="ENABLED")


@scenario("TestS3PresignedPost::test_post_object_with_file_as_string")
def file_without_name(case: Case) -> None:
    form = Form(case, "test-presigned-post-file-as-field")
    form.post(form.sign(), (None, "test-body-file-as-field"))
    form.head("head-object")
    form.post(form.sign(key="file-as-field-${filename}"), (None, "test-body-file-as-field-filename-replacement"))
    case.step("list-objects", "list_objects_v2", Bucket=form.bucket)


@scenario("TestS3PresignedPost::test_post_object_policy_validation_size")
def sizes(case: Case) -> None:
    form = Form(case, "validate-policy-content-length")
    signed = form.sign(["content-length-range", 5, 10])
    form.refuse("invalid-content-length-too-big", signed, "a" * 12)
    form.refuse("invalid-content-length-too-small", signed, "a")
    form.post(signed, "a" * 10)
    form.get("final-object")
    form.refuse("invalid-content-length-wrong-type", form.sign(["content-length-range", "test", "10"]), "a" * 10)


REDIRECT = "http://localhost.test/random"


@scenario("TestS3PresignedPost::test_post_object_policy_conditions_validation_eq")
def equal_conditions(case: Case) -> None:
    form, until = Form(case, "validate-policy-1"), soon()
    signed = form.sign(["eq", "$success_action_redirect", REDIRECT], success_action_redirect=REDIRECT)
    signed["fields"]["success_action_redirect"] = "http://wrong.location/test"
    form.refuse("invalid-condition-eq", signed)
    for step, condition in (
        ("missing-prefix", ["eq", "success_action_redirect", REDIRECT]), ("wrong-condition", {"bucket": form.bucket, "success_action_redirect": REDIRECT}),
        ("wrong-value-casing", ["eq", "$success_action_redirect", REDIRECT.replace("http", "HTTP")]),
    ):
        form.refuse(f"invalid-condition-{step}", form.sign(condition, success_action_redirect=REDIRECT))
    fields = {"x-amz-meta-test-1": "test-meta-1", "x-amz-meta-TEST-2": "test-meta-2", "Content-Type": "text/plain", "Expires": until}
    names = ("$x-amz-meta-test-1", "$x-amz-meta-test-2", "$content-type", "$Expires")
    form.post(form.sign(*(["eq", name, value] for name, value in zip(names, fields.values(), strict=True)), **fields))
    form.head("head-object-metadata")
    form.post(form.sign(["eq", "$success_Action_REDIRECT", REDIRECT], success_action_redirect=REDIRECT))
    form.get("final-object")


@scenario("TestS3PresignedPost::test_post_object_policy_conditions_validation_starts_with")
def beginning_conditions(case: Case) -> None:
    form = Form(case, "validate-policy-2")
    signed = form.sign(["starts-with", "$success_action_redirect", "http://localhost"], success_action_redirect=REDIRECT)
    signed["fields"]["success_action_redirect"] = "http://wrong.location/test"
    form.refuse("invalid-condition-starts-with", signed)
    signed["fields"]["success_action_redirect"] = REDIRECT.replace("http", "HTTP")
    form.refuse("invalid-condition-starts-with-casing", signed)
    signed["fields"]["success_action_redirect"] = REDIRECT
    form.post(signed)
    form.get("get-object-1")
    signed = form.sign(["starts-with", "$success_action_redirect", ""], success_action_redirect=REDIRECT)
    signed["fields"]["success_action_redirect"] = "http://wrong.location/test"
    form.post(signed, "manual value to change ETag")
    form.get("get-object-2")
