//! Signed proofs of the findings of a verification. Only this store can derive the key.
//!
//! The signature is over the *canonical JSON* of the payload: UTF-8, no whitespace between tokens, the members of every
//! object sorted by the bytes of their names, integers in decimal, strings with `\"`, `\\`, `\b`, `\f`, `\n`, `\r`,
//! `\t` and `\u00xx` (lower-case) for the other control characters and everything else as it is.
//! `docs/management-api.md` explains how a third party can check a proof.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cairn_api::Proof;
use cairn_engine::Store;
use serde_json::{Map, Value, json};

/// Adds the store and the version of the service to the findings, and signs them.
pub(crate) fn signed_proof(store: &Store, found: Map<String, Value>) -> Proof {
    let mut payload = found;
    payload.insert("store_id".to_owned(), store.id().to_hex().into());
    payload.insert("service_version".to_owned(), env!("CARGO_PKG_VERSION").into());
    let audit = json!({"available": false, "reason": "the audit trail has no tamper-evident hash chain"});
    payload.insert("audit".to_owned(), audit);
    let mut message = String::new();
    push_members(&mut message, &payload);
    let key = store.signing_key();
    Proof {
        payload,
        algorithm: "ed25519".into(),
        public_key: STANDARD.encode(key.public_key()),
        signature: STANDARD.encode(key.sign(message.as_bytes())),
    }
}

/// Appends the canonical form of a value. Payloads contain no fractions.
fn push_canonical(out: &mut String, value: &Value) {
    match value {
        Value::Object(members) => push_members(out, members),
        Value::Array(items) => push_list(out, ['[', ']'], items, push_canonical),
        scalar => out.push_str(&scalar.to_string()),
    }
}

/// Appends the canonical form of an object.
fn push_members(out: &mut String, members: &Map<String, Value>) {
    let mut members: Vec<_> = members.iter().collect();
    members.sort_unstable_by(|one, other| one.0.as_bytes().cmp(other.0.as_bytes()));
    push_list(out, ['{', '}'], members, |out, (name, value)| {
        out.push_str(&Value::String(name.clone()).to_string());
        out.push(':');
        push_canonical(out, value);
    });
}

fn push_list<T>(
    out: &mut String,
    [open, close]: [char; 2],
    items: impl IntoIterator<Item = T>,
    push: impl Fn(&mut String, T),
) {
    out.push(open);
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        push(out, item);
    }
    out.push(close);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_form_is_sorted_and_has_no_whitespace() {
        let value =
            json!({"b": [1, {"z": null, "a": true}], "a\u{e4}": "\u{1}\n\"\\ \u{e4}\u{7f}", "a": u64::MAX});
        let mut out = String::new();
        push_canonical(&mut out, &value);
        let expected = "{\"a\":18446744073709551615,\"a\u{e4}\":\"\\u0001\\n\\\"\\\\ \u{e4}\u{7f}\",\"b\":[1,{\"a\":true,\"z\":null}]}";
        assert_eq!(out, expected);
    }
}
