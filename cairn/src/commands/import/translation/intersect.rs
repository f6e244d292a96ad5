//! The rights that a parent and a session policy have in common.

use cairn_identity::policy::{ResourcePattern, StatementDraft};
use cairn_model::IpNetwork;

/// Returns statements that allow what both groups allow, and nothing else.
pub(crate) fn intersection(ones: &[StatementDraft], others: &[StatementDraft]) -> Vec<StatementDraft> {
    let allowing = |statement: &&StatementDraft| statement.effect == "allow";
    let mut common: Vec<StatementDraft> = Vec::new();
    for one in ones.iter().filter(allowing) {
        for other in others.iter().filter(allowing) {
            let statement = common_statement(one, other);
            common.extend(statement.filter(|statement| !common.contains(statement)));
        }
    }
    let denying = ones.iter().chain(others).filter(|statement| statement.effect == "deny");
    // Without an allowance there is nothing to deny.
    if !common.is_empty() {
        common.extend(denying.cloned());
    }
    common
}

/// Returns what two allowances have in common.
fn common_statement(one: &StatementDraft, other: &StatementDraft) -> Option<StatementDraft> {
    let actions: Vec<_> =
        one.actions.iter().filter(|action| other.actions.contains(action)).cloned().collect();
    let mut resources = Vec::new();
    for (a, b) in pairs(&one.resources, &other.resources) {
        let common = common_resource(a, b).filter(|common| !resources.contains(common));
        resources.extend(common);
    }
    let source_ip = match (&one.source_ip, &other.source_ip) {
        (None, networks) | (networks, None) => networks.clone(),
        (Some(ones), Some(others)) => {
            let common: Vec<_> = pairs(ones, others).filter_map(|(a, b)| common_network(a, b)).collect();
            if common.is_empty() {
                return None;
            }
            Some(common)
        }
    };
    if actions.is_empty() || resources.is_empty() {
        return None;
    }
    Some(StatementDraft { effect: "allow".to_owned(), actions, resources, only_if_absent: false, source_ip })
}

fn pairs<'t>(ones: &'t [String], others: &'t [String]) -> impl Iterator<Item = (&'t str, &'t str)> {
    ones.iter().flat_map(move |a| others.iter().map(move |b| (&**a, &**b)))
}

/// Returns the pattern of what two patterns match. Of two patterns that overlap, one includes the other.
fn common_resource(one: &str, other: &str) -> Option<String> {
    let parse = |text| ResourcePattern::parse(text).ok();
    let (a, b) = (parse(one)?, parse(other)?);
    if includes(&a, &b) { Some(other.to_owned()) } else { includes(&b, &a).then(|| one.to_owned()) }
}

/// Returns whether a pattern matches everything that another matches.
fn includes(outer: &ResourcePattern, inner: &ResourcePattern) -> bool {
    use ResourcePattern::{Bucket, Buckets, Object, Objects};
    match (outer, inner) {
        (Buckets(names), Buckets(inner)) => inner.starts_with(&**names),
        (Buckets(names), Bucket(bucket) | Object(bucket, _) | Objects(bucket, _)) => {
            bucket.as_str().starts_with(&**names)
        }
        (Objects(bucket, prefix), Objects(of, inner)) => bucket == of && inner.starts_with(&**prefix),
        (Objects(bucket, prefix), Object(of, key)) => bucket == of && key.as_str().starts_with(&**prefix),
        (Bucket(_), Bucket(_)) | (Object(..), Object(..)) => outer == inner,
        _ => false,
    }
}

/// Returns the network of the addresses that two networks have in common. Of two that overlap, one includes the other.
fn common_network(one: &str, other: &str) -> Option<String> {
    let (a, b) = (IpNetwork::parse(one)?, IpNetwork::parse(other)?);
    let first = |text: &str| text.split('/').next().and_then(|address| address.parse().ok());
    let bits = |text: &str| text.split_once('/').map_or(Some(u8::MAX), |(_, bits)| bits.parse().ok());
    if a.contains(first(other)?) && bits(one)? <= bits(other)? {
        Some(b.to_string())
    } else {
        (b.contains(first(one)?) && bits(other)? <= bits(one)?).then(|| a.to_string())
    }
}

#[cfg(test)]
mod tests {
    use cairn_identity::policy::{Action, Policy, PolicyDraft, Resource, Rights};
    use proptest::prelude::*;

    use super::*;

    fn statement() -> impl Strategy<Value = StatementDraft> {
        let resource = prop::sample::select(vec![
            "bucket:*",
            "bucket:ab*",
            "bucket:abc",
            "bucket:abc/*",
            "bucket:abc/k",
            "bucket:abc/k*",
            "bucket:abd/*",
        ]);
        let network = prop::sample::select(vec!["10.0.0.0/8", "10.1.0.0/16", "10.1.0.1", "::/0"]);
        let action = prop::sample::subsequence(Action::ALL.map(Action::name).to_vec(), 1..=5);
        (
            prop::bool::weighted(0.8),
            action,
            prop::collection::vec(resource, 1..3),
            prop::option::of(prop::collection::vec(network, 1..3)),
        )
            .prop_map(|(allows, actions, resources, networks)| StatementDraft {
                effect: if allows { "allow" } else { "deny" }.to_owned(),
                actions: actions.into_iter().map(str::to_owned).collect(),
                resources: resources.into_iter().map(str::to_owned).collect(),
                only_if_absent: false,
                source_ip: networks.map(|networks| networks.into_iter().map(str::to_owned).collect()),
            })
    }

    fn rights(statements: &[StatementDraft]) -> Rights {
        let draft =
            PolicyDraft { name: "p".into(), description: String::new(), statements: statements.to_vec() };
        Rights::compile(&(!statements.is_empty()).then(|| Policy::from_draft(&draft).expect("valid")))
    }

    proptest! {
        #[test]
        fn the_intersection_allows_what_both_allow(
            ones in prop::collection::vec(statement(), 0..4), others in prop::collection::vec(statement(), 0..4)
        ) {
            let [a, b, both] = [rights(&ones), rights(&others), rights(&intersection(&ones, &others))];
            for client in ["10.1.0.1", "10.1.2.3", "10.2.0.1", "11.0.0.1", "::1"] {
                let client = Some(client.parse().expect("an address"));
                for action in Action::ALL {
                    for (bucket, key) in [("abc", "k"), ("abc", "kk"), ("abc", "x"), ("abd", "x"), ("xyz", "k")] {
                        let resource =
                            if action.is_on_buckets() { Resource::Bucket(bucket) } else { Resource::Object(bucket, key) };
                        let allows = |rights: &Rights| rights.decide(action, resource, client).is_allowed();
                        prop_assert_eq!(allows(&both), allows(&a) && allows(&b), "{} {:?}", action, resource);
                    }
                }
            }
        }
    }
}
