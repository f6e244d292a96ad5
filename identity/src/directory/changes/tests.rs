//! Limits over all policies and accounts.

use super::super::limits::{ATTACHED_RESOURCES_MAX, RESOURCES_MAX, RESOURCES_PER_ACCOUNT_MAX};
use super::super::state::{AccountState, PolicyState};
use super::super::testing::{Fixture, NOW};
use super::{DirectoryError, Policy};
use crate::id::{AccountId, PolicyId};
use cairn_model::Timestamp;
use std::fmt::Debug;
use std::sync::Arc;

const RESOURCES: usize = 10_000;

/// Makes a policy with ten thousand resources.
fn large_policy() -> Arc<Policy> {
    let statement = |statement| {
        let resource = |resource| format!("\"bucket:photos/{statement}/{resource}\"");
        let resources: Vec<_> = (0..100).map(resource).collect();
        let resources = resources.join(",");
        format!(r#"{{"effect":"allow","actions":["s3:GetObject"],"resources":[{resources}]}}"#)
    };
    let statements: Vec<_> = (0..100).map(statement).collect();
    let text = format!(r#"{{"name":"large","statements":[{}]}}"#, statements.join(","));
    Arc::new(Policy::from_json(text.as_bytes()).expect("a policy"))
}

fn id(number: usize) -> [u8; 16] {
    (number as u128).to_be_bytes()
}

fn is_refused<T: Debug>(result: Result<T, DirectoryError>, limit: usize) {
    assert!(matches!(result, Err(DirectoryError::TooMany { max, .. }) if max == limit), "{result:?}");
}

/// Regression: only single policies and accounts had limits, so their product let memory and start time grow without bound.
#[test]
fn total_resources_of_policies_and_accounts_are_limited() {
    let Fixture { mut changes, account, .. } = Fixture::new();
    let policy = large_policy();
    let accounts = ATTACHED_RESOURCES_MAX / RESOURCES_PER_ACCOUNT_MAX;
    let each = RESOURCES_PER_ACCOUNT_MAX / RESOURCES;
    {
        let mut state = changes.shared.state_mut();
        for number in 0..RESOURCES_MAX / RESOURCES {
            state.add_policy(PolicyId(id(number)), PolicyState::new(Arc::clone(&policy), Timestamp(NOW)));
        }
        for number in 0..accounts {
            let account = AccountState {
                name: format!("account {number}").into(),
                description: String::new(),
                enabled: true,
                created_at: Timestamp(NOW),
                credentials: Default::default(),
                policies: Default::default(),
                rights: Arc::default(),
            };
            state.add_account(AccountId(id(number)), account);
            for policy in 0..each {
                assert!(state.bind(AccountId(id(number)), PolicyId(id(policy))));
            }
        }
    }
    let (first, other) = (PolicyId(id(0)), PolicyId(id(each)));
    is_refused(changes.create_policy((*policy).clone()), RESOURCES_MAX);
    changes.delete_policy(PolicyId(id(RESOURCES_MAX / RESOURCES - 1))).expect("removed");
    changes.create_policy((*policy).clone()).expect("there is room");
    is_refused(changes.attach(other, AccountId(id(0))), RESOURCES_PER_ACCOUNT_MAX);
    is_refused(changes.attach(first, account), ATTACHED_RESOURCES_MAX);
    changes.detach(first, AccountId(id(0))).expect("detached");
    changes.attach(first, account).expect("there is room");
    is_refused(changes.attach(other, account), ATTACHED_RESOURCES_MAX);
    changes.delete_account(AccountId(id(1))).expect("removed");
    changes.attach(other, account).expect("there is room");
}
