//! The example for receivers in Rust, against what the crate signs.

use cairn_webhooks::signature::{SigningSecret, SigningSecrets};

#[expect(unreachable_pub, reason = "the example is written for other crates")]
#[path = "../../docs/examples/webhooks/verify.rs"]
mod example;

const EVENT_ID: &str = "0192f0c1-2345-7abc-8def-0123456789ab";
const BODY: &[u8] = br#"{"id":"0192f0c1-2345-7abc-8def-0123456789ab"}"#;

#[test]
fn the_example_accepts_what_we_sign_and_nothing_that_was_tampered_with() {
    let [old, new] = [(); 2].map(|()| SigningSecret::generate().expect("random bytes"));
    let signed = SigningSecrets { current: &new, previous: Some(&old) }.sign(EVENT_ID, 1000, BODY);
    let is_accepted = |secret: &SigningSecret, id: &'static str, body: &[u8], now| {
        let header = |name: &str| match name {
            "webhook-id" => Some(id),
            "webhook-timestamp" => Some(signed.timestamp.as_str()),
            "webhook-signature" => Some(signed.standard.as_str()),
            _ => None,
        };
        example::verify(secret.expose(), header, body, now, 300)
    };
    assert!(is_accepted(&new, EVENT_ID, BODY, 1000) && is_accepted(&old, EVENT_ID, BODY, 1000));
    assert!(is_accepted(&new, EVENT_ID, BODY, 700) && is_accepted(&new, EVENT_ID, BODY, 1300));
    assert!(!is_accepted(&new, EVENT_ID, BODY, 699) && !is_accepted(&new, EVENT_ID, BODY, 1301));
    assert!(!is_accepted(&new, EVENT_ID, &[BODY, b" "].concat(), 1000));
    assert!(!is_accepted(&new, "0192f0c1", BODY, 1000));
    let other = SigningSecret::generate().expect("random bytes");
    assert!(!is_accepted(&other, EVENT_ID, BODY, 1000));
    assert!(!example::verify(new.expose(), |_| None, BODY, 1000, 300));
}
