"""The places where the scenarios show the differences of `differences.py`. Patterns, in which only `*` is special."""

from .differences import EXTENDED, STRICT, Known

API, LISTS, UPLOADS, PARTS = "TestS3::", "TestS3ListObjects*::", "TestS3ListMultipartUploads::", "TestS3ListParts::"
WRITES, SUMS, TAGS, PUTS = "TestS3ObjectWritePrecondition::", "TestS3MultipartUploadChecksum::", "TestS3BucketObjectTagging::", "TestS3PutObjectChecksum::"
URLS, FORMS, CORS, RULES = "TestS3PresignedUrl::", "TestS3PresignedPost::", "TestS3Cors::", "TestS3BucketLifecycle::"
BOTH = STRICT + EXTENDED
# Scenarios with an upload or an object without a checksum.
WITHOUT_CHECKSUM = (
    f"{API}test_multipart_copy_object_etag", f"{API}test_multipart_and_list_parts", f"{API}test_complete_multipart_parts_order",
    f"{API}test_multipart_with_unicode_character_location", f"{API}test_multipart_overwrite_key", f"{WRITES}test_multipart_if_match_etag",
    f"{SUMS}test_complete_multipart_parts_checksum_default", f"{SUMS}test_multipart_size_validation", f"{URLS}test_put_object",
    f"{FORMS}test_post_object_default_checksum", f"{FORMS}test_post_object_policy_*", f"{PUTS}test_s3_checksum_no_automatic_sdk_calculation",
)
COMPOSITE = f"{SUMS}test_complete_multipart_parts_checksum_composite[*]"
FULL_OBJECT = f"{SUMS}test_complete_multipart_parts_checksum_full_object[*]"
DEFAULT = f"{SUMS}test_complete_multipart_parts_checksum_default"
SUSPENDED = f"{API}test_s3_copy_object_in_place_suspended_only"
MARKERS = f"{UPLOADS}test_list_multiparts_next_marker"


def known(kind: str, *places: tuple[str, str] | tuple[str, str, str], modes: tuple[str, ...] = BOTH) -> list[Known]:
    """Returns the entries of a kind: scenario, step, and path, by default the whole answer."""
    return [Known(kind, place[0], place[1], place[2] if len(place) > 2 else "answer", modes) for place in places]


MEANT = [
    *known(
        "no-default-checksum", *((name, "*", path) for name in WITHOUT_CHECKSUM for path in ("*ChecksumCRC64NVME", "*ChecksumType")),
        (f"{API}test_get_object_part", "multipart-upload", "Checksum*"), (f"{API}test_get_object_attributes", "*-checksum", "Checksum"),
        (f"{API}test_multipart_and_list_parts", "list-part-after-upload", "Parts[].ChecksumCRC32"),
        (f"{PARTS}test_list_parts_pagination", "*", "Parts[].ChecksumCRC32"),
        (f"{PARTS}test_list_parts_empty_part_number_marker", "*", "Parts[].ChecksumCRC32"),
        (DEFAULT, "list-parts", "Parts[].ChecksumCRC32C"), (DEFAULT, "complete-multipart-*parts-checksum"),
        (DEFAULT, "complete-multipart-full-object-type"), (DEFAULT, "complete-multipart-checksum"),
        *((name, "*-attrs*", "Checksum") for name in (DEFAULT, f"{SUMS}test_multipart_size_validation", f"{PUTS}test_s3_checksum_no_automatic_sdk_calculation")),
        (f"{FORMS}test_post_object_with_file_as_string", "list-objects", "Contents[].Checksum*"),
    ),
    *known("no-default-checksum", *((f"{WRITES}test_multipart_if_match_with_put*", "*-restart", path) for path in ("ChecksumCRC64NVME", "ChecksumType")), modes=EXTENDED),
    *known(
        "conditional-writes", (f"{WRITES}test_put_object_if_none_match_validation", "put-obj-if-none-match-bad-value"),
        (f"{WRITES}test_put_object_if_match_validation", "put-obj-if-match-star-value"),
        (f"{WRITES}test_put_object_if_match_and_if_none_match_validation", "*"), (f"{WRITES}test_copy_object_precondition_write_validation", "*"),
    ),
    *known("conditional-deletes", *((f"TestS3DeletePrecondition::test_delete_object_if_match_{name}_non_express", "*") for name in ("modified", "size", "all"))),
    *known(
        "bucket-exists", (f"{TAGS}test_create_bucket_with_empty_tags", "create-bucket-with-none-tags"),
        (f"{TAGS}test_create_bucket_with_tags_us_east_1_idempotency", "create-bucket-with-no-tags"),
        (f"{TAGS}test_create_bucket_with_tags_us_east_1_idempotency", "create-bucket-with-empty-tags"), modes=EXTENDED,
    ),
    *known("lock-at-creation", *(("TestS3ObjectLock::test_put_object_lock_configuration_on_existing_bucket", f"{verb}-object-lock-existing-bucket-enabled") for verb in ("put", "get"))),
    *known("exact-origins", (f"{CORS}test_cors_options_match_partial_origin", "*", "*"), modes=STRICT),
    *known("vary", *((f"{CORS}test_cors_match_{name}", "*", "Headers.vary") for name in ("origins", "methods", "headers"))),
    *known("key-of-tags", (f"{TAGS}test_object_tagging_exc", "get-no-key-tags", "Error.Key"), modes=EXTENDED),
    *known("aws-fails", (f"{TAGS}test_create_bucket_with_tags_exc", "tags-key-aws-duplicated-key"), modes=EXTENDED),
    *known(
        "any-wrong-part", *((scenario, "complete-multipart-wrong-parts-checksum", "Error.PartNumber") for scenario in (
            COMPOSITE.replace("*", "CRC32C"), COMPOSITE.replace("*", "SHA*"), FULL_OBJECT.replace("*", "CRC32"),
        )),
        *((scenario, "complete-multipart-wrong-parts-checksum", "Error.ETag") for scenario in (COMPOSITE.replace("*", "SHA*"), FULL_OBJECT.replace("*", "CRC32"))),
    ),
    *known("marker-of-prefix", (f"{UPLOADS}test_list_multipart_uploads_marker_common_prefixes", "list-multiparts-start", "NextKeyMarker")),
    *known("no-acls", (f"{API}test_s3_copy_object_in_place", "copy-object-in-place-with-acl"), modes=EXTENDED),
    *known("storage-class", (f"{FORMS}test_post_object_with_storage_class", "*"), modes=EXTENDED),
    *known("lifecycle-filters", *((f"{RULES}test_put_bucket_lifecycle_conf_exc", step) for step in ("wrong-filter-and-and-object-size", "wrong-data-no-midnight")), modes=EXTENDED),
    *known("transition-size", (f"{RULES}test_s3_transition_default_minimum_object_size", "*varies-by-storage"), modes=EXTENDED),
    *known("date-in-error", ("TestS3ObjectLockRetention::test_s3_object_retention_exc", "update-retention-past-date", "Error.ArgumentValue")),
    *known("default-encryption", ("TestS3BucketEncryption::test_s3_default_bucket_encryption", "get-bucket-no-encryption", "*"), modes=EXTENDED),
    *known("unknown-tagging", (f"{FORMS}test_post_object_with_tags[invalid]", "*"), modes=EXTENDED),
    *known("one-region", (f"{API}test_create_bucket_head_bucket", "create_bucket_location_constraint", "Location")),
    *known(
        "one-region", (f"{API}test_create_bucket_head_bucket", "head_bucket_2", "BucketRegion"), (f"{API}test_create_bucket_head_bucket", "head_bucket_2_*", "x-amz-bucket-region"),
        modes=STRICT,
    ),
    *known("one-region", (f"{API}test_region_header_exists_outside_us_east_1", "*", "x-amz-bucket-region")),
]

# The mode strict keeps the specification's surface; extended answers as AWS.
LETTER = [
    *known("strict", *((scenario, "*", path) for scenario in (
        MARKERS, f"{UPLOADS}test_list_multiparts_with_prefix_and_delimiter", f"{API}test_multipart_and_list_parts",
        f"{SUMS}test_multipart_parts_checksum_exceptions_*", DEFAULT,
    ) for path in ("*NextKeyMarker", "*NextUploadIdMarker")), modes=STRICT),
    *known("strict", *((name, "*", "Prefix") for name in (
        MARKERS, f"{API}test_multipart_and_list_parts", f"{SUMS}test_multipart_parts_checksum_exceptions_*", DEFAULT,
    )), modes=STRICT),
    *known(
        "strict", (f"{API}test_create_bucket_with_eu_location_constraint", "get-bucket-location", "LocationConstraint"),
        (f"{API}test_get_object_part", "get-obj-no-multipart", "Checksum*"), (f"{API}test_get_object_part_checksum[*]", "*-object-part", "Checksum*"),
        (COMPOSITE, "get-object-part-checksum", "Checksum*"), (COMPOSITE, "complete-multipart-no-checksum"),
        ("*", "*", "NextPartNumberMarker"), (f"{API}test_multipart_complete_multipart_too_small", "complete-exc-no-parts"),
        (f"{LISTS}*", "list-objects-start-after-token", "StartAfter"), ("TestS3BucketVersioning::test_bucket_versioning_crud", "put-versioning-empty"),
        ("TestS3ListBuckets::test_list_buckets_region_validation", "*"), ("TestS3ListBuckets::test_list_buckets_by_bucket_region", "*", "Buckets[]"),
        *((f"{WRITES}{scenario}", step) for scenario, step in (
            ("test_multipart_if_match_with_put*", "*-put-during"), ("test_multipart_if_match_with_put*", "*-put-before-restart"),
            ("test_multipart_if_match_with_delete", "complete-multipart-if-match-after-put"),
        )),
        *((f"*{name}", "*-manual-first-file", "*") for name in (
            "test_list_object_versions_pagination_common_prefixes", "test_list_multipart_uploads_marker_common_prefixes",
        )),
        ("*test_list_ops_encoding_type_validation[*]", "*-error-empty-value"), (f"{PARTS}test_list_parts_empty_part_number_marker", "list-parts-empty-max-parts"),
        *(("TestS3ObjectCRUD::test_get_object_range", step, "Checksum*") for step in ("get--15", "get-0-100")),
        (f"{API}test_s3_copy_object_in_place_versioned", "copy-in-place-versioned-suspended", "VersionId"), (SUSPENDED, "copy-*-suspended*", "VersionId"),
        (f"{API}test_s3_copy_object_in_place_versioned", "copy-in-place-versioned-re-enabled", "CopySourceVersionId"), (SUSPENDED, "copy-*-suspended*", "CopySourceVersionId"),
        (f"{CORS}test_cors_http_options_no_config", "options-with-origin-no-method"), (f"{CORS}test_cors_http_options_non_existent_bucket", "options-with-origin"),
        modes=STRICT,
    ),
]

DETAILS = [
    *known("wrong-encoded-words", (f"{API}test_user_metadata_rfc2047_bad_b64_encoded", "get-object", "Metadata.*")),
    *known("encoded-words", (f"{API}test_user_metadata_rfc2047_encoded", "get-object", "Metadata.*")),
    *known("form-metadata", (f"{FORMS}test_post_object_with_unicode_metadata", "*"), modes=EXTENDED),
    *known("other-upload", (MARKERS, "list-multiparts-wrong-id-for-key")),
    *known("digest-form", (f"{API}test_s3_invalid_content_md5", "upload-part-md5-bad-digest", "Error.ExpectedDigest")),
    *known("deleted-meanwhile", (f"{WRITES}test_multipart_if_none_match_with_delete", "complete-multipart-after-del*")),
    *known("tag-of-system", (f"{TAGS}test_create_bucket_with_tags_exc", "tags-key-aws-prefix", "Error.TagKey"), modes=EXTENDED),
    *known("argument-of-source", (f"{API}test_s3_copy_object_wrong_format", "*", "Error.ArgumentValue")),
    *known("composite-copy", (COMPOSITE, "copy-obj-checksum", "CopyObjectResult.Checksum*")),
    *known("composite-copy", (COMPOSITE, "get-copy-object-attrs", "Checksum"), modes=EXTENDED),
    *known("algorithm-header", (f"{PUTS}test_s3_checksum_no_automatic_sdk_calculation", "head-obj-*-checksum-algo")),
    *known(
        "checksum-codes", (f"{SUMS}test_multipart_parts_checksum_exceptions_composite", "complete-part-with-checksum"),
        *((f"{SUMS}test_multipart_parts_checksum_exceptions_full_object", f"complete-part-{step}") for step in ("only-checksum-algo*", "bad-checksum-algo")),
    ),
    *known("unknown-algorithm", (f"{SUMS}test_multipart_parts_checksum_exceptions_composite", "create-mpu-wrong-checksum-algo"), modes=EXTENDED),
    *known(
        "unsigned-first", (f"{URLS}test_put_url_metadata_with_sig_s3v4[*]", "wrong-meta-headers"),
        (f"{URLS}test_put_object_with_md5_and_chunk_signature_bad_headers[s3v4-True]", "*"),
        (f"{URLS}test_s3_put_presigned_url_same_header_and_qs_parameter", "override-signed-qs"),
    ),
    *known(
        "unsigned-first", (f"{URLS}test_put_object_with_md5_and_chunk_signature_bad_headers[s3-True]", "*"),
        (f"{URLS}test_s3_put_presigned_url_with_different_headers[s3]", "content-type-response", "Error.StringToSignBytes"), modes=EXTENDED,
    ),
    *known("query-without-date", (f"{URLS}test_s3_put_presigned_url_missing_sig_param[s3v4]", "*")),
    *known("hold-first", ("TestS3ObjectLockLegalHold::test_put_object_legal_hold_exc", "put-object-retention-empty")),
    *known("empty-origin", (f"{CORS}test_put_cors_empty_origin", "*")),
]

EXCEPTIONS: list[Known] = [*MEANT, *LETTER, *DETAILS]
