//! Lifecycle rules of an export.
//!
//! A filter that cannot be expressed refuses its rule, which would otherwise act on more. An action that cannot be expressed is
//! left out, which removes less.

use cairn_api::{SetLifecycleRule, Tag};

use crate::s3::xml::Element;

/// Actions of rules that have no counterpart.
const ACTIONS: [(&str, &str); 4] = [
    ("Transition", "there are no storage classes"),
    ("NoncurrentVersionTransition", "there are no storage classes"),
    (
        "DelMarkerExpiration",
        "delete markers that are the only version of their key can be removed, without a number of days",
    ),
    ("AllVersionsExpiration", "there are rules for current and for older versions"),
];

/// Reads the rules of a configuration. `lose` gets the reasons for what is left out.
pub(super) fn read(configuration: &Element, lose: &mut dyn FnMut(String)) -> Vec<SetLifecycleRule> {
    let elements = configuration.children().iter().filter(|element| element.name() == "Rule");
    let mut rules = Vec::new();
    for (index, element) in elements.enumerate() {
        let name = match element.text_of("ID").map(str::trim) {
            None | Some("") => format!("the rule {}", index + 1),
            Some(id) => format!("the rule {id}"),
        };
        let mut lose = |reason: String| lose(format!("{name}: {reason}"));
        match read_rule(element, &mut lose) {
            Ok(rule) if has_action(&rule) => rules.push(rule),
            Ok(_) => lose("it has no action that is possible here".to_owned()),
            Err(reason) => lose(reason),
        }
    }
    rules
}

fn has_action(rule: &SetLifecycleRule) -> bool {
    rule.expiration.is_some()
        || rule.noncurrent_version_expiration.is_some()
        || rule.abort_incomplete_multipart_upload.is_some()
        || rule.expired_delete_markers == Some(true)
}

fn read_rule(element: &Element, lose: &mut dyn FnMut(String)) -> Result<SetLifecycleRule, String> {
    let mut rule = SetLifecycleRule {
        prefix: String::new(),
        tags: Some(Vec::new()),
        expiration: None,
        noncurrent_version_expiration: None,
        newer_noncurrent_versions: Some(0),
        expired_delete_markers: Some(false),
        abort_incomplete_multipart_upload: None,
        enabled: Some(match element.text_of("Status").map(str::trim) {
            Some("Enabled") => true,
            Some("Disabled") => false,
            _ => return Err("its Status is neither Enabled nor Disabled".to_owned()),
        }),
    };
    for child in element.children().iter().filter(|child| !is_empty(child)) {
        match child.name() {
            "ID" | "Status" => {}
            "Prefix" | "Filter" => read_filter(child, &mut rule)?,
            "Expiration" => read_expiration(child, &mut rule, lose)?,
            "NoncurrentVersionExpiration" => {
                let days = days(child, "NoncurrentDays")?;
                rule.noncurrent_version_expiration =
                    Some(days.ok_or("NoncurrentVersionExpiration has no days")?);
                rule.newer_noncurrent_versions =
                    Some(days_of(child, "NewerNoncurrentVersions")?.unwrap_or(0));
            }
            "AbortIncompleteMultipartUpload" => {
                rule.abort_incomplete_multipart_upload = days(child, "DaysAfterInitiation")?;
            }
            name => match ACTIONS.iter().find(|(known, _)| *known == name) {
                Some((name, why)) => lose(format!("{name} has no counterpart: {why}")),
                None => return Err(format!("{name} is unknown")),
            },
        }
    }
    Ok(rule)
}

/// Returns whether an element says nothing.
fn is_empty(element: &Element) -> bool {
    element.text().trim().is_empty() && element.children().iter().all(is_empty)
}

fn read_filter(element: &Element, rule: &mut SetLifecycleRule) -> Result<(), String> {
    match element.name() {
        "Prefix" => element.text().clone_into(&mut rule.prefix),
        "Tag" => {
            let text = |name| element.text_of(name).unwrap_or_default().to_owned();
            rule.tags.get_or_insert_default().push(Tag { key: text("Key"), value: text("Value") });
        }
        "Filter" | "And" => {
            for child in element.children() {
                read_filter(child, rule)?;
            }
        }
        name => return Err(format!("the filter {name} has no counterpart: rules select by prefix and tags")),
    }
    Ok(())
}

fn read_expiration(
    element: &Element,
    rule: &mut SetLifecycleRule,
    lose: &mut dyn FnMut(String),
) -> Result<(), String> {
    for child in element.children().iter().filter(|child| !is_empty(child)) {
        let is_true = child.text().trim() == "true";
        match child.name() {
            "Days" => rule.expiration = days(element, "Days")?,
            "ExpiredObjectDeleteMarker" => rule.expired_delete_markers = Some(is_true),
            "Date" => lose("a Date has no counterpart: rules count days".to_owned()),
            "ExpiredObjectAllVersions" if !is_true => {}
            "ExpiredObjectAllVersions" => {
                lose(
                    "ExpiredObjectAllVersions has no counterpart: only the current object expires".to_owned(),
                );
            }
            name => return Err(format!("{name} in Expiration is unknown")),
        }
    }
    Ok(())
}

/// Returns a number of days; 0 is none.
fn days(element: &Element, name: &str) -> Result<Option<u32>, String> {
    Ok(days_of(element, name)?.filter(|days| *days > 0))
}

fn days_of(element: &Element, name: &str) -> Result<Option<u32>, String> {
    let text = element.text_of(name).map(str::trim).filter(|text| !text.is_empty());
    text.map(|text| text.parse().map_err(|_| format!("{name} is no number"))).transpose()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::s3::xml::parse;

    fn read_text(rules: &str) -> (Vec<Value>, Vec<String>) {
        let document = format!("<LifecycleConfiguration>{rules}</LifecycleConfiguration>");
        let mut lost = Vec::new();
        let rules = read(&parse(&document).unwrap(), &mut |reason| lost.push(reason));
        (rules.iter().map(|rule| json!(rule)).collect(), lost)
    }

    /// As a server exported them.
    #[test]
    fn rules_are_read_as_minio_writes_them() {
        let (rules, lost) = read_text(
            "<Rule><ID>tmp</ID><Status>Enabled</Status><Filter><Prefix>tmp/</Prefix></Filter><Expiration><Days>7</Days></Expiration></Rule>\
             <Rule><ID>old</ID><Status>Enabled</Status><Filter><And><Prefix></Prefix><Tag><Key>a</Key><Value>b</Value></Tag></And></Filter>\
             <NoncurrentVersionExpiration><NoncurrentDays>30</NoncurrentDays><NewerNoncurrentVersions>2</NewerNoncurrentVersions></NoncurrentVersionExpiration></Rule>\
             <Rule><ID>mark</ID><Status>Disabled</Status><Filter></Filter><Expiration><ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker></Expiration></Rule>\
             <ExpiryUpdatedAt>2026-11-26T12:08:23.826267828Z</ExpiryUpdatedAt>",
        );
        assert_eq!(lost, Vec::<String>::new());
        assert_eq!(rules.len(), 3);
        assert_eq!((&rules[0]["prefix"], &rules[0]["expiration"]), (&json!("tmp/"), &json!(7)));
        assert_eq!(rules[1]["tags"], json!([{"key": "a", "value": "b"}]));
        let noncurrent = (&rules[1]["noncurrent_version_expiration"], &rules[1]["newer_noncurrent_versions"]);
        assert_eq!(noncurrent, (&json!(30), &json!(2)));
        assert_eq!(
            (&rules[2]["expired_delete_markers"], &rules[2]["enabled"]),
            (&json!(true), &json!(false))
        );
    }

    #[test]
    fn a_filter_without_counterpart_refuses_the_rule() {
        for filter in [
            "<ObjectSizeGreaterThan>5</ObjectSizeGreaterThan>",
            "<And><Prefix>a</Prefix><ObjectSizeLessThan>9</ObjectSizeLessThan></And>",
        ] {
            let rule = format!(
                "<Rule><ID>size</ID><Status>Enabled</Status><Filter>{filter}</Filter><Expiration><Days>7</Days></Expiration></Rule>"
            );
            let (rules, lost) = read_text(&rule);
            assert!(
                rules.is_empty() && lost[0].starts_with("the rule size: the filter ObjectSize"),
                "{lost:?}"
            );
        }
    }

    #[test]
    fn an_action_without_counterpart_is_left_out() {
        let (rules, lost) = read_text(
            "<Rule><Status>Enabled</Status><Filter/><Expiration><Days>7</Days><ExpiredObjectAllVersions>true</ExpiredObjectAllVersions></Expiration>\
             <Transition><Days>1</Days><StorageClass>COLD</StorageClass></Transition></Rule>\
             <Rule><Status>Enabled</Status><Filter/><Expiration><Date>2027-01-01T00:00:00Z</Date></Expiration></Rule>\
             <Rule><Status>Enabled</Status><Filter/><NoncurrentVersionExpiration><NewerNoncurrentVersions>2</NewerNoncurrentVersions></NoncurrentVersionExpiration></Rule>",
        );
        assert_eq!(rules.len(), 1);
        assert_eq!(rules[0]["expiration"], json!(7));
        for (found, part) in
            lost.iter().zip(["ExpiredObjectAllVersions", "Transition", "Date", "no action", "has no days"])
        {
            assert!(found.contains(part), "{lost:?}");
        }
        assert_eq!(lost.len(), 5);
    }
}
