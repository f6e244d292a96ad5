"""The differences between answers of Cairn and of AWS, each with its reason. `docs/s3-api.md` lists the kinds.

Only what a scenario shows is here. An entry that no longer applies fails the test of its scenario.
"""

from dataclasses import dataclass

# Never compared, with the reason.
IGNORED = {
    "ResponseMetadata": "the status is compared; headers and request ids are those of the connection",
    "*.Message": "messages are worded by each server",
    "*.RequestId": "differs with every request",
    "*.HostId": "differs with every request",
    "x-amz-id-2": "differs with every request",
    "x-amz-request-id": "differs with every request",
    "*.@xmlns": "the namespace of documents is that of AWS, which boto3 and other tests check",
    "BucketArn": "there are no ARNs",
    "*.BucketArn": "there are no ARNs",
    "x-amz-bucket-arn": "there are no ARNs",
    "AccessPointAlias": "there are no access points",
    "x-amz-access-point-alias": "there are no access points",
    "*.DisplayName": "AWS no longer names owners",
}
# Not compared in strict mode either.
IGNORED_IN_STRICT = {
    "ServerSideEncryption": "AWS encrypts every object; strict mode does not say whether the server does",
    "x-amz-server-side-encryption": "AWS encrypts every object; strict mode does not say whether the server does",
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
        "all responses of a bucket with rules to requests with `Origin` have it",
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
    "strict": Kind(
        "markers and empty parameters of lists, checksums of parts and of whole ranges, the location, conditions of completions, `null` versions of copies",
        "`extended` answers as AWS; `strict` keeps the answers of the specification",
        "what was built for the strict mode does not change",
    ),
    "encoded-words": Kind(
        "encoded words (RFC 2047) in metadata are read and written anew",
        "words that are not ASCII are returned as they were sent",
        "they mean the same",
    ),
    "wrong-encoded-words": Kind(
        "encoded words that cannot be decoded become other ones",
        "they are returned as they were sent",
        "nothing is lost",
    ),
    "form-metadata": Kind(
        "metadata in forms may have control characters, which become encoded words",
        "400 `InvalidArgument`",
        "a header cannot have them",
    ),
    "other-upload": Kind(
        "an `upload-id-marker` that belongs to another key is 400",
        "the page begins after the position that both markers name",
        "the upload may have ended since the page before",
    ),
    "digest-form": Kind(
        "`ExpectedDigest` is hexadecimal for PutObject and Base64 for UploadPart",
        "hexadecimal",
        "one form is enough",
    ),
    "deleted-meanwhile": Kind(
        "a completion with `If-None-Match` is 409 if the key was deleted since the upload began",
        "200 without versioning; 409 with it",
        "a deletion without versioning leaves no trace",
    ),
    "tag-of-system": Kind(
        "`InvalidTag` of CreateBucket does not name a key that begins with `aws:`",
        "`TagKey` names it",
        "as in all other such errors",
    ),
    "argument-of-source": Kind(
        "`ArgumentValue` of a wrong `x-amz-copy-source` is the name of the header",
        "it is the value",
        "as in all other errors",
    ),
    "composite-copy": Kind(
        "a copy of an object with a `COMPOSITE` checksum gets a `FULL_OBJECT` one",
        "it has none, unless `x-amz-checksum-algorithm` asks for one",
        "the source would be read twice",
    ),
    "algorithm-header": Kind(
        "PutObject ignores `x-amz-checksum-algorithm`",
        "400 without the checksum of this algorithm",
        "a client that names an algorithm expects that it counts",
    ),
    "checksum-codes": Kind(
        "a completion with checksums of another algorithm than the upload's is 400 `BadDigest`",
        "`InvalidPart` or `InvalidRequest`, which say that the algorithm is another; the object's right checksum needs no type",
        "the digest is not what is wrong",
    ),
    "unknown-algorithm": Kind(
        "an unknown checksum algorithm is 400",
        "501, with those that are implemented",
        "it may be one that AWS has",
    ),
    "unsigned-first": Kind(
        "headers that are not signed, and those of `aws-chunked` bodies, are judged before or after the signature, by its version",
        "what is not implemented comes first, then the signature, then the headers that it does not cover",
        "one order for all",
    ),
    "query-without-date": Kind(
        "a presigned URL without `X-Amz-Date` is 400 `AuthorizationQueryParametersError`",
        "403 `AccessDenied`",
        "as for a missing date in a header",
    ),
    "hold-first": Kind(
        "PutObjectLegalHold without a document is 400 `MalformedXML`, also in a bucket without Object Lock",
        "400 `InvalidRequest`: the bucket has no Object Lock",
        "the bucket is looked up before the body is read",
    ),
    "default-encryption": Kind(
        "after DeleteBucketEncryption, GetBucketEncryption has no rule",
        "it has the default rule, as before the first PutBucketEncryption",
        "new objects are still encrypted",
    ),
    "empty-origin": Kind(
        "an empty `AllowedOrigin` is accepted",
        "400 `InvalidRequest`",
        "it allows nothing, so it is a mistake",
    ),
}

# What should be as on AWS and is not yet. It is in no document; whoever repairs it removes the entries of its kind.
OPEN: dict[str, str] = {}


@dataclass(frozen=True)
class Known:
    """Differences that are expected: patterns of scenarios, steps and paths, and the kind. Only `*` is special."""

    kind: str
    scenario: str
    step: str
    path: str
    modes: tuple[str, ...] = ("strict", "extended")


STRICT, EXTENDED = ("strict",), ("extended",)
