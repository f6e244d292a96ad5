"""What Cairn answers in another way than AWS did, each with its reason. `docs/s3-api.md` lists the kinds.

Only what a scenario shows is here. An entry that no longer applies fails the test of its scenario.
"""

from dataclasses import dataclass

# Never compared, with the reason.
IGNORED = {
    "ResponseMetadata": "the status is compared; headers and request ids are those of the connection",
    "*.Message": "messages are worded by each server",
    "*.RequestId": "differs with every request",
    "*.HostId": "differs with every request",
    "ServerSideEncryption": "AWS encrypts every object; encryption at rest is a setting of the server here",
    "x-amz-id-2": "differs with every request",
    "x-amz-request-id": "differs with every request",
    "x-amz-server-side-encryption": "AWS encrypts every object; encryption at rest is a setting of the server here",
    "*.@xmlns": "the namespace of documents is that of AWS, which boto3 and other tests check",
    "BucketArn": "there are no ARNs",
    "*.BucketArn": "there are no ARNs",
    "x-amz-bucket-arn": "there are no ARNs",
    "AccessPointAlias": "there are no access points",
    "x-amz-access-point-alias": "there are no access points",
    "*.DisplayName": "AWS no longer names owners",
}
# Elements that AWS does not have in an answer, and that Cairn adds everywhere.
ADDITIONS = {
    "*Error.BucketName": "every error names its bucket",
    "*Error.Key": "every error names its key",
    "*Error.Resource": "every error names its resource, as AWS's documentation has it",
}


@dataclass(frozen=True)
class Kind:
    """A kind of difference that is meant. The texts are those of the table in the documentation."""

    aws: str
    cairn: str
    reason: str


KINDS: dict[str, Kind] = {
    "no-default-checksum": Kind(
        "an object or upload without a checksum gets CRC64NVME, and the checksums of its parts count no more",
        "it has no checksum; checksums of its parts are verified and listed",
        "every block is checked anyway; computing another checksum would slow down every upload",
    ),
    "conditional-writes": Kind(
        "`If-None-Match` takes only `*` and `If-Match` only tags, never both: 501",
        "both take what RFC 9110 allows",
        "a condition that can be decided is decided",
    ),
    "conditional-deletes": Kind(
        "`x-amz-if-match-size` and `x-amz-if-match-last-modified-time` are 501",
        "they are compared: 412",
        "directory buckets of AWS have them",
    ),
    "bucket-exists": Kind(
        "us-east-1 answers 200 when its owner creates a bucket again",
        "409 `BucketAlreadyOwnedByYou`",
        "all other regions answer so; a script learns that it made nothing",
    ),
    "lock-at-creation": Kind(
        "Object Lock can be enabled on a versioned bucket",
        "409 `InvalidBucketState`; only CreateBucket enables it",
        "versions from before would have no default retention; the specification wants it so",
    ),
    "exact-origins": Kind(
        "an `AllowedOrigin` may contain a `*`",
        "400 in `strict`",
        "the specification wants exact origins",
    ),
    "vary": Kind(
        "only responses that a rule allows have `Vary`",
        "all responses of a bucket with rules have it",
        "a cache must not give the response for one origin to another",
    ),
    "key-of-tags": Kind(
        "`NoSuchKey` of GetObjectTagging names bucket and key in `Key`",
        "`Key` is the key",
        "as in all other errors",
    ),
    "aws-fails": Kind(
        "repeated tags in CreateBucket are 500 `InternalError`",
        "400 `InvalidTag`",
        "a fault of AWS",
    ),
    "any-wrong-part": Kind(
        "`InvalidPart` names any of several wrong parts",
        "it names the first",
        "AWS checks parts at the same time",
    ),
    "marker-of-prefix": Kind(
        "a page of uploads that ends with a common prefix has no `NextKeyMarker`",
        "it is the common prefix",
        "nobody could ask for the next page",
    ),
    "no-acls": Kind(
        "an ACL that a bucket allows is stored; on a copy onto itself it is 400 `InvalidRequest`",
        "400 `AccessControlListNotSupported`",
        "there are no ACLs",
    ),
    "storage-class": Kind(
        "there are several storage classes, and others are `InvalidStorageClass`",
        "501 for all but `STANDARD`",
        "nothing is accepted that has no effect",
    ),
    "lifecycle-filters": Kind(
        "rules may have `Date`, `ObjectSizeGreaterThan` and `ObjectSizeLessThan`",
        "501",
        "not implemented; a rule without its filter would delete too much",
    ),
    "transition-size": Kind(
        "`x-amz-transition-default-minimum-object-size: varies_by_storage_class`",
        "400 `InvalidRequest`",
        "there are no transitions",
    ),
    "date-in-error": Kind(
        "a past retention date is repeated in the form of a Java program in California",
        "as it was sent",
        "it is easier to find",
    ),
    "unknown-tagging": Kind(
        "the form field `tagging` with another document sets no tags",
        "400 `MalformedXML`",
        "nothing is silently ignored",
    ),
    "one-region": Kind(
        "buckets of other regions have addresses of their own, and HeadBucket names their region",
        "all buckets are in one place, which calls itself us-east-1",
        "one server",
    ),
}

# What should be as on AWS and is not yet. It is in no document; whoever repairs it removes the entries of its kind.
OPEN: dict[str, str] = {
    "row 3": "metadata that is not ASCII is not encoded by RFC 2047",
    "row 4": "If-Modified-Since of tomorrow is not ignored",
    "row 5": "a copy onto itself with a storage class is refused",
    "row 6": "errors lack elements: Condition, UploadId, ETag, Method and others",
    "row 10": "a lifecycle rule is read in another form than it was put",
    "row 11": "origins with a star are refused in extended mode",
    "row 12": "the location of a bucket is not echoed",
    "row 13": "a part is read without its checksum",
    "row 14": "GetObjectAttributes of uploads: form of the checksum, list of parts",
    "row 15": "a COMPOSITE upload is completed without the parts' checksums",
    "row 19": "Signature Version 2 is refused",
    "row 20": "settings of encryption are refused",
    "row 24": "single differences: markers of last pages, codes, version ids, digests",
    "marker-in-prefix": "a marker within a common prefix lists the prefix again",
    "empty-encoding-type": "an empty encoding-type is accepted",
    "empty-max-parts": "an empty max-parts is refused",
    "whole-range": "a range that covers the whole object has no checksum",
    "tags-of-marker": "tags of a key whose current version is a delete marker are 404 and not 405",
    "no-tag-set": "a Tagging document without TagSet is refused",
    "tag-key": "InvalidTag has TagKey where AWS has none, and none where AWS has it",
    "argument-value": "ArgumentValue is there, or missing, where it is not on AWS",
    "uploads-prefix": "ListMultipartUploads has an empty Prefix",
    "copied-null": "copies in a suspended bucket have no version id; copies of a null version name it",
    "composite-copy": "a copy of a COMPOSITE object has no checksum",
    "algorithm-header": "x-amz-checksum-algorithm on PutObject is refused",
    "checksum-codes": "wrong checksums in CompleteMultipartUpload have other codes",
    "unknown-algorithm": "an unknown checksum algorithm is 501",
    "signature-bytes": "SignatureDoesNotMatch has no StringToSignBytes and CanonicalRequestBytes",
    "unsigned-first": "headers that are not signed are reported after the signature, and without their names",
    "query-without-date": "a presigned URL without a date is 403",
    "proposed-size": "ProposedSize of forms is two bytes too large",
    "form-filename": "${filename} without a name of a file is replaced by nothing",
    "form-conditions": "conditions of forms that cannot hold are malformed policies",
    "hold-first": "PutObjectLegalHold without a document is refused because of the bucket",
    "lifecycle-tags": "repeated tags in a lifecycle filter have another code",
    "preflight-method": "a preflight without a method is 400",
    "empty-origin": "an empty AllowedOrigin is refused",
}


@dataclass(frozen=True)
class Known:
    """Differences that are expected: patterns of scenarios, steps and paths, and the kind. Only `*` is special."""

    kind: str
    scenario: str
    step: str
    path: str
    modes: tuple[str, ...] = ("strict", "extended")


STRICT, EXTENDED = ("strict",), ("extended",)
