//! Compares compiled rights and explanations with a naive evaluator on random policies.

use super::{
    Action, Decision, Explanation, Policy, PolicyDraft, Resource, Rights, StatementDraft, naive,
    narrowest_statement,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::cell::Cell;

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
    (
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
        })
}

fn statement() -> impl Strategy<Value = StatementDraft> {
    let effect = prop_oneof![2 => Just("allow"), 1 => Just("deny")];
    let actions = prop::sample::subsequence(Action::ALL.map(Action::name).to_vec(), 1..=5);
    (effect, actions, prop::collection::vec(resource(), 1..6)).prop_map(|(effect, actions, resources)| {
        let actions = actions.into_iter().map(str::to_owned).collect();
        StatementDraft { effect: effect.to_owned(), actions, resources }
    })
}

fn policies() -> impl Strategy<Value = Vec<Policy>> {
    let policy = prop::collection::vec(statement(), 1..4).prop_map(|statements| {
        let draft = PolicyDraft { name: "p".to_owned(), description: String::new(), statements };
        Policy::from_draft(&draft).expect("a policy")
    });
    prop::collection::vec(policy, 0..5)
}

fn question() -> impl Strategy<Value = (Action, &'static str, Option<String>)> {
    let key = prop_oneof![1 => Just(None), 6 => key().prop_map(Some)];
    (prop::sample::select(&Action::ALL[..]), prop::sample::select(&BUCKETS[..]), key)
}

/// Checks that an explanation decides as requests are decided, that the statement which it names decides alone, and that
/// what it suggests would allow the request.
fn explain(
    policies: &[Policy],
    action: Action,
    resource: Resource<'_>,
    expected: Decision,
) -> Result<(), TestCaseError> {
    let mut explained = Explanation::new(action, resource);
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
        prop_assert_eq!(naive::decide(&[deciding], action, resource), expected);
    }
    let statements = vec![narrowest_statement(action, resource)];
    let draft = PolicyDraft { name: "p".to_owned(), description: String::new(), statements };
    let suggested = Policy::from_draft(&draft).expect("a policy");
    prop_assert!(Rights::compile([&suggested]).decide(action, resource).is_allowed());
    Ok(())
}

#[test]
fn compiled_rights_agree_with_the_naive_evaluator() {
    let in_all = std::env::var("CAIRN_POLICY_QUESTIONS").ok();
    let in_all =
        in_all.map_or(QUESTIONS_IN_ALL, |text| text.parse().expect("CAIRN_POLICY_QUESTIONS is a number"));
    let config = Config { cases: in_all.div_ceil(QUESTIONS), failure_persistence: None, ..Config::default() };
    let questions = prop::collection::vec(question(), QUESTIONS as usize);
    let decided = [const { Cell::new(0u64) }; 3];
    let agreed = TestRunner::new(config).run(&(policies(), questions), |(policies, questions)| {
        let rights = Rights::compile(&policies);
        for (action, bucket, key) in &questions {
            let resource = match key {
                None => Resource::Bucket(bucket),
                Some(key) => Resource::Object(bucket, key),
            };
            let expected = naive::decide(&policies, *action, resource);
            prop_assert_eq!(rights.decide(*action, resource), expected, "{:?} {:?}", action, resource);
            explain(&policies, *action, resource, expected)?;
            decided[expected as usize].update(|count| count + 1);
        }
        for bucket in BUCKETS {
            prop_assert_eq!(
                rights.allows_something_on(bucket),
                naive::allows_something_on(&policies, bucket)
            );
        }
        Ok(())
    });
    agreed.expect("both evaluators agree");
    // The test is only meaningful if all three decisions occur often.
    let often = u64::from(in_all / 20);
    assert!(decided.iter().all(|count| count.get() > often), "{decided:?}");
}

fn rights(statements: &[(&str, &str, &str)]) -> Rights {
    let statements = statements.iter().map(|(effect, action, resource)| StatementDraft {
        effect: (*effect).to_owned(),
        actions: vec![(*action).to_owned()],
        resources: vec![(*resource).to_owned()],
    });
    let draft =
        PolicyDraft { name: "p".to_owned(), description: String::new(), statements: statements.collect() };
    Rights::compile([&Policy::from_draft(&draft).expect("a policy")])
}

#[test]
fn bucket_and_object_patterns_do_not_imply_each_other() {
    let objects = rights(&[("allow", "s3:GetObject", "bucket:photos/*")]);
    assert!(objects.decide(Action::GetObject, Resource::Object("photos", "a")).is_allowed());
    assert_eq!(objects.decide(Action::GetObject, Resource::Bucket("photos")), Decision::DeniedImplicitly);
    let bucket = rights(&[("allow", "s3:GetObject", "bucket:photos")]);
    assert_eq!(bucket.decide(Action::GetObject, Resource::Object("photos", "a")), Decision::DeniedImplicitly);
    assert!(bucket.allows_something_on("photos") && objects.allows_something_on("photos"));
    assert!(!bucket.allows_something_on("pho"));
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
        let decided = rights.decide(Action::GetObject, Resource::Object("photos", key));
        assert_eq!(decided.is_allowed(), allowed, "{key}");
    }
}

#[test]
fn a_deny_alone_does_not_list_the_bucket() {
    let rights = rights(&[("deny", "s3:GetObject", "bucket:photos/*")]);
    assert!(!rights.allows_something_on("photos"));
    let decided = rights.decide(Action::GetObject, Resource::Object("photos", "a"));
    assert_eq!(decided, Decision::DeniedExplicitly);
}
