//! Compares compiled rights and explanations with a naive evaluator on random policies.

use super::{
    Action, Decision, Explanation, Policy, PolicyDraft, Resource, Rights, StatementDraft, naive,
    narrowest_statement,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::cell::Cell;
use std::net::IpAddr;

/// Buckets whose names are prefixes of each other.
const BUCKETS: [&str; 3] = ["photos", "photos-2", "pho"];
/// Questions for each set of policies.
const QUESTIONS: u32 = 50;
/// Total number of questions, unless `CAIRN_POLICY_QUESTIONS` sets another one.
const QUESTIONS_IN_ALL: u32 = 100_000;

/// Keys of a few characters, so that patterns often match. Some of them would be changed by decoding or normalising.
fn key() -> impl Strategy<Value = String> {
    "(a|b|/|\\.\\./|//|%2F|%|\\+| |é|e\u{301}|A){1,5}"
}

fn resource() -> impl Strategy<Value = String> {
    let bucket = prop::sample::select(&BUCKETS[..]);
    let names = prop::sample::select(&["", "p", "photos", "photos-", "x"][..]);
    let of_one_bucket = (
        bucket,
        prop_oneof![
            Just(None),
            key().prop_map(Some),
            key().prop_map(|key| Some(key + "*")),
            Just(Some("*".into()))
        ],
    )
        .prop_map(|(bucket, key): (_, Option<String>)| match key {
            None => format!("bucket:{bucket}"),
            Some(key) => format!("bucket:{bucket}/{key}"),
        });
    prop_oneof![5 => of_one_bucket, 1 => names.prop_map(|prefix| format!("bucket:{prefix}*"))]
}

/// Networks that contain some of the clients of [`client`].
fn source_ip() -> impl Strategy<Value = Option<Vec<String>>> {
    let networks = ["10.0.0.0/8", "10.1.0.0/16", "2001:db8::/32", "::ffff:10.1.2.3", "0.0.0.0/0"];
    let some = prop::sample::subsequence(networks.map(str::to_owned).to_vec(), 1..=3);
    prop_oneof![3 => Just(None), 1 => some.prop_map(Some)]
}

/// Addresses of clients, and one that is not known.
fn client() -> impl Strategy<Value = Option<IpAddr>> {
    const ADDRESSES: [&str; 6] =
        ["10.1.2.3", "10.2.0.1", "192.0.2.7", "2001:db8::7", "2001:db9::7", "::ffff:10.1.2.3"];
    let address = prop::sample::select(&ADDRESSES[..]);
    prop_oneof![1 => Just(None), 4 => address.prop_map(|text| Some(text.parse().expect("an address")))]
}

fn statement() -> impl Strategy<Value = StatementDraft> {
    let effect = prop_oneof![2 => Just("allow"), 1 => Just("deny")];
    let actions = prop::sample::subsequence(Action::ALL.map(Action::name).to_vec(), 1..=5);
    let resources = prop::collection::vec(resource(), 1..6);
    (effect, actions, resources, any::<bool>(), source_ip()).prop_map(
        |(effect, actions, resources, limited, source_ip)| {
            let only_if_absent = limited && effect == "allow" && actions.contains(&Action::PutObject.name());
            let actions = actions.into_iter().map(str::to_owned).collect();
            StatementDraft { effect: effect.to_owned(), actions, resources, only_if_absent, source_ip }
        },
    )
}

fn policies() -> impl Strategy<Value = Vec<Policy>> {
    let policy = prop::collection::vec(statement(), 1..4).prop_map(|statements| {
        let draft = PolicyDraft { name: "p".to_owned(), description: String::new(), statements };
        Policy::from_draft(&draft).expect("a policy")
    });
    prop::collection::vec(policy, 0..5)
}

fn question() -> impl Strategy<Value = (Action, &'static str, Option<String>, Option<IpAddr>)> {
    let key = prop_oneof![1 => Just(None), 6 => key().prop_map(Some)];
    (prop::sample::select(&Action::ALL[..]), prop::sample::select(&BUCKETS[..]), key, client())
}

/// Checks that an explanation decides as requests are decided, that the statement which it names decides alone, and that
/// what it suggests would allow the request.
fn explain(
    policies: &[Policy],
    action: Action,
    resource: Resource<'_>,
    client: Option<IpAddr>,
    expected: Decision,
) -> Result<(), TestCaseError> {
    let mut explained = Explanation::new(action, resource, client);
    for (index, policy) in policies.iter().enumerate() {
        explained.add(index, policy);
    }
    prop_assert_eq!(explained.decision(), expected);
    let first = explained.statements().next();
    prop_assert_eq!(first.is_none(), expected == Decision::DeniedImplicitly);
    if let Some(first) = first {
        let mut deciding = policies[first.policy].clone();
        deciding.statements = vec![deciding.statements.swap_remove(first.statement)];
        let resources = &mut deciding.statements[0].resources;
        *resources = vec![resources.swap_remove(first.resource)];
        prop_assert_eq!(naive::decide(&[deciding], action, resource, client), expected);
    }
    let statements = vec![narrowest_statement(action, resource)];
    let draft = PolicyDraft { name: "p".to_owned(), description: String::new(), statements };
    let suggested = Policy::from_draft(&draft).expect("a policy");
    prop_assert!(Rights::compile([&suggested]).decide(action, resource, client).is_allowed());
    Ok(())
}

#[test]
fn compiled_rights_agree_with_the_naive_evaluator() {
    let in_all = std::env::var("CAIRN_POLICY_QUESTIONS").ok();
    let in_all =
        in_all.map_or(QUESTIONS_IN_ALL, |text| text.parse().expect("CAIRN_POLICY_QUESTIONS is a number"));
    let config = Config { cases: in_all.div_ceil(QUESTIONS), failure_persistence: None, ..Config::default() };
    let questions = prop::collection::vec(question(), QUESTIONS as usize);
    let counts = [const { Cell::new(0u64) }; 4];
    let agreed = TestRunner::new(config).run(&(policies(), questions), |(policies, questions)| {
        let rights = Rights::compile(&policies);
        for (action, bucket, key, client) in &questions {
            let resource = match key {
                None => Resource::Bucket(bucket),
                Some(key) => Resource::Object(bucket, key),
            };
            let expected = naive::decide(&policies, *action, resource, *client);
            let decided = rights.decide(*action, resource, *client);
            prop_assert_eq!(decided, expected, "{:?} {:?} {:?}", action, resource, client);
            explain(&policies, *action, resource, *client, expected)?;
            counts[expected as usize].update(|count| count + 1);
            prop_assert_eq!(
                rights.allows_something_on(bucket, *client),
                naive::allows_something_on(&policies, bucket, *client)
            );
        }
        Ok(())
    });
    agreed.expect("both evaluators agree");
    // The test is only meaningful if all decisions occur often.
    let often = u64::from(in_all / 100);
    assert!(counts.iter().all(|count| count.get() > often), "{counts:?}");
}

fn rights(statements: &[(&str, &str, &str)]) -> Rights {
    let statements = statements.iter().map(|(effect, action, resource)| StatementDraft {
        effect: (*effect).to_owned(),
        actions: vec![(*action).to_owned()],
        resources: vec![(*resource).to_owned()],
        only_if_absent: false,
        source_ip: None,
    });
    let draft =
        PolicyDraft { name: "p".to_owned(), description: String::new(), statements: statements.collect() };
    Rights::compile([&Policy::from_draft(&draft).expect("a policy")])
}

#[test]
fn bucket_and_object_patterns_do_not_imply_each_other() {
    let objects = rights(&[("allow", "s3:GetObject", "bucket:photos/*")]);
    assert!(objects.decide(Action::GetObject, Resource::Object("photos", "a"), None).is_allowed());
    assert_eq!(
        objects.decide(Action::GetObject, Resource::Bucket("photos"), None),
        Decision::DeniedImplicitly
    );
    let bucket = rights(&[("allow", "s3:GetObject", "bucket:photos")]);
    assert_eq!(
        bucket.decide(Action::GetObject, Resource::Object("photos", "a"), None),
        Decision::DeniedImplicitly
    );
    assert!(bucket.allows_something_on("photos", None) && objects.allows_something_on("photos", None));
    assert!(!bucket.allows_something_on("pho", None));
}

#[test]
fn prefixes_need_no_slash_and_keys_are_compared_bytewise() {
    let rights = rights(&[
        ("allow", "s3:GetObject", "bucket:photos/team*"),
        ("deny", "s3:GetObject", "bucket:photos/team/secret"),
    ]);
    for (key, allowed) in [
        ("team", true),
        ("team/a", true),
        ("teammates/a", true),
        ("Team/a", false),
        ("a/../team/a", false),
        ("/team/a", false),
        ("team/secret", false),
        ("team/secret ", true),
        ("team/./secret", true),
        ("team%2Fsecret", true),
    ] {
        let decided = rights.decide(Action::GetObject, Resource::Object("photos", key), None);
        assert_eq!(decided.is_allowed(), allowed, "{key}");
    }
}

#[test]
fn a_deny_alone_does_not_list_the_bucket() {
    let rights = rights(&[("deny", "s3:GetObject", "bucket:photos/*")]);
    assert!(!rights.allows_something_on("photos", None));
    let decided = rights.decide(Action::GetObject, Resource::Object("photos", "a"), None);
    assert_eq!(decided, Decision::DeniedExplicitly);
}

#[test]
fn a_pattern_of_names_covers_buckets_and_their_objects() {
    let rights = rights(&[
        ("allow", "s3:GetObject", "bucket:app-*"),
        ("allow", "s3:ManageBucket", "bucket:app-*"),
        ("deny", "s3:GetObject", "bucket:app-secret/*"),
    ]);
    for (action, resource, allowed) in [
        (Action::GetObject, Resource::Object("app-1", "k"), true),
        (Action::ManageBucket, Resource::Bucket("app-new"), true),
        (Action::GetObject, Resource::Object("app", "k"), false),
        (Action::GetObject, Resource::Object("app-secret", "k"), false),
        (Action::PutObject, Resource::Object("app-1", "k"), false),
    ] {
        assert_eq!(rights.decide(action, resource, None).is_allowed(), allowed, "{action} {resource:?}");
    }
    assert!(rights.allows_something_on("app-1", None) && !rights.allows_something_on("app", None));
}
