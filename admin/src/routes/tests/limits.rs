//! Limits that the OpenAPI document and the documentation repeat: they are those that the server enforces.

use crate::handlers::openapi;
use crate::limits::*;
use cairn_api::{
    Bytes, ChangeSteps, ContainedText, ContentType, KeyText, MaxKeys, MaximumEntries, PageLimit, Prefix,
    Schemas, TypeSchema, WaitSeconds, schema_of,
};
use cairn_engine::limits::{
    BUCKET_TAGS_MAX, HOLD_TIME_MAX, INSPECTION_ENTRIES_MAX, LIFECYCLE_DAYS_MAX, LIFECYCLE_RULES_MAX,
    NEWER_NONCURRENT_VERSIONS_MAX, OBJECT_TAGS_MAX, PREVIEW_SAMPLE_MAX, TAG_KEY_UNITS_MAX,
    TAG_VALUE_UNITS_MAX,
};
use cairn_identity::directory::{
    ACCOUNTS_MAX, ATTACHED_RESOURCES_MAX, CREDENTIALS_PER_ACCOUNT_MAX, MANAGEMENT_TOKENS_MAX, POLICIES_MAX,
    POLICIES_PER_ACCOUNT_MAX, RESOURCES_MAX, RESOURCES_PER_ACCOUNT_MAX, SOURCE_LISTS_PER_ACCOUNT_MAX,
    TEMPORARY_PER_ACCOUNT_MAX, TEMPORARY_SECONDS_MAX, TEMPORARY_SECONDS_MIN, TOKEN_SECONDS_MAX,
};
use cairn_identity::policy::{
    DESCRIPTION_CHARACTERS_MAX, EXPLAINED_STATEMENTS_MAX, NAME_CHARACTERS_MAX, STATEMENT_NETWORKS_MAX,
    STATEMENT_RESOURCES_MAX, STATEMENTS_MAX,
};
use cairn_model::{OBJECT_KEY_BYTES_MAX, u64_of};
use cairn_sharing::{LABEL_BYTES_MAX, LINKS_PER_OBJECT_MAX, ORIGINS_MAX, PAGE_LINKS_MAX};
use cairn_webhooks::{OVERLAP_SECONDS_DEFAULT, OVERLAP_SECONDS_MAX, PAGE_DELIVERIES_MAX};

/// The schema, its member, the limit there, and the constant.
fn described() -> Vec<(&'static str, &'static str, &'static str, u64)> {
    let days = u64::from(LIFECYCLE_DAYS_MAX);
    vec![
        ("SetLifecycleRule", "expiration", "maximum", days),
        ("SetLifecycleRule", "noncurrent_version_expiration", "maximum", days),
        ("SetLifecycleRule", "abort_incomplete_multipart_upload", "maximum", days),
        ("SetLifecycleRule", "newer_noncurrent_versions", "maximum", NEWER_NONCURRENT_VERSIONS_MAX.into()),
        ("SetLifecycleRule", "tags", "maxItems", u64_of(OBJECT_TAGS_MAX)),
        ("SetLifecycleRule", "prefix", "maxLength", u64_of(OBJECT_KEY_BYTES_MAX)),
        ("LifecyclePreview", "sample", "maxItems", u64_of(PREVIEW_SAMPLE_MAX)),
        ("DefaultRetention", "days", "maximum", days),
        ("BucketTags", "tags", "maxItems", u64_of(BUCKET_TAGS_MAX)),
        ("ObjectTags", "tags", "maxItems", u64_of(OBJECT_TAGS_MAX)),
        ("Tag", "key", "maxLength", u64_of(TAG_KEY_UNITS_MAX)),
        ("Tag", "value", "maxLength", u64_of(TAG_VALUE_UNITS_MAX)),
        ("RotateSecret", "overlap_seconds", "maximum", OVERLAP_SECONDS_MAX),
        ("CreateTemporaryCredential", "expires_in_seconds", "minimum", TEMPORARY_SECONDS_MIN),
        ("CreateTemporaryCredential", "expires_in_seconds", "maximum", TEMPORARY_SECONDS_MAX),
        ("CreateManagementToken", "expires_in_seconds", "maximum", TOKEN_SECONDS_MAX),
        ("BeginBackup", "timeout_seconds", "maximum", HOLD_TIME_MAX.as_secs()),
        ("BeginBackup", "lease_seconds", "maximum", HOLD_TIME_MAX.as_secs()),
        ("RepairStorage", "maximum_entries", "maximum", INSPECTION_ENTRIES_MAX),
        ("CreateEmbed", "allowed_origins", "maxItems", u64_of(ORIGINS_MAX)),
        ("UpdateEmbed", "allowed_origins", "maxItems", u64_of(ORIGINS_MAX)),
        ("SharePage", "shares", "maxItems", u64_of(PAGE_LINKS_MAX)),
        ("ShareList", "shares", "maxItems", u64_of(LINKS_PER_OBJECT_MAX)),
        ("EmbedList", "embeds", "maxItems", u64_of(LINKS_PER_OBJECT_MAX)),
        ("Statement", "resources", "maxItems", u64_of(STATEMENT_RESOURCES_MAX)),
        ("Statement", "source_ip", "maxItems", u64_of(STATEMENT_NETWORKS_MAX)),
        ("PolicyDocument", "statements", "maxItems", u64_of(STATEMENTS_MAX)),
        ("Name", "", "maxLength", u64_of(NAME_CHARACTERS_MAX)),
        ("Description", "", "maxLength", u64_of(DESCRIPTION_CHARACTERS_MAX)),
        ("LinkLabel", "", "maxLength", u64_of(LABEL_BYTES_MAX)),
        ("ImportedVersions", "versions", "maxItems", u64_of(IMPORT_BATCH_VERSIONS_MAX)),
        ("ImportList", "imports", "maxItems", u64_of(IMPORT_RUNS_SHOWN)),
        ("ImportList", "reports", "maxItems", u64_of(IMPORT_REPORTS_MAX)),
        ("ImportRate", "bytes", "maxItems", u64_of(IMPORT_INTERVALS)),
        ("Changes", "steps", "maxItems", CHANGE_STEPS_MAX),
        ("Changes", "deletions", "maxItems", u64_of(CHANGE_DELETIONS_MAX)),
        // The first and the last one may continue in other pages, and are there in any case.
        ("FolderUsage", "folders", "maxItems", u64_of(FOLDERS_MAX) + 2),
    ]
}

/// The same for parameters, whose types have no schemas of their own.
fn of_parameters() -> [(&'static str, TypeSchema, &'static str, u64); 10] {
    [
        ("MaximumEntries", schema_of::<MaximumEntries>(), "maximum", INSPECTION_ENTRIES_MAX),
        ("ChangeSteps", schema_of::<ChangeSteps>(), "maximum", CHANGE_STEPS_MAX),
        ("MaxKeys", schema_of::<MaxKeys>(), "maximum", USAGE_KEYS_MAX),
        ("PageLimit", schema_of::<PageLimit>(), "maximum", u64_of(LIST_ENTRIES_MAX)),
        ("WaitSeconds", schema_of::<WaitSeconds>(), "maximum", EVENT_WAIT_SECONDS_MAX),
        ("ContainedText", schema_of::<ContainedText>(), "maxLength", u64_of(CONTAINED_BYTES_MAX)),
        ("ContentType", schema_of::<ContentType>(), "maxLength", u64_of(FIND_TYPE_CHARACTERS_MAX)),
        ("Bytes", schema_of::<Bytes>(), "maximum", FIND_BYTES_MAX),
        ("Prefix", schema_of::<Prefix>(), "maxLength", u64_of(OBJECT_KEY_BYTES_MAX)),
        ("KeyText", schema_of::<KeyText>(), "maxLength", u64_of(OBJECT_KEY_BYTES_MAX)),
    ]
}

#[test]
fn the_openapi_document_has_the_limits_of_the_server() {
    let document = openapi::describe(crate::routes::described());
    let mut wrong: Vec<_> = described()
        .into_iter()
        .filter_map(|(schema, member, keyword, limit)| {
            let schema_of = &document["components"]["schemas"][schema];
            let place = if member.is_empty() { schema_of } else { &schema_of["properties"][member] };
            let found = &place[keyword];
            (found.as_u64() != Some(limit))
                .then(|| format!("{schema}.{member} {keyword}: {found}, not {limit}"))
        })
        .collect();
    for (name, schema, keyword, limit) in of_parameters() {
        let found = &Schemas::default().request(schema)[keyword];
        if found.as_u64() != Some(limit) {
            wrong.push(format!("{name} {keyword}: {found}, not {limit}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Formats a number as the documentation does: with blanks from five digits on.
fn spaced(number: impl TryInto<u64>) -> String {
    let digits = number.try_into().map_or_else(|_| String::new(), |number| number.to_string());
    if digits.len() < 5 {
        return digits;
    }
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(" ")
}

#[test]
fn the_documentation_has_the_limits_of_the_server() {
    let text =
        include_str!("../../../../docs/management-api.md").split_whitespace().collect::<Vec<_>>().join(" ");
    let mib = |bytes: u64| bytes >> 20;
    for sentence in [
        format!("A body may have {} MiB", mib(u64_of(BODY_BYTES_MAX))),
        format!("at most {BUCKET_TAGS_MAX}: replaces all"),
        format!("days are 1 to {LIFECYCLE_DAYS_MAX}"),
        format!("A bucket has at most {LIFECYCLE_RULES_MAX} rules (`LIMIT_REACHED`)"),
        format!("`limit` (1 to {LIST_ENTRIES_MAX}, default"),
        format!(
            "the first {} MiB of a text, an image of up to {} MiB, or a PDF of up to {} MiB",
            mib(PREVIEW_TEXT_BYTES_MAX),
            mib(PREVIEW_IMAGE_BYTES_MAX),
            mib(PREVIEW_PDF_BYTES_MAX)
        ),
        format!("`max_keys` (1 to {})", spaced(USAGE_KEYS_MAX)),
        format!(
            "One request looks at {} keys at most, or for {} seconds",
            spaced(FIND_KEYS_MAX),
            FIND_TIME_MAX.as_secs()
        ),
        format!("or for {} seconds. If keys follow", USAGE_TIME_MAX.as_secs()),
        format!("`folders` are the {FOLDERS_MAX} folders"),
        format!("At most {HISTORY_ENTRIES_MAX} entries. {} storage events", spaced(HISTORY_EVENTS_MAX)),
        format!("(1 to {CHANGE_STEPS_MAX}, default {CHANGE_STEPS_DEFAULT})"),
        format!("up to {CHANGE_DELETIONS_MAX} of the largest ones, of at least {CHANGE_DELETED_MIN} objects"),
        format!("of at most {IMPORT_BATCH_VERSIONS_MAX} and {} KiB", IMPORT_BATCH_BYTES_MAX >> 10),
        format!("remembers the {IMPORT_RUNS_MAX} latest runs"),
        format!("shows the {IMPORT_RUNS_SHOWN} latest of them"),
        format!("the {IMPORT_REPORTS_MAX} latest reports"),
        format!("the last {IMPORT_INTERVALS} intervals of {IMPORT_INTERVAL_SECONDS} seconds"),
        format!("One request changes about {} keys", spaced(RUN_KEYS_MAX)),
        format!("`{{expires_in_seconds}}`, {TEMPORARY_SECONDS_MIN} to {TEMPORARY_SECONDS_MAX} →"),
        format!("A name has 1 to {NAME_CHARACTERS_MAX} printable"),
        format!("A description may have {DESCRIPTION_CHARACTERS_MAX} characters"),
        format!(
            "{} accounts, each with {CREDENTIALS_PER_ACCOUNT_MAX} credentials and {TEMPORARY_PER_ACCOUNT_MAX} temporary ones",
            spaced(ACCOUNTS_MAX)
        ),
        format!("1 to {STATEMENT_NETWORKS_MAX} addresses and networks"),
        format!("may have {SOURCE_LISTS_PER_ACCOUNT_MAX} different lists"),
        format!("A policy has 1 to {STATEMENTS_MAX} statements"),
        format!("and 1 to {STATEMENT_RESOURCES_MAX} resources"),
        format!(
            "{} policies; {} policies and {} resources per account; {} resources in all policies; {} resources over all accounts",
            spaced(POLICIES_MAX),
            spaced(POLICIES_PER_ACCOUNT_MAX),
            spaced(RESOURCES_PER_ACCOUNT_MAX),
            spaced(RESOURCES_MAX),
            spaced(ATTACHED_RESOURCES_MAX)
        ),
        format!("at most {EXPLAINED_STATEMENTS_MAX} of each effect"),
        format!("`expires_in_seconds` (1 to {}", spaced(TOKEN_SECONDS_MAX)),
        format!("There may be {} unexpired tokens", spaced(MANAGEMENT_TOKENS_MAX)),
        format!("1 to {CONTAINED_BYTES_MAX} bytes, anywhere"),
        format!("{LINKS_PER_OBJECT_MAX} shares and {LINKS_PER_OBJECT_MAX} embeds of an object"),
        format!("At most {EVENT_WAITS_MAX} requests wait on an executor, {EVENT_WAITS_OF_CALLER_MAX} of"),
        format!("`maximum_entries` (1 to {}", spaced(INSPECTION_ENTRIES_MAX)),
        format!("`limit` (1 to {PAGE_DELIVERIES_MAX}, default 100), `webhook_id`"),
        format!("`{{overlap_seconds?}}`, 0 to {OVERLAP_SECONDS_MAX}, default {OVERLAP_SECONDS_DEFAULT}"),
    ] {
        assert!(text.contains(&sentence), "docs/management-api.md does not say: {sentence}");
    }
}
