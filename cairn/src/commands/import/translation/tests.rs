//! Tests of the whole translation: examples, and documents at random.

use cairn_identity::policy::{Action, Resource, Rights};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::actions::{ACTIONS, Target, Weight};
use super::compare::{Differences, Source, compare};
use super::source::{Asked, Document, allow};
use super::statements::{compile, translate};

fn allowing(actions: &[&str], resources: &[&str]) -> Value {
    let resources: Vec<_> = resources.iter().map(|path| format!("arn:aws:s3:::{path}")).collect();
    json!({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": actions, "Resource": resources}]})
}

/// Returns the statements as texts, and the differences.
fn translated(document: &Value) -> Result<(Vec<String>, Differences), String> {
    let document = Document::read(document, "alice").map_err(|refusal| refusal.reason)?;
    let statements = translate(&document)?.statements;
    let differences =
        compare(&Source { documents: std::slice::from_ref(&document), session: None }, &statements)?;
    let texts = compile(&statements)?
        .map_or_else(Vec::new, |policy| policy.statements.iter().map(ToString::to_string).collect());
    Ok((texts, differences))
}

fn names(differences: &[super::Difference]) -> Vec<&'static str> {
    differences.iter().flat_map(|difference| difference.actions.iter().copied()).collect()
}

const ADDED_TO_GET: [&str; 8] = [
    "s3:GetObjectAcl",
    "s3:GetObjectAttributes",
    "s3:GetObjectLegalHold",
    "s3:GetObjectRetention",
    "s3:GetObjectTagging",
    "s3:GetObjectVersionAttributes",
    "s3:GetObjectVersionTagging",
    "s3:ListMultipartUploadParts",
];

#[test]
fn built_in_policies_are_translated() {
    let (texts, differences) =
        translated(&allowing(&["s3:GetBucketLocation", "s3:GetObject"], &["*"])).unwrap();
    assert_eq!(texts, ["allow s3:GetObject on bucket:*"]);
    assert_eq!(names(&differences.wider), ADDED_TO_GET);
    assert!(differences.narrower.is_empty());
    assert_eq!(names(&differences.left_out), ["s3:GetBucketLocation"]);

    let (texts, differences) = translated(&allowing(&["s3:*"], &["*"])).unwrap();
    let all = Action::ALL.map(Action::name).join(", ");
    assert_eq!(texts, [format!("allow {all} on bucket:*")]);
    assert_eq!(differences, Differences::default());

    let (texts, differences) = translated(&allowing(&["s3:PutObject"], &["*"])).unwrap();
    assert_eq!(texts, ["allow s3:PutObject on bucket:*"]);
    assert!(names(&differences.wider).contains(&"s3:PutObjectRetention") && differences.narrower.is_empty());

    let console = json!({"Statement": [{"Effect": "Allow", "Action": ["admin:*"]}, {"Effect": "Allow", "Action": ["kms:*"]},
        {"Effect": "Allow", "Action": ["s3:*"], "Resource": ["arn:aws:s3:::*"]}]});
    let translation = translate(&Document::read(&console, "alice").unwrap()).unwrap();
    assert_eq!(translation.statements.len(), 1);
    assert_eq!(translation.without_counterpart.into_iter().collect::<Vec<_>>(), ["admin:*", "kms:*"]);
}

#[test]
fn resources_are_translated() {
    let list_and_get = ["s3:ListBucket", "s3:GetObject"];
    for (path, expected) in [
        ("photos", "allow s3:ListBucket, s3:GetObject on bucket:photos"),
        ("photos/", "allow s3:ListBucket, s3:GetObject on bucket:photos"),
        ("photos/*", "allow s3:ListBucket, s3:GetObject on bucket:photos, bucket:photos/*"),
        ("photos/**", "allow s3:ListBucket, s3:GetObject on bucket:photos, bucket:photos/*"),
        ("photos/a/*", "allow s3:ListBucket, s3:GetObject on bucket:photos/a/*"),
        ("photos/a", "allow s3:ListBucket, s3:GetObject on bucket:photos/a"),
        ("pho*", "allow s3:ListBucket, s3:GetObject on bucket:pho*"),
        ("pho*/*", "allow s3:ListBucket, s3:GetObject on bucket:pho*"),
        ("*/*", "allow s3:ListBucket, s3:GetObject on bucket:*"),
        (
            "home-${aws:username}/*",
            "allow s3:ListBucket, s3:GetObject on bucket:home-alice, bucket:home-alice/*",
        ),
    ] {
        let (texts, differences) = translated(&allowing(&list_and_get, &[path])).expect(path);
        assert_eq!(texts, [expected], "{path}");
        assert!(differences.narrower.is_empty(), "{path}: {differences:?}");
    }
    for path in ["*/a", "p*s", "p*s/*", "photos/*.jpg", "photos/a?", "p?", "*/x/*", "Photos/*", "a/*"] {
        assert!(translated(&allowing(&list_and_get, &[path])).is_err(), "{path}");
    }
}

#[test]
fn an_action_is_not_translated_into_one_that_does_more() {
    for (actions, expected) in [
        (&["s3:PutObject", "s3:AbortMultipartUpload"][..], "allow s3:PutObject on bucket:b-1/*"),
        (
            &["s3:GetObject", "s3:PutObjectTagging", "s3:GetBucketPolicy"],
            "allow s3:GetObject on bucket:b-1/*",
        ),
        (&["s3:GetObject", "s3:BypassGovernanceRetention"], "allow s3:GetObject on bucket:b-1/*"),
    ] {
        let (texts, differences) = translated(&allowing(actions, &["b-1/*"])).unwrap();
        assert_eq!(texts, [expected]);
        assert_eq!(names(&differences.narrower).len(), actions.len() - 1, "{differences:?}");
    }
    let (texts, differences) = translated(&allowing(&["s3:GetObjectTagging"], &["b-1/*"])).unwrap();
    assert!(texts.is_empty() && names(&differences.narrower) == ["s3:GetObjectTagging"]);
}

#[test]
fn bucket_actions_become_the_management_of_buckets() {
    let (texts, differences) = translated(&allowing(&["s3:CreateBucket"], &["app-*"])).unwrap();
    assert_eq!(texts, ["allow s3:ManageBucket on bucket:app-*"]);
    let wider = names(&differences.wider);
    assert!(
        wider.contains(&"s3:DeleteBucket") && wider.contains(&"s3:BypassGovernanceRetention"),
        "{wider:?}"
    );
}

/// A denial of a part denies the whole, so that nothing is allowed that the source denies.
#[test]
fn a_denial_is_never_narrower() {
    let document = json!({"Statement": [
        {"Effect": "Allow", "Action": "s3:*", "Resource": "arn:aws:s3:::b-1/*"},
        {"Effect": "Deny", "Action": "s3:DeleteObjectVersion", "Resource": "arn:aws:s3:::b-1/*"}]});
    let (texts, differences) = translated(&document).unwrap();
    assert_eq!(texts[1], "deny s3:DeleteObject on bucket:b-1/*");
    assert!(differences.wider.is_empty());
    assert_eq!(names(&differences.narrower), ["s3:DeleteObject"]);
    assert_eq!(names(&differences.left_out), ["s3:AbortMultipartUpload"]);
}

/// A statement with `s3:*` for a folder does not mean the bypass of retention, which is a right on the whole bucket here.
#[test]
fn what_only_a_wildcard_includes_is_no_loss() {
    let (texts, differences) = translated(&allowing(&["s3:*"], &["b-1/${aws:username}/*"])).unwrap();
    assert_eq!(texts.len(), 1);
    assert_eq!(
        (names(&differences.narrower), names(&differences.left_out)),
        (vec![], vec!["s3:BypassGovernanceRetention"])
    );
    assert_eq!(differences.left_out[0].resources, ["b-1/alice/*"]);
}

#[test]
fn networks_are_translated() {
    let document = json!({"Statement": {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::b-1/*",
        "Condition": {"IpAddress": {"aws:SourceIp": ["10.1.2.3/8", "192.0.2.1/32"]}}}});
    let (texts, differences) = translated(&document).unwrap();
    assert_eq!(texts, ["allow s3:GetObject on bucket:b-1/* from 10.0.0.0/8, 192.0.2.1"]);
    assert!(differences.narrower.is_empty());
}

/// The comparison is a test of its own: it would notice a translation that allows more.
#[test]
fn a_wider_translation_is_an_error() {
    let read = |document: &Value| Document::read(document, "alice").unwrap();
    let narrow = read(&allowing(&["s3:GetObject"], &["b-1/a/*"]));
    let wide = translate(&read(&allowing(&["s3:GetObject"], &["b-1/*"]))).unwrap().statements;
    let source = Source { documents: &[narrow], session: None };
    assert!(compare(&source, &wide).unwrap_err().contains("s3:GetObject"));
}

fn statement() -> impl Strategy<Value = Value> {
    let actions: Vec<String> = ACTIONS
        .iter()
        .map(|action| action.name)
        .chain([
            "s3:*",
            "s3:Get*",
            "s3:*Object",
            "s3:Put*",
            "s3:Delete*",
            "*",
            "admin:*",
            "s3:List?ucket",
            "s3:Unknown",
        ])
        .map(str::to_owned)
        .collect();
    let resource = prop::sample::select(vec![
        "*",
        "abc",
        "abc/*",
        "abc/k",
        "abc/k*",
        "ab*",
        "ab*/*",
        "abd/*",
        "abc/${aws:username}/*",
        "abc/*k",
        "a?c",
        "a*c/*",
    ]);
    let network = prop::sample::select(vec!["10.0.0.0/8", "10.1.2.3/16", "::/0"]);
    let actions = prop::collection::vec(prop::sample::select(actions), 1..4);
    (prop::bool::weighted(0.7), actions, prop::collection::vec(resource, 1..3), prop::option::weighted(0.2, network))
        .prop_map(|(allows, actions, resources, network)| {
            let resources: Vec<_> = resources.iter().map(|path| format!("arn:aws:s3:::{path}")).collect();
            let mut statement = json!({"Effect": if allows { "Allow" } else { "Deny" }, "Action": actions, "Resource": resources});
            if let Some(network) = network {
                statement["Condition"] = json!({"IpAddress": {"aws:SourceIp": network}});
            }
            statement
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever is allowed here, the source allows it, or it allows what the action here is for.
    #[test]
    fn a_translation_allows_no_more_than_the_source(statements in prop::collection::vec(statement(), 1..4)) {
        let Ok(document) = Document::read(&json!({"Statement": statements}), "alice") else {
            return Err(TestCaseError::fail("each statement is readable"));
        };
        let documents = std::slice::from_ref(&document);
        let Ok(translation) = translate(&document) else { return Ok(()) };
        let policy = compile(&translation.statements).expect("was checked");
        let rights = Rights::compile(&policy);
        for client in ["10.1.0.1", "10.9.0.1", "11.0.0.1", "::1"].map(|client| client.parse().expect("an address")) {
            for (bucket, key) in [("abc", "k"), ("abc", "kk"), ("abc", "alice/x"), ("abc", "bob/x"), ("abd", "k"), ("xyz", "k")] {
                let allows = |action: &super::actions::SourceAction| {
                    let key = (action.target == Target::Object).then_some(key);
                    allow(documents, &Asked { action: action.name, bucket, key, client })
                };
                for action in ACTIONS {
                    let resource =
                        if action.here.is_on_buckets() { Resource::Bucket(bucket) } else { Resource::Object(bucket, key) };
                    if rights.decide(action.here, resource, Some(client)).is_allowed() {
                        let is_main_allowed = || ACTIONS.iter()
                            .filter(|main| main.here == action.here && main.weight == Weight::Main)
                            .any(allows);
                        prop_assert!(allows(action) || is_main_allowed(), "{} {bucket}/{key} {client}", action.name);
                    }
                }
            }
        }
        // The comparison finds nothing else, either.
        let compared = compare(&Source { documents, session: None }, &translation.statements);
        prop_assert!(compared.is_ok(), "{:?}", compared);
    }
}
