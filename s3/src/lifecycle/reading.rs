//! Reads a lifecycle configuration. Source: API Reference, PutBucketLifecycleConfiguration, LifecycleRule.
//!
//! The whole document is mapped onto rules before anything is stored. What S3 has and our rules have not is 501, and names
//! the element and what is possible. Everything else that is wrong is 400, with AWS's codes. An unknown element is
//! refused: to ignore it could remove more than the client asked for.

use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::headers::tagging;
use crate::xml::reader::{Element, shortened};
use cairn_engine::limits::{
    LIFECYCLE_DAYS_MAX, LIFECYCLE_RULES_MAX, NEWER_NONCURRENT_VERSIONS_MAX, OBJECT_TAGS_MAX,
};
use cairn_engine::{FilterForm, InvalidTags, LifecycleRule, RuleId, Tags};
use cairn_model::{OBJECT_KEY_BYTES_MAX, Timestamp};
use std::collections::HashSet;

/// The root of the document.
pub(crate) const DOCUMENT: &str = "LifecycleConfiguration";
/// Most characters of an ID, as on AWS.
pub(crate) const ID_CHARACTERS_MAX: usize = 255;

const TRANSITIONS: &str = "there are no storage classes, so objects can only be expired (Expiration, \
                           NoncurrentVersionExpiration)";
const SIZES: &str = "filter by Prefix and Tag";
const DATES: &str = "use Days";
const ALL_VERSIONS: &str = "use Expiration with Days, and NoncurrentVersionExpiration";

/// Elements that S3, or MinIO, has and this server has not, with what is possible.
const NOT_IMPLEMENTED: [(&str, &str); 8] = [
    ("Transition", TRANSITIONS),
    ("NoncurrentVersionTransition", TRANSITIONS),
    ("ObjectSizeGreaterThan", SIZES),
    ("ObjectSizeLessThan", SIZES),
    ("Date", DATES),
    ("ExpiredObjectAllVersions", ALL_VERSIONS),
    ("DelMarkerExpiration", "use Expiration with ExpiredObjectDeleteMarker"),
    ("AllVersionsExpiration", ALL_VERSIONS),
];

/// Reads the rules of a document. Those without an ID get one.
///
/// # Errors
/// `MalformedXML`, `InvalidRequest`, `InvalidArgument` and `InvalidTag` for what no server accepts, `NotImplemented` for what
/// this one cannot do, and failures of the system's random numbers.
pub(crate) fn read(document: &Element, now: Timestamp) -> S3Result<Vec<LifecycleRule>> {
    check_children(document, &["Rule"])?;
    let elements = document.children();
    if elements.is_empty() {
        return Err(malformed("A lifecycle configuration has at least one Rule."));
    }
    if elements.len() > LIFECYCLE_RULES_MAX {
        return Err(S3Error::invalid_request(format!(
            "The number of lifecycle rules must not exceed the allowed limit of {LIFECYCLE_RULES_MAX} rules"
        )));
    }
    let rules = elements.iter().map(|rule| read_rule(rule, now)).collect::<S3Result<Vec<_>>>()?;
    let mut ids = HashSet::new();
    for id in rules.iter().filter_map(|rule| rule.s3_id.as_deref()) {
        if !ids.insert(id) {
            let message = "Rule ID must be unique. Found same ID for more than one rule";
            return Err(S3Error::invalid_argument("ID", id, message));
        }
    }
    Ok(rules)
}

fn read_rule(element: &Element, now: Timestamp) -> S3Result<LifecycleRule> {
    check_children(
        element,
        &[
            "ID",
            "Prefix",
            "Filter",
            "Status",
            "Expiration",
            "NoncurrentVersionExpiration",
            "AbortIncompleteMultipartUpload",
        ],
    )?;
    let s3_id = element.only_text("ID")?.filter(|id| !id.is_empty()).map(str::to_owned);
    if let Some(id) = s3_id.as_ref().filter(|id| id.chars().count() > ID_CHARACTERS_MAX) {
        let message = format!("ID length should not exceed allowed limit of {ID_CHARACTERS_MAX}");
        return Err(S3Error::invalid_argument("ID", &shortened(id), message));
    }
    let (prefix, tags, form) = match (element.only_child("Prefix")?, element.only_child("Filter")?) {
        (Some(prefix), None) => (read_prefix(prefix)?, Tags::default(), FilterForm::RulePrefix),
        (None, Some(filter)) => read_filter(filter)?,
        (Some(_), Some(_)) => return Err(malformed("A Rule has either a Filter or a Prefix, not both.")),
        (None, None) => {
            return Err(malformed("A Rule has a Filter. For all objects, it is empty: <Filter></Filter>."));
        }
    };
    let is_enabled = match element.only_text("Status")? {
        Some("Enabled") => true,
        Some("Disabled") => false,
        _ => return Err(malformed("A Rule has a Status, which is Enabled or Disabled.")),
    };
    let (expiration_days, expired_delete_markers) = match element.only_child("Expiration")? {
        Some(expiration) => read_expiration(expiration)?,
        None => (None, false),
    };
    let (noncurrent_days, newer_noncurrent_versions) =
        match element.only_child("NoncurrentVersionExpiration")? {
            Some(expiration) => read_noncurrent(expiration).map(|(days, kept)| (Some(days), kept))?,
            None => (None, 0),
        };
    let abort_uploads_days =
        element.only_child("AbortIncompleteMultipartUpload")?.map(read_abort).transpose()?;
    let rule = LifecycleRule {
        id: RuleId::new(now)?,
        s3_id,
        prefix,
        tags,
        form,
        expiration_days,
        noncurrent_days,
        newer_noncurrent_versions,
        expired_delete_markers,
        abort_uploads_days,
        is_enabled,
        created_at: now,
    };
    check_actions(&rule)?;
    Ok(rule)
}

/// Checks that a rule does something, and that its filter can select what it acts on.
fn check_actions(rule: &LifecycleRule) -> S3Result<()> {
    if !rule.has_action() {
        return Err(S3Error::invalid_request(
            "At least one action needs to be specified in a rule: Expiration, NoncurrentVersionExpiration or \
             AbortIncompleteMultipartUpload.",
        ));
    }
    if rule.tags.is_empty() {
        return Ok(());
    }
    if rule.expired_delete_markers {
        return Err(S3Error::invalid_request(
            "ExpiredObjectDeleteMarker cannot be specified with a Tag filter, because delete markers have no tags: use \
             a Rule of its own.",
        ));
    }
    if rule.abort_uploads_days.is_some() {
        return Err(S3Error::invalid_request(
            "AbortIncompleteMultipartUpload cannot be specified with a Tag filter, because uploads are selected by \
             prefix: use a Rule of its own.",
        ));
    }
    Ok(())
}

fn read_prefix(element: &Element) -> S3Result<String> {
    check_children(element, &[])?;
    let prefix = element.text();
    if prefix.len() > OBJECT_KEY_BYTES_MAX {
        let message =
            format!("The maximum size of a prefix is {OBJECT_KEY_BYTES_MAX} bytes: no key is longer.");
        return Err(S3Error::invalid_request(message));
    }
    Ok(prefix.to_owned())
}

/// Reads a filter: nothing, a prefix, a tag, or several of them within `And`. Returns its form, too.
fn read_filter(filter: &Element) -> S3Result<(String, Tags, FilterForm)> {
    check_children(filter, &["Prefix", "Tag", "And"])?;
    match filter.children() {
        [] => Ok((String::new(), Tags::default(), FilterForm::Empty)),
        [only] if only.name() == "And" => {
            check_children(only, &["Prefix", "Tag"])?;
            if only.children().is_empty() {
                return Err(malformed("And has a Prefix or a Tag, or several of them."));
            }
            let (prefix, tags) = read_predicates(only)?;
            let form = match (only.child("Prefix").is_some(), tags.is_empty()) {
                _ if only.children().len() == 1 => FilterForm::And,
                (true, false) if prefix.is_empty() => FilterForm::AndEmptyPrefix,
                _ => FilterForm::Shortest,
            };
            Ok((prefix, tags, form))
        }
        [_] => read_predicates(filter).map(|(prefix, tags)| (prefix, tags, FilterForm::Shortest)),
        _ => Err(malformed("A Filter has one Prefix or one Tag. Several of them are within And.")),
    }
}

fn read_predicates(element: &Element) -> S3Result<(String, Tags)> {
    let prefix = element.only_child("Prefix")?.map(read_prefix).transpose()?.unwrap_or_default();
    let read_tag = |tag| {
        check_children(tag, &["Key", "Value"])?;
        tagging::read_tag(tag)
    };
    let tags = element.children_named("Tag").map(read_tag).collect::<S3Result<Vec<_>>>()?;
    let tags = Tags::new(tags, OBJECT_TAGS_MAX);
    let tags = tags.map_err(|invalid| match invalid {
        InvalidTags::Duplicate(_) => S3Error::invalid_request("Duplicate Tag Keys are not allowed."),
        invalid => tagging::tags_error(invalid, "The tags of a Filter"),
    });
    Ok((prefix, tags?))
}

/// Returns the days, and whether delete markers without versions are removed at once.
fn read_expiration(element: &Element) -> S3Result<(Option<u32>, bool)> {
    check_children(element, &["Days", "ExpiredObjectDeleteMarker"])?;
    let markers = match element.only_text("ExpiredObjectDeleteMarker")? {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return Err(malformed("ExpiredObjectDeleteMarker is true or false.")),
    };
    let days = element.only_text("Days")?.map(|text| number("Days", text, LIFECYCLE_DAYS_MAX)).transpose()?;
    if days.is_some() && markers {
        return Err(malformed(
            "ExpiredObjectDeleteMarker cannot be specified with Days: use a Rule of its own.",
        ));
    }
    if element.children().is_empty() {
        return Err(malformed("Expiration has Days or ExpiredObjectDeleteMarker."));
    }
    Ok((days, markers))
}

/// Returns the days, and the number of newer versions that are kept.
fn read_noncurrent(element: &Element) -> S3Result<(u32, u32)> {
    check_children(element, &["NoncurrentDays", "NewerNoncurrentVersions"])?;
    let Some(days) = element.only_text("NoncurrentDays")? else {
        return Err(malformed("NoncurrentVersionExpiration has NoncurrentDays, which is at least 1."));
    };
    let kept = element.only_text("NewerNoncurrentVersions")?;
    let kept = kept.map(|text| number("NewerNoncurrentVersions", text, NEWER_NONCURRENT_VERSIONS_MAX));
    Ok((number("NoncurrentDays", days, LIFECYCLE_DAYS_MAX)?, kept.transpose()?.unwrap_or(0)))
}

/// Returns the days.
fn read_abort(element: &Element) -> S3Result<u32> {
    check_children(element, &["DaysAfterInitiation"])?;
    let Some(days) = element.only_text("DaysAfterInitiation")? else {
        return Err(malformed(
            "AbortIncompleteMultipartUpload has DaysAfterInitiation, which is at least 1.",
        ));
    };
    number("DaysAfterInitiation", days, LIFECYCLE_DAYS_MAX)
}

/// Parses digits without a sign, for a number from 1 to `max`.
fn number(name: &'static str, text: &str, max: u32) -> S3Result<u32> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') {
        return Err(malformed(format!("{name} is a number.")));
    }
    let number = text.parse().ok().filter(|number| (1..=max).contains(number));
    number.ok_or_else(|| {
        S3Error::invalid_argument(
            name,
            &shortened(text),
            format!("'{name}' must be a positive integer of at most {max}"),
        )
    })
}

/// Checks that an element has no children but these.
fn check_children(element: &Element, known: &[&str]) -> S3Result<()> {
    let Some(other) = element.child_beyond(known) else { return Ok(()) };
    let (parent, name) = (element.name(), other.name());
    match NOT_IMPLEMENTED.iter().find(|(known, _)| *known == name) {
        Some((name, instead)) => Err(S3Error::not_implemented(format!(
            "{name} in {parent} is not implemented, and nothing was changed: {instead}."
        ))),
        None => {
            Err(malformed(format!("{parent} has an element that is not known there: {}.", shortened(name))))
        }
    }
}

fn malformed(message: impl Into<String>) -> S3Error {
    S3Error::with_message(ErrorCode::MalformedXML, message.into())
}
