//! Tests of the policies of forms.

use super::{FileSizes, PostPolicy};
use crate::errors::{S3Error, S3Result};
use crate::forms::fields::FormFields;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cairn_model::Timestamp;

/// 2026-11-21T05:00:00Z
const NOW: Timestamp = Timestamp(1_795_237_200_000);

fn parsed(document: &str) -> S3Result<PostPolicy> {
    PostPolicy::parse(&STANDARD.encode(document))
}

/// Parses a policy with these conditions and one on the bucket.
fn with(conditions: &str) -> S3Result<PostPolicy> {
    parsed(&format!(
        r#"{{"expiration": "2026-11-21T05:00:00Z", "conditions": [{{"bucket": "photos"}}, {conditions}]}}"#
    ))
}

fn shown(error: &S3Error) -> String {
    format!("{}: {}", error.code(), error.message())
}

/// Checks a form against these conditions.
fn checked(conditions: &str, pairs: &[(&str, &str)]) -> Result<(), String> {
    let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let form = FormFields::new(pairs, "a.txt").expect("valid");
    let policy = with(conditions).map_err(|error| shown(&error))?;
    policy.check(&form, "photos", NOW).map_err(|error| shown(&error))
}

fn failed(condition: &str) -> Result<(), String> {
    Err(format!("AccessDenied: Invalid according to Policy: Policy Condition failed: {condition}"))
}

#[test]
fn conditions_match_exactly_or_by_their_beginning() {
    let key = [("key", "user/${filename}")];
    for conditions in [
        r#"{"key": "user/a.txt"}"#,
        r#"{"KEY": "user/a.txt"}"#,
        r#"["eq", "$key", "user/a.txt"]"#,
        r#"["EQ", "$Key", "user/a.txt"]"#,
        r#"["starts-with", "$key", "user/"]"#,
        r#"["Starts-With", "$KEY", ""]"#,
    ] {
        assert_eq!(checked(conditions, &key), Ok(()), "{conditions}");
    }
    for (conditions, text) in [
        (r#"{"key": "user/b.txt"}"#, r#"["eq", "$key", "user/b.txt"]"#),
        (r#"["eq", "$key", "user/"]"#, r#"["eq", "$key", "user/"]"#),
        (r#"["eq", "$key", "USER/a.txt"]"#, r#"["eq", "$key", "USER/a.txt"]"#),
        (r#"["starts-with", "$key", "other/"]"#, r#"["starts-with", "$key", "other/"]"#),
        (r#"["starts-with", "$key", "user/${"]"#, r#"["starts-with", "$key", "user/${"]"#),
        (r#"{"key": "a\"b"}"#, r#"["eq", "$key", "a\"b"]"#),
    ] {
        assert_eq!(checked(conditions, &key), failed(text));
    }
}

#[test]
fn each_of_several_content_types_must_match() {
    let condition = r#"["starts-with", "$Content-Type", "image/"]"#;
    let check = |kind| checked(condition, &[("content-type", kind)]);
    assert_eq!(check("image/png"), Ok(()));
    assert_eq!(check("image/png,image/gif, image/jpeg"), Ok(()));
    assert_eq!(check("image/png,text/html"), failed(condition));
    let list = r#"["starts-with", "$x-amz-meta-a", "b"]"#;
    assert_eq!(checked(list, &[("x-amz-meta-a", "b,c")]), Ok(()));
}

#[test]
fn every_field_needs_a_condition_and_every_condition_a_field() {
    let extra = checked(r#"{"key": "k"}"#, &[("key", "k"), ("acl", "private"), ("submit", "x")]);
    assert_eq!(
        extra,
        Err("AccessDenied: Invalid according to Policy: Extra input fields: acl, submit".to_owned())
    );
    let exempt =
        [("key", "k"), ("policy", "p"), ("x-amz-signature", "s"), ("x-ignore-a", "1"), ("x-ignore-a", "2")];
    assert_eq!(checked(r#"{"key": "k"}"#, &exempt), Ok(()));
    let missing = r#"["starts-with", "$x-amz-meta-a", ""]"#;
    assert_eq!(checked(&format!(r#"{{"key": "k"}}, {missing}"#), &[("key", "k")]), failed(missing));
}

#[test]
fn bucket_is_a_field_that_the_form_need_not_have() {
    let form = FormFields::new(Vec::new(), "").expect("valid");
    let check = |conditions: &str, bucket| {
        let document = format!(r#"{{"expiration": "2026-11-21T05:00:00Z", "conditions": [{conditions}]}}"#);
        parsed(&document)
            .expect("valid")
            .check(&form, bucket, NOW)
            .map_err(|error| error.message().to_owned())
    };
    assert_eq!(check(r#"{"bucket": "photos"}"#, "photos"), Ok(()));
    assert_eq!(check(r#"["starts-with", "$bucket", "ph"]"#, "photos"), Ok(()));
    assert!(check(r#"{"bucket": "photos"}"#, "other").is_err());
    assert_eq!(
        check("", "photos"),
        Err("Invalid according to Policy: Extra input fields: bucket".to_owned())
    );
}

#[test]
fn policy_ends_at_its_expiration() {
    let form = FormFields::new(vec![("key".into(), "k".into())], "").expect("valid");
    let policy = with(r#"{"key": "k"}"#).expect("valid");
    assert!(policy.check(&form, "photos", NOW).is_ok());
    let expired = policy.check(&form, "photos", Timestamp(NOW.0 + 1)).expect_err("expired");
    assert_eq!(shown(&expired), "AccessDenied: Invalid according to Policy: Policy expired.");
}

#[test]
fn all_ranges_of_sizes_hold() {
    let sizes = |conditions: &str| with(conditions).map(|policy| policy.sizes).map_err(|error| error.code());
    let max = u64::MAX;
    assert_eq!(sizes(r#"{"key": "k"}"#), Ok(FileSizes { min: 0, max }));
    assert_eq!(sizes(r#"["content-length-range", 1, 10]"#), Ok(FileSizes { min: 1, max: 10 }));
    assert_eq!(sizes(r#"["content-length-range", "1", "10"]"#), Ok(FileSizes { min: 1, max: 10 }));
    let two = r#"["content-length-range", 1, 10], ["content-length-range", 5, 20]"#;
    assert_eq!(sizes(two), Ok(FileSizes { min: 5, max: 10 }));
    for invalid in [
        r#"["content-length-range", 0]"#,
        r#"["content-length-range", -1, 0]"#,
        r#"["content-length-range", 1.5, 2]"#,
        r#"["content-length-range", 0, 1, 2]"#,
        r#"["content-length-range", 0, null]"#,
    ] {
        assert_eq!(sizes(invalid), Err("InvalidPolicyDocument"), "{invalid}");
    }
}

/// AWS takes the policy, and refuses every form.
#[test]
fn conditions_without_a_field_or_a_size_never_hold() {
    for condition in [
        r#"["eq", "key", "k"]"#,
        r#"["starts-with", "key", ""]"#,
        r#"["content-length-range", "+1", "2"]"#,
        r#"["content-length-range", 0, "many"]"#,
    ] {
        assert_eq!(checked(condition, &[("key", "k")]), failed(condition));
    }
}

#[test]
fn escapes_that_only_policies_have_are_read() {
    let check = |condition: &str, key| checked(condition, &[("key", key)]);
    assert_eq!(check(r#"{"key": "\$foo"}"#, "$foo"), Ok(()));
    assert_eq!(check(r#"{"key": "\\$foo"}"#, r"\$foo"), Ok(()));
    assert_eq!(check(r#"{"key": "a\vb\u00e4\n"}"#, "a\u{b}b\u{e4}\n"), Ok(()));
}

#[test]
fn other_documents_are_invalid() {
    for document in [
        "",
        "{",
        "[]",
        r#"{"conditions": []}"#,
        r#"{"EXPIRATION": "2026-11-21T05:00:00Z", "conditions": []}"#,
        r#"{"expiration": "2026-11-21T05:00:00Z"}"#,
        r#"{"expiration": "2026-11-21T05:00:00Z", "CONDITIONS": []}"#,
        r#"{"expiration": "2026-11-21T05:00:00Z", "conditions": {}}"#,
        r#"{"expiration": "2026-11-21T05:00:00Z", "conditions": [{}]}"#,
        r#"{"expiration": "2026-11-21T05:00:00Z", "conditions": [{"a": "b", "c": "d"}]}"#,
        r#"{"expiration": "2026-11-21T05:00:00Z", "conditions": [{"a": 1}]}"#,
        r#"{"expiration": "2026-11-21T05:00:00Z", "conditions": ["a"]}"#,
        r#"{"expiration": "2026-11-21T05:00:00Z", "conditions": [["ends-with", "$key", "a"]]}"#,
        r#"{"expiration": "2026-11-21T05:00:00Z", "conditions": [["eq", "$key", 1]]}"#,
        r#"{"expiration": "tomorrow", "conditions": []}"#,
        r#"{"expiration": 1, "conditions": []}"#,
    ] {
        assert_eq!(parsed(document).expect_err(document).code(), "InvalidPolicyDocument");
    }
    assert_eq!(PostPolicy::parse("{}").expect_err("not Base64").code(), "InvalidPolicyDocument");
    let deep = format!(r#"{{"conditions": {}{}}}"#, "[".repeat(5000), "]".repeat(5000));
    assert_eq!(parsed(&deep).expect_err("deep").code(), "InvalidPolicyDocument");
}
