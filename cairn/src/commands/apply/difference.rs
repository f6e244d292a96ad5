//! Shows the difference of two values, for people.
//!
//! A list shows what went and what came. An object of a list that is mostly the same as before shows only its members that
//! differ, below those that do not.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::values::{ordered, text};
use crate::terminal::plain;

/// Pairs of items that are compared to keep their order. An account can have ten thousand policies.
const COMPARISONS_MAX: usize = 1_000_000;
/// The member that says what a rule of lifecycle or public access is about.
const PREFIX: &str = "prefix";
/// Spaces before each level.
const INDENT: &str = "  ";

/// Appends the lines that show a member with another value. Null is no value.
pub(super) fn write(out: &mut String, name: &str, before: &Value, after: &Value) {
    member(out, 2, name, before, after);
}

fn line(out: &mut String, level: usize, text: &str) {
    out.push_str(&INDENT.repeat(level));
    out.push_str(&plain(text));
    out.push('\n');
}

fn member(out: &mut String, level: usize, name: &str, before: &Value, after: &Value) {
    match (list(before), list(after)) {
        (Some(before), Some(after)) => {
            line(out, level, &format!("{name}:"));
            items(out, level + 1, before, after);
        }
        _ if before.is_null() => line(out, level, &format!("{name}: {}", text(after))),
        _ => line(out, level, &format!("{name}: {} -> {}", text(before), text(after))),
    }
}

/// Returns the items of a list. No value counts as an empty one.
fn list(value: &Value) -> Option<&[Value]> {
    match value {
        Value::Null => Some(&[]),
        Value::Array(items) => Some(items),
        _ => None,
    }
}

fn items(out: &mut String, level: usize, before: &[Value], after: &[Value]) {
    let differences = differences(before, after);
    let mut is_shown = vec![false; differences.len()];
    for index in 0..differences.len() {
        if is_shown[index] {
            continue;
        }
        let (sign, item) = differences[index];
        let successor = (index + 1..differences.len()).find(|later| {
            let (other_sign, other) = differences[*later];
            sign == '-' && other_sign == '+' && !is_shown[*later] && are_similar(item, other)
        });
        match successor.map(|later| (later, differences[later].1)) {
            Some((later, Value::Object(new))) if let Value::Object(old) = item => {
                is_shown[later] = true;
                changed(out, level, old, new);
            }
            _ => line(out, level, &format!("{sign} {}", text(item))),
        }
    }
}

/// Returns whether an item is another one, changed: a rule about the same prefix, or an object with at least half of the
/// members. An item that only moves is not changed.
fn are_similar(one: &Value, other: &Value) -> bool {
    let (Value::Object(one), Value::Object(other)) = (one, other) else { return false };
    if one == other {
        return false;
    }
    if let (Some(prefix), other) | (other, Some(prefix)) = (one.get(PREFIX), other.get(PREFIX)) {
        return other == Some(prefix);
    }
    let common = one.iter().filter(|(name, value)| other.get(*name) == Some(value)).count();
    common > 0 && 2 * common >= one.len().max(other.len())
}

/// Shows an object: the members that stay in one line, and those that differ below it.
fn changed(out: &mut String, level: usize, old: &Map<String, Value>, new: &Map<String, Value>) {
    let stays = |(name, value): &(&String, &Value)| new.get(*name) == Some(value);
    let same: Map<String, Value> =
        old.iter().filter(stays).map(|(name, value)| (name.clone(), value.clone())).collect();
    line(out, level, &format!("~ {}", text(&Value::Object(same))));
    let mut names: Vec<&String> = old.iter().filter(|entry| !stays(entry)).map(|(name, _)| name).collect();
    names.extend(new.keys().filter(|name| !old.contains_key(*name)));
    for name in ordered(names) {
        let value = |members: &Map<String, Value>| members.get(name).cloned().unwrap_or_default();
        member(out, level + 2, name, &value(old), &value(new));
    }
}

/// Returns what was removed from a list and added to it. In lists of rules, which are short, the order counts: the difference
/// is found by the longest common subsequence.
fn differences<'v>(before: &'v [Value], after: &'v [Value]) -> Vec<(char, &'v Value)> {
    if before.len().saturating_mul(after.len()) > COMPARISONS_MAX {
        return differences_of_sets(before, after);
    }
    let mut lengths = vec![vec![0_usize; after.len() + 1]; before.len() + 1];
    for (row, old) in before.iter().enumerate().rev() {
        for (column, new) in after.iter().enumerate().rev() {
            lengths[row][column] = if old == new {
                lengths[row + 1][column + 1] + 1
            } else {
                lengths[row + 1][column].max(lengths[row][column + 1])
            };
        }
    }
    let (mut row, mut column, mut found) = (0, 0, Vec::new());
    loop {
        match (before.get(row), after.get(column)) {
            (None, None) => return found,
            (Some(old), Some(new)) if old == new => (row, column) = (row + 1, column + 1),
            (Some(old), new) if new.is_none() || lengths[row + 1][column] >= lengths[row][column + 1] => {
                found.push(('-', old));
                row += 1;
            }
            (_, new) => {
                found.extend(new.map(|new| ('+', new)));
                column += 1;
            }
        }
    }
}

/// Returns what only one of two lists has.
fn differences_of_sets<'v>(before: &'v [Value], after: &'v [Value]) -> Vec<(char, &'v Value)> {
    let (old, new): (HashSet<&Value>, HashSet<&Value>) = (before.iter().collect(), after.iter().collect());
    let removed = before.iter().filter(|value| !new.contains(value)).map(|value| ('-', value));
    removed.chain(after.iter().filter(|value| !old.contains(value)).map(|value| ('+', value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(before: &Value, after: &Value) -> String {
        let mut out = String::new();
        write(&mut out, "m", before, after);
        out
    }

    #[test]
    fn differences_of_lists_are_as_short_as_possible() {
        let signs = |before: &[u8], after: &[u8]| {
            let values = |numbers: &[u8]| numbers.iter().map(|number| json!(number)).collect::<Vec<_>>();
            let (before, after) = (values(before), values(after));
            let found = differences(&before, &after);
            found.iter().map(|(sign, value)| format!("{sign}{value}")).collect::<Vec<_>>().join(" ")
        };
        for (before, after, expected) in [
            (&[1, 2, 3][..], &[1, 2, 3][..], ""),
            (&[1, 2, 3], &[1, 3], "-2"),
            (&[1, 3], &[1, 2, 3], "+2"),
            (&[1, 2], &[2, 1], "-1 +1"),
            (&[], &[1, 2], "+1 +2"),
            (&[1, 2], &[], "-1 -2"),
            (&[1, 2, 3, 4], &[1, 5, 3, 6], "-2 +5 -4 +6"),
        ] {
            assert_eq!(signs(before, after), expected, "{before:?} {after:?}");
        }
    }

    #[test]
    fn long_lists_are_compared_as_sets() {
        let before: Vec<Value> = (0..10_000).map(Value::from).collect();
        let after: Vec<Value> = (1..10_001).map(Value::from).collect();
        assert_eq!(shown(&json!(before), &json!(after)), "    m:\n      - 0\n      + 10000\n");
    }

    #[test]
    fn a_changed_item_shows_only_what_differs() {
        let statement = |actions: &[&str], resource: &str| json!({"effect": "allow", "actions": actions, "resources": [resource]});
        let (read, write) = (statement(&["r"], "bucket:b/*"), statement(&["r", "w"], "bucket:b/*"));
        assert_eq!(
            shown(&json!([read]), &json!([write])),
            "    m:\n      ~ { effect = \"allow\", resources = [\"bucket:b/*\"] }\n          actions:\n            + \"w\"\n"
        );
        let other = statement(&["x"], "bucket:c/*");
        assert_eq!(
            shown(&json!([read]), &json!([other])),
            "    m:\n      - { effect = \"allow\", actions = [\"r\"], resources = [\"bucket:b/*\"] }\n      \
             + { effect = \"allow\", actions = [\"x\"], resources = [\"bucket:c/*\"] }\n"
        );
        let days = |days: u8| json!([{"prefix": "logs/", "expiration": days}]);
        assert_eq!(
            shown(&days(30), &days(60)),
            "    m:\n      ~ { prefix = \"logs/\" }\n          expiration: 30 -> 60\n"
        );
        assert_eq!(
            shown(&json!([{"prefix": "p/"}]), &json!([{"prefix": "p/", "list": true}])),
            "    m:\n      ~ { prefix = \"p/\" }\n          list: true\n"
        );
        assert_eq!(
            shown(&json!([{"prefix": "p/", "list": true}]), &json!([{"prefix": "p/"}])),
            "    m:\n      ~ { prefix = \"p/\" }\n          list: true -> none\n"
        );
    }

    #[test]
    fn an_item_that_moves_or_is_about_another_prefix_is_not_a_changed_one() {
        let (a, b) = (json!({"id": "a", "x": 1}), json!({"id": "b", "x": 1}));
        assert_eq!(
            shown(&json!([a, b]), &json!([b, a])),
            "    m:\n      - { id = \"a\", x = 1 }\n      + { id = \"a\", x = 1 }\n"
        );
        assert_eq!(
            shown(&json!([{"prefix": "a/", "x": 1}]), &json!([{"prefix": "b/", "x": 1}])),
            "    m:\n      - { prefix = \"a/\", x = 1 }\n      + { prefix = \"b/\", x = 1 }\n"
        );
    }

    #[test]
    fn values_that_are_no_lists_are_shown_in_one_line() {
        assert_eq!(shown(&Value::Null, &json!(5)), "    m: 5\n");
        assert_eq!(shown(&json!("a\u{1b}"), &json!("b")), "    m: \"a\\u001b\" -> \"b\"\n");
        assert_eq!(
            shown(&json!({"mode": "x", "days": 3}), &Value::Null),
            "    m: { mode = \"x\", days = 3 } -> none\n"
        );
    }
}
