//! Writes the lifecycle rules of a bucket as S3 has them. Source: API Reference, GetBucketLifecycleConfiguration.
//!
//! A rule of ours may expire objects by age and remove delete markers at once. S3 forbids both in one rule, so it becomes
//! two. Prefix and tags have the form in which an S3 client wrote them, and otherwise the shortest one with `Filter`.

use crate::errors::{S3Error, S3Result};
use crate::lifecycle::reading::DOCUMENT;
use crate::xml::writer::{XmlWriter, xml_can_represent};
use cairn_engine::{FilterForm, LifecycleRule};

/// The end of the second rule's ID.
const MARKERS_SUFFIX: &str = "-delete-markers";

/// Returns the document of these rules.
///
/// # Errors
/// `InvalidRequest` for a prefix that XML cannot represent, which only the management plane can set.
pub(crate) fn document<'r>(rules: impl Iterator<Item = &'r LifecycleRule>) -> S3Result<XmlWriter> {
    let mut xml = XmlWriter::with_capacity(4096);
    xml.open_root(DOCUMENT);
    for rule in rules {
        if !xml_can_represent(&rule.prefix) {
            return Err(S3Error::invalid_request(format!(
                "The prefix of the lifecycle rule {} has characters that XML 1.0 cannot represent: read the rules with the \
                 management API.",
                rule.id
            )));
        }
        let is_split = rule.expiration_days.is_some() && rule.expired_delete_markers;
        write_rule(&mut xml, rule, &rule.id_in_s3(), |xml| {
            match rule.expiration_days {
                Some(days) => write_expiration(xml, "Days", days),
                None if rule.expired_delete_markers => write_markers(xml),
                None => {}
            }
            write_noncurrent(xml, rule);
            write_abort(xml, rule);
        });
        if is_split {
            write_rule(&mut xml, rule, &format!("{}{MARKERS_SUFFIX}", rule.id), write_markers);
        }
    }
    xml.close(DOCUMENT);
    Ok(xml)
}

fn write_rule(
    xml: &mut XmlWriter,
    rule: &LifecycleRule,
    id: &str,
    write_actions: impl FnOnce(&mut XmlWriter),
) {
    xml.open("Rule");
    xml.text("ID", id);
    write_filter(xml, rule);
    xml.value("Status", if rule.is_enabled { "Enabled" } else { "Disabled" });
    write_actions(xml);
    xml.close("Rule");
}

fn write_filter(xml: &mut XmlWriter, rule: &LifecycleRule) {
    let form = rule.form;
    if form == FilterForm::RulePrefix {
        return xml.text("Prefix", &rule.prefix);
    }
    let has_prefix = form != FilterForm::Empty
        && (rule.tags.is_empty() || !rule.prefix.is_empty() || form == FilterForm::AndEmptyPrefix);
    let is_combined = usize::from(has_prefix) + rule.tags.len() > 1 || form == FilterForm::And;
    xml.open("Filter");
    if is_combined {
        xml.open("And");
    }
    if has_prefix {
        xml.text("Prefix", &rule.prefix);
    }
    for (key, value) in rule.tags.iter() {
        xml.open("Tag");
        xml.text("Key", key);
        xml.text("Value", value);
        xml.close("Tag");
    }
    if is_combined {
        xml.close("And");
    }
    xml.close("Filter");
}

fn write_expiration(xml: &mut XmlWriter, name: &str, value: impl std::fmt::Display) {
    xml.open("Expiration");
    xml.value(name, value);
    xml.close("Expiration");
}

fn write_markers(xml: &mut XmlWriter) {
    write_expiration(xml, "ExpiredObjectDeleteMarker", true);
}

fn write_noncurrent(xml: &mut XmlWriter, rule: &LifecycleRule) {
    let Some(days) = rule.noncurrent_days else { return };
    xml.open("NoncurrentVersionExpiration");
    if rule.newer_noncurrent_versions > 0 {
        xml.value("NewerNoncurrentVersions", rule.newer_noncurrent_versions);
    }
    xml.value("NoncurrentDays", days);
    xml.close("NoncurrentVersionExpiration");
}

fn write_abort(xml: &mut XmlWriter, rule: &LifecycleRule) {
    let Some(days) = rule.abort_uploads_days else { return };
    xml.open("AbortIncompleteMultipartUpload");
    xml.value("DaysAfterInitiation", days);
    xml.close("AbortIncompleteMultipartUpload");
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
