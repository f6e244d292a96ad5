//! Property tests of signature verification with random requests.
//!
//! Requests that the test signer signs verify, however path and query are spelt. Requests that are changed after signing are
//! refused. No input makes the verifier panic.

use crate::signer::{DATE, EMPTY_SHA256, NOW, Request, SECRET_KEY, Signer, authenticator};
use proptest::collection::vec;
use proptest::prelude::*;

/// Random bytes, some as plain and some as percent-encoded characters.
fn spelling(plain: &'static [u8]) -> impl Strategy<Value = String> {
    vec((any::<u8>(), any::<bool>(), any::<bool>(), any::<bool>()), 0..24).prop_map(move |bytes| {
        bytes
            .into_iter()
            .map(|(byte, printable, encoded, upper)| {
                let byte = if printable { plain[usize::from(byte) % plain.len()] } else { byte };
                match (plain.contains(&byte) && !encoded, upper) {
                    (true, _) => char::from(byte).to_string(),
                    (false, true) => format!("%{byte:02X}"),
                    (false, false) => format!("%{byte:02x}"),
                }
            })
            .collect()
    })
}

fn path() -> impl Strategy<Value = String> {
    spelling(b"abcXYZ019-._~/+;=:@!$'()*,&").prop_map(|text| format!("/{text}"))
}

fn query() -> impl Strategy<Value = String> {
    let part = || spelling(b"abcXYZ019-._~/+;:@!$'()*,?");
    let pair = (part(), proptest::option::of(part()));
    vec(pair, 0..6).prop_map(|pairs| {
        let texts: Vec<String> = pairs
            .into_iter()
            .map(|(name, value)| value.map_or(name.clone(), |value| format!("{name}={value}")))
            .collect();
        texts.join("&")
    })
}

fn metadata() -> impl Strategy<Value = Vec<(String, String)>> {
    vec(("x-amz-meta-[a-d]", "[ -~\t]{0,20}"), 0..5)
}

/// A request that only lacks its signature.
fn unsigned() -> impl Strategy<Value = Request> {
    let method = prop::sample::select(vec!["GET", "PUT", "HEAD", "DELETE", "POST"]);
    (method, path(), query(), metadata()).prop_map(|(method, path, query, metadata)| {
        let mut request = Request::new(method, &path, &query, &[("host", "localhost:7600")]);
        for (name, value) in metadata {
            request.header(&name, &value);
        }
        request
    })
}

fn header_signed() -> impl Strategy<Value = Request> {
    unsigned().prop_map(|mut request| {
        request.header("x-amz-date", DATE).header("x-amz-content-sha256", EMPTY_SHA256);
        Signer::default().sign(&mut request);
        request
    })
}

fn presigned() -> impl Strategy<Value = Request> {
    unsigned().prop_map(|mut request| {
        let names = signed_names(&request);
        Signer::default().presign(&mut request, &names, "60", "UNSIGNED-PAYLOAD");
        request
    })
}

/// The names of all headers, as a signature lists them.
fn signed_names(request: &Request) -> String {
    let mut names: Vec<String> = request.headers.iter().map(|(name, _)| name.clone()).collect();
    names.sort();
    names.dedup();
    names.join(";")
}

/// A change that invalidates a signature in the header or in the query.
#[derive(Clone, Debug)]
enum Change {
    Method,
    PathAppended,
    ParameterAdded,
    HeaderAdded,
    HostChanged,
    SignatureDigit(usize),
    Region,
    MetadataChanged,
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        Just(Change::Method),
        Just(Change::PathAppended),
        Just(Change::ParameterAdded),
        Just(Change::HeaderAdded),
        Just(Change::HostChanged),
        (0_usize..64).prop_map(Change::SignatureDigit),
        Just(Change::Region),
        Just(Change::MetadataChanged),
    ]
}

/// Applies `edit` to the header or query with the signature.
fn edit_authorization(request: &mut Request, edit: impl Fn(&str) -> String) {
    if request.headers.iter().any(|(name, _)| name == "authorization") {
        let edited = edit(&request.get("authorization"));
        request.set("authorization", &edited);
    } else {
        request.query = request.query.as_deref().map(edit);
    }
}

fn apply(request: &mut Request, change: &Change) {
    match change {
        Change::Method => request.method.push('X'),
        Change::PathAppended => request.path.push('a'),
        Change::ParameterAdded => drop(request.append_query("added")),
        Change::HeaderAdded => drop(request.header("x-amz-added", "")),
        Change::HostChanged => drop(request.set("host", "elsewhere")),
        Change::SignatureDigit(position) => edit_authorization(request, |text| {
            let index = text.rfind("Signature=").expect("a signature") + "Signature=".len() + position;
            let other = if &text[index..=index] == "0" { "1" } else { "0" };
            format!("{}{other}{}", &text[..index], &text[index + 1..])
        }),
        Change::Region => edit_authorization(request, |text| text.replace("us-east-1", "us-east-2")),
        Change::MetadataChanged => {
            match request.headers.iter_mut().find(|(name, _)| name.starts_with("x-amz-")) {
                Some((_, value)) => value.push(b'1'),
                None => request.method.clear(),
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_spelling_of_a_signed_request_verifies(request in prop_oneof![header_signed(), presigned()]) {
        prop_assert!(request.verify().is_ok(), "{:?}", request.verify());
    }

    #[test]
    fn every_change_after_signing_is_refused(
        request in prop_oneof![header_signed(), presigned()],
        change in change(),
    ) {
        let mut changed = request.clone();
        apply(&mut changed, &change);
        // One authenticator for both, so that the signing key comes from the cache.
        let authenticator = authenticator();
        prop_assert!(request.authenticate(&authenticator, NOW).is_ok());
        prop_assert!(changed.authenticate(&authenticator, NOW).is_err());
    }

    #[test]
    fn requests_verified_before_change_no_answer(
        mut request in unsigned(),
        change in change(),
        seconds in 0_u64..90,
        covers_only_the_host in any::<bool>(),
    ) {
        if covers_only_the_host {
            request.headers.retain(|(name, _)| name == "host");
        }
        let names = if covers_only_the_host { "host".to_owned() } else { signed_names(&request) };
        Signer::default().presign(&mut request, &names, "60", "UNSIGNED-PAYLOAD");
        let now = cairn_model::Timestamp(NOW.0 + seconds * 1000);
        let warm = authenticator();
        prop_assert!(request.authenticate(&warm, NOW).is_ok());
        prop_assert_eq!(request.authenticate(&warm, now), request.authenticate(&authenticator(), now));
        apply(&mut request, &change);
        prop_assert_eq!(request.authenticate(&warm, now), request.authenticate(&authenticator(), now));
    }

    #[test]
    fn the_order_of_parameters_and_headers_does_not_matter(request in prop_oneof![header_signed(), presigned()]) {
        let mut reordered = request;
        let mut parameters: Vec<&str> = reordered.query.iter().flat_map(|query| query.split('&')).collect();
        parameters.reverse();
        let query = parameters.join("&");
        reordered.query = Some(query);
        // A stable sort by name, because the order of repeated headers matters.
        reordered.headers.sort_by(|left, right| right.0.cmp(&left.0));
        prop_assert!(reordered.verify().is_ok(), "{:?}", reordered.verify());
    }

    #[test]
    fn another_secret_never_verifies(mut request in unsigned(), secret in "[ -~]{0,60}") {
        prop_assume!(secret != SECRET_KEY);
        request.header("x-amz-date", DATE).header("x-amz-content-sha256", EMPTY_SHA256);
        Signer { secret_key: secret, ..Signer::default() }.sign(&mut request);
        prop_assert_eq!(request.error_code(), (403, "SignatureDoesNotMatch"));
    }

    #[test]
    fn invalid_input_never_panics(
        path in "\\PC{0,30}",
        query in "(X-Amz-(Algorithm|Credential|Date|Expires|SignedHeaders|Signature)=[%/A-Z0-9+;-]{0,20}&?|\\PC&?){0,8}",
        authorization in "(AWS4-HMAC-SHA256|AWS|Basic)? ?((Credential|SignedHeaders|Signature)=[\\PC]{0,30},? ?){0,4}",
        values in vec(vec(any::<u8>(), 0..40), 4),
    ) {
        let mut request = Request::new("GET", &path, &query, &[("authorization", &authorization)]);
        for (name, value) in ["host", "x-amz-date", "date", "x-amz-content-sha256"].into_iter().zip(values) {
            request.headers.push((name.into(), value));
        }
        let error = request.verify().expect_err("nothing here is signed");
        prop_assert!(error.status() >= 400 && !error.message().is_empty());
        let _ = (error.details(), request.remove("authorization").verify());
    }
}
