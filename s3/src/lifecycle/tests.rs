//! Tests of both directions: what is written reads back as the same rules, and what is refused says why.

use super::{MARKERS_SUFFIX, document};
use crate::lifecycle::reading;
use crate::xml::reader::parse;
use cairn_engine::{FilterForm, LifecycleRule, RuleId, Tags};
use cairn_model::Timestamp;

const NOW: Timestamp = Timestamp(1_795_000_000_000);

/// Reads rules, or returns the code and the message of the refusal.
fn read(rules: &str) -> Result<Vec<LifecycleRule>, (&'static str, String)> {
    let text = format!("<LifecycleConfiguration>{rules}</LifecycleConfiguration>");
    let refused = reading::read(&parse(text.as_bytes()).expect("well-formed"), NOW);
    refused.map_err(|error| (error.code(), error.message().to_owned()))
}

/// Reads one rule with this filter or prefix, and this action.
fn read_rule(filter: &str, action: &str) -> Result<LifecycleRule, (&'static str, String)> {
    let rules = read(&format!("<Rule>{filter}<Status>Enabled</Status>{action}</Rule>"))?;
    Ok(rules.into_iter().next().expect("a rule"))
}

fn written(rules: &[LifecycleRule]) -> String {
    let bytes = document(rules.iter()).expect("can be written").finish();
    let text = String::from_utf8(bytes).expect("UTF-8");
    text.split_once("\">").expect("a root").1.replace("</LifecycleConfiguration>", "")
}

fn tags(pairs: &[(&str, &str)]) -> Tags {
    let pairs = pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    Tags::new(pairs, 10).expect("valid")
}

const DAYS: &str = "<Expiration><Days>3</Days></Expiration>";

#[test]
fn filters_of_both_forms_are_read() {
    let tag = "<Tag><Key>k</Key><Value>v</Value></Tag>";
    for (filter, prefix, expected) in [
        ("<Prefix>a/</Prefix>".to_owned(), "a/", tags(&[])),
        ("<Prefix/>".to_owned(), "", tags(&[])),
        ("<Filter/>".to_owned(), "", tags(&[])),
        ("<Filter><Prefix> a </Prefix></Filter>".to_owned(), " a ", tags(&[])),
        (format!("<Filter>{tag}</Filter>"), "", tags(&[("k", "v")])),
        (format!("<Filter><And>{tag}</And></Filter>"), "", tags(&[("k", "v")])),
        (
            format!("<Filter><And>{tag}<Prefix>a/</Prefix><Tag><Key>l</Key><Value/></Tag></And></Filter>"),
            "a/",
            tags(&[("k", "v"), ("l", "")]),
        ),
    ] {
        let rule = read_rule(&filter, DAYS).expect(&filter);
        assert_eq!((&*rule.prefix, rule.tags, rule.expiration_days), (prefix, expected, Some(3)), "{filter}");
    }
}

#[test]
fn actions_are_read() {
    let all = "<Rule><ID>one</ID><Filter/><Status>Disabled</Status><NoncurrentVersionExpiration>\
               <NoncurrentDays>7</NoncurrentDays><NewerNoncurrentVersions>2</NewerNoncurrentVersions>\
               </NoncurrentVersionExpiration></Rule><Rule><Filter/><Status>Enabled</Status><Expiration>\
               <ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker></Expiration></Rule>";
    let rules = read(all).expect("valid");
    assert_eq!((rules[0].noncurrent_days, rules[0].newer_noncurrent_versions), (Some(7), 2));
    assert_eq!((rules[0].s3_id.as_deref(), rules[0].is_enabled), (Some("one"), false));
    assert!(rules[1].expired_delete_markers && rules[1].is_enabled && rules[1].s3_id.is_none());
    assert_ne!(rules[0].id, rules[1].id);
}

const ABORT: &str = "<AbortIncompleteMultipartUpload><DaysAfterInitiation>7</DaysAfterInitiation>\
                     </AbortIncompleteMultipartUpload>";

#[test]
fn rule_may_do_nothing_but_abort_uploads() {
    let rule = read_rule("<Filter><Prefix>a/</Prefix></Filter>", ABORT).expect("valid");
    assert_eq!((rule.abort_uploads_days, rule.expiration_days, &*rule.prefix), (Some(7), None, "a/"));
    let rule = read_rule("<Filter/>", &format!("{DAYS}{ABORT}")).expect("valid");
    assert_eq!((rule.abort_uploads_days, rule.expiration_days), (Some(7), Some(3)));
    assert!(written(&[rule]).ends_with(&format!("{DAYS}{ABORT}</Rule>")));
}

/// A client reads what it wrote: Terraform applies a configuration again that comes back in another form.
#[test]
fn each_form_of_a_filter_is_returned() {
    let tag = "<Tag><Key>k</Key><Value>v</Value></Tag>";
    for filter in [
        "<Prefix>a/</Prefix>".to_owned(),
        "<Prefix></Prefix>".to_owned(),
        "<Filter></Filter>".to_owned(),
        "<Filter><Prefix>a/</Prefix></Filter>".to_owned(),
        "<Filter><Prefix></Prefix></Filter>".to_owned(),
        format!("<Filter>{tag}</Filter>"),
        format!("<Filter><And>{tag}</And></Filter>"),
        "<Filter><And><Prefix>a/</Prefix></And></Filter>".to_owned(),
        "<Filter><And><Prefix></Prefix></And></Filter>".to_owned(),
        format!("<Filter><And><Prefix></Prefix>{tag}</And></Filter>"),
        format!("<Filter><And><Prefix>a/</Prefix>{tag}</And></Filter>"),
        format!("<Filter><And>{tag}<Tag><Key>l</Key><Value></Value></Tag></And></Filter>"),
    ] {
        let text = format!("<Rule><ID>i</ID>{filter}<Status>Enabled</Status>{DAYS}</Rule>");
        assert_eq!(written(&read(&text).expect(&filter)), text);
    }
}

#[test]
fn what_is_not_implemented_is_named_with_what_is_possible() {
    let day = "<Days>1</Days>";
    for (filter, action, expected) in [
        ("<Filter/>", format!("{DAYS}<Transition>{day}</Transition>"), "no storage classes"),
        ("<Filter/>", format!("{DAYS}<NoncurrentVersionTransition/>"), "no storage classes"),
        ("<Filter/>", "<Expiration><Date>2030-01-01T00:00:00Z</Date></Expiration>".to_owned(), "use Days"),
        ("<Filter/>", "<DelMarkerExpiration/>".to_owned(), "ExpiredObjectDeleteMarker"),
        (
            "<Filter><ObjectSizeGreaterThan>1</ObjectSizeGreaterThan></Filter>",
            DAYS.to_owned(),
            "Prefix and Tag",
        ),
        (
            "<Filter><And><ObjectSizeLessThan>1</ObjectSizeLessThan></And></Filter>",
            DAYS.to_owned(),
            "Prefix and Tag",
        ),
    ] {
        let (code, message) = read_rule(filter, &action).expect_err(&action);
        assert_eq!(code, "NotImplemented", "{message}");
        assert!(message.contains(expected) && message.contains("nothing was changed"), "{message}");
    }
}

#[test]
fn wrong_documents_are_refused() {
    let expiration = |inner: &str| format!("<Expiration>{inner}</Expiration>");
    let noncurrent =
        |inner: &str| format!("<NoncurrentVersionExpiration>{inner}</NoncurrentVersionExpiration>");
    let long = format!("<ID>{}</ID><Filter/>", "i".repeat(256));
    let tag = "<Tag><Key>k</Key><Value>v</Value></Tag>";
    let many: String = (0..11).map(|key| format!("<Tag><Key>{key}</Key><Value/></Tag>")).collect();
    let prefix = format!("<Prefix>{}</Prefix>", "p".repeat(1025));
    for (filter, action, code) in [
        ("", DAYS.to_owned(), "MalformedXML"),
        ("<Prefix/><Filter/>", DAYS.to_owned(), "MalformedXML"),
        ("<Filter/><Filter/>", DAYS.to_owned(), "MalformedXML"),
        ("<Filter><Prefix/><Tag/></Filter>", DAYS.to_owned(), "MalformedXML"),
        ("<Filter><And/></Filter>", DAYS.to_owned(), "MalformedXML"),
        ("<Filter><And><And/></And></Filter>", DAYS.to_owned(), "MalformedXML"),
        ("<Filter><Tag><Key>k</Key></Tag></Filter>", DAYS.to_owned(), "MalformedXML"),
        ("<Filter><Tag><Key/><Value/></Tag></Filter>", DAYS.to_owned(), "InvalidTag"),
        (&format!("<Filter><And>{tag}{tag}</And></Filter>"), DAYS.to_owned(), "InvalidRequest"),
        (&format!("<Filter><And>{many}</And></Filter>"), DAYS.to_owned(), "BadRequest"),
        (
            &format!("<Filter>{tag}</Filter>"),
            expiration("<ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker>"),
            "InvalidRequest",
        ),
        (&prefix, DAYS.to_owned(), "InvalidRequest"),
        (&long, DAYS.to_owned(), "InvalidArgument"),
        ("<Filter/><Unknown/>", DAYS.to_owned(), "MalformedXML"),
        ("<Filter/><Status>Enabled</Status>", DAYS.to_owned(), "MalformedXML"),
        ("<Filter/>", String::new(), "InvalidRequest"),
        ("<Filter/>", expiration(""), "MalformedXML"),
        ("<Filter/>", expiration("<Days>0</Days>"), "InvalidArgument"),
        ("<Filter/>", expiration("<Days>-1</Days>"), "InvalidArgument"),
        ("<Filter/>", expiration("<Days>36501</Days>"), "InvalidArgument"),
        ("<Filter/>", expiration("<Days>99999999999999999999</Days>"), "InvalidArgument"),
        ("<Filter/>", expiration("<Days>+1</Days>"), "MalformedXML"),
        ("<Filter/>", expiration("<Days>1</Days><Days>2</Days>"), "MalformedXML"),
        (
            "<Filter/>",
            expiration("<ExpiredObjectDeleteMarker>yes</ExpiredObjectDeleteMarker>"),
            "MalformedXML",
        ),
        (
            "<Filter/>",
            expiration("<ExpiredObjectDeleteMarker>false</ExpiredObjectDeleteMarker>"),
            "InvalidRequest",
        ),
        (
            "<Filter/>",
            expiration("<Days>1</Days><ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker>"),
            "MalformedXML",
        ),
        ("<Filter/>", noncurrent("<NewerNoncurrentVersions>1</NewerNoncurrentVersions>"), "MalformedXML"),
        ("<Filter/>", noncurrent("<NoncurrentDays>0</NoncurrentDays>"), "InvalidArgument"),
        (
            "<Filter/>",
            noncurrent(
                "<NoncurrentDays>1</NoncurrentDays><NewerNoncurrentVersions>1001</NewerNoncurrentVersions>",
            ),
            "InvalidArgument",
        ),
    ] {
        let (found, message) = read_rule(filter, &action).expect_err(&format!("{filter} {action}"));
        assert_eq!(found, code, "{filter} {action}: {message}");
    }
}

#[test]
fn wrong_days_of_uploads_are_refused() {
    let tag = "<Tag><Key>k</Key><Value>v</Value></Tag>";
    for (filter, action, code) in [
        ("<Filter/>", "<AbortIncompleteMultipartUpload/>".to_owned(), "MalformedXML"),
        ("<Filter/>", ABORT.replace('7', "0"), "InvalidArgument"),
        ("<Filter/>", ABORT.replace('7', "36501"), "InvalidArgument"),
        ("<Filter/>", ABORT.replace('7', "x"), "MalformedXML"),
        ("<Filter/>", ABORT.repeat(2), "MalformedXML"),
        ("<Filter/>", ABORT.replace("DaysAfterInitiation", "Days"), "MalformedXML"),
        (&format!("<Filter>{tag}</Filter>"), ABORT.to_owned(), "InvalidRequest"),
        (&format!("<Filter><And><Prefix>a</Prefix>{tag}</And></Filter>"), ABORT.to_owned(), "InvalidRequest"),
    ] {
        let (found, message) = read_rule(filter, &action).expect_err(&format!("{filter} {action}"));
        assert_eq!(found, code, "{filter} {action}: {message}");
    }
}

#[test]
fn number_of_rules_and_length_of_answers_are_bounded() {
    let huge = format!("<Expiration><Days>{}</Days></Expiration>", "9".repeat(100_000));
    let text = format!(
        "<LifecycleConfiguration><Rule><Filter/><Status>Enabled</Status>{huge}</Rule></LifecycleConfiguration>"
    );
    let error = reading::read(&parse(text.as_bytes()).expect("well-formed"), NOW).expect_err("too large");
    assert!(
        error.elements().iter().all(|(_, text)| text.len() <= 64),
        "an answer repeats little of the document"
    );
    let rule = format!("<Rule><ID>i</ID><Filter/><Status>Enabled</Status>{DAYS}</Rule>");
    let code = |rules: &str| read(rules).expect_err(rules).0;
    assert_eq!(code(""), "MalformedXML");
    assert_eq!(code(&format!("{rule}<Other/>")), "MalformedXML");
    assert_eq!(code(&rule.repeat(2)), "InvalidArgument");
    assert_eq!(code(&rule.replace("<ID>i</ID>", "").repeat(1001)), "InvalidRequest");
    assert_eq!(read(&rule.replace("<ID>i</ID>", "").repeat(1000)).map(|rules| rules.len()), Ok(1000));
}

fn rule() -> LifecycleRule {
    LifecycleRule {
        id: RuleId::parse("0198c5f0-0000-7000-8000-000000000000").expect("an id"),
        s3_id: None,
        prefix: String::new(),
        tags: Tags::default(),
        form: FilterForm::default(),
        expiration_days: Some(3),
        noncurrent_days: None,
        newer_noncurrent_versions: 0,
        expired_delete_markers: false,
        abort_uploads_days: None,
        is_enabled: true,
        created_at: NOW,
    }
}

#[test]
fn rules_of_the_management_plane_are_valid_in_s3() {
    let id = "0198c5f0-0000-7000-8000-000000000000";
    assert_eq!(
        written(&[rule()]),
        format!("<Rule><ID>{id}</ID><Filter><Prefix></Prefix></Filter><Status>Enabled</Status>{DAYS}</Rule>")
    );
    let tagged = LifecycleRule {
        prefix: "a&b".into(),
        tags: tags(&[("k", "v")]),
        s3_id: Some("mine".into()),
        is_enabled: false,
        expiration_days: None,
        noncurrent_days: Some(4),
        newer_noncurrent_versions: 5,
        ..rule()
    };
    let text = written(std::slice::from_ref(&tagged));
    assert_eq!(
        text,
        "<Rule><ID>mine</ID><Filter><And><Prefix>a&amp;b</Prefix><Tag><Key>k</Key><Value>v</Value></Tag></And></Filter>\
         <Status>Disabled</Status><NoncurrentVersionExpiration><NewerNoncurrentVersions>5</NewerNoncurrentVersions>\
         <NoncurrentDays>4</NoncurrentDays></NoncurrentVersionExpiration></Rule>"
    );
    let read_back = read(&text).expect("valid");
    assert_eq!(read_back, [LifecycleRule { id: read_back[0].id, ..tagged }]);
    let unwritable = LifecycleRule { prefix: "\u{1}".into(), ..rule() };
    assert_eq!(document([unwritable].iter()).err().map(|error| error.code()), Some("InvalidRequest"));
}

/// S3 forbids days and delete markers in one rule. The first of two rules expires objects, the second one removes markers.
#[test]
fn rule_that_s3_cannot_express_becomes_two() {
    let both = LifecycleRule { expired_delete_markers: true, noncurrent_days: Some(1), ..rule() };
    let rules = read(&written(std::slice::from_ref(&both))).expect("valid");
    assert_eq!(rules.len(), 2);
    assert_eq!((rules[0].expiration_days, rules[0].noncurrent_days), (Some(3), Some(1)));
    assert!(!rules[0].expired_delete_markers && rules[1].expired_delete_markers);
    assert_eq!((rules[1].expiration_days, rules[1].noncurrent_days), (None, None));
    assert_eq!(rules[1].s3_id, Some(format!("{}{MARKERS_SUFFIX}", both.id)));
    let only_markers = LifecycleRule { expiration_days: None, noncurrent_days: None, ..both };
    assert_eq!(read(&written(&[only_markers])).expect("valid").len(), 1);
}
