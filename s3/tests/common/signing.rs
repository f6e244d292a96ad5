//! Signs requests with Signature Version 4, independent of `cairn_identity` (AWS: "Create a signed AWS API request").

use super::{Call, Keys};
use cairn_http1::{encode_path, encode_strict, http_date};
use cairn_model::{Clock, SystemClock};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

const REGION: &str = "us-east-1";

/// Returns the time as `YYYYMMDDTHHMMSSZ`, made from the HTTP date so that no calendar is needed.
fn now() -> String {
    let date = http_date(SystemClock.now().seconds()).as_str().to_owned();
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let month = months.iter().position(|month| *month == &date[8..11]).expect("a month") + 1;
    format!("{}{month:02}{}T{}Z", &date[12..16], &date[5..7], date[17..25].replace(':', ""))
}

fn hmac(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any length");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

fn signature(keys: &Keys, date: &str, canonical_request: &[u8]) -> String {
    let scope = format!("{}/{REGION}/s3/aws4_request", &date[..8]);
    let hash = hex::encode(Sha256::digest(canonical_request));
    let to_sign = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{hash}");
    let mut key = hmac(format!("AWS4{}", keys.secret_key).as_bytes(), &date[..8]);
    for part in [REGION, "s3", "aws4_request"] {
        key = hmac(&key, part);
    }
    hex::encode(hmac(&key, &to_sign))
}

/// Returns the query's pairs, encoded strictly and sorted. The tests send encoded queries.
fn canonical_query(query: &str) -> String {
    let mut pairs: Vec<(String, String)> = cairn_http1::query_pairs(query)
        .map(|pair| pair.expect("decodes"))
        .map(|(name, value)| (encode_strict(name.as_bytes()), encode_strict(value.as_bytes())))
        .collect();
    pairs.sort();
    let pairs: Vec<String> = pairs.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join("&")
}

fn canonical_request(
    call: &Call,
    query: &str,
    headers: &[(String, Vec<u8>)],
    payload: &str,
) -> (Vec<u8>, String) {
    let mut sorted = headers.to_vec();
    sorted.sort_by(|one, other| one.0.cmp(&other.0));
    // A path that cannot be decoded is signed as it is. The server must refuse it for itself.
    let path = cairn_http1::decode(&call.path).map_or(call.path.clone(), |path| encode_path(path.as_bytes()));
    let mut canonical = format!("{}\n{path}\n{query}\n", call.method).into_bytes();
    let mut names: Vec<String> = Vec::new();
    for (name, value) in &sorted {
        if names.last() == Some(name) {
            canonical.pop();
            canonical.push(b',');
        } else {
            canonical.extend_from_slice(format!("{name}:").as_bytes());
            names.push(name.clone());
        }
        canonical.extend_from_slice(value);
        canonical.push(b'\n');
    }
    let names = names.join(";");
    canonical.extend_from_slice(format!("\n{names}\n{payload}").as_bytes());
    (canonical, names)
}

/// Returns the bytes of a request that is signed in its header.
pub fn signed(call: &Call, host: &str, keys: &Keys) -> Vec<u8> {
    let date = now();
    let payload = call.payload.clone().unwrap_or_else(|| hex::encode(Sha256::digest(&call.body)));
    let mut headers = vec![
        ("x-amz-date".to_owned(), date.clone().into_bytes()),
        ("x-amz-content-sha256".to_owned(), payload.clone().into_bytes()),
    ];
    if !call.headers.iter().any(|(name, _)| name == "host") {
        headers.push(("host".to_owned(), host.as_bytes().to_vec()));
    }
    headers.extend(call.headers.iter().cloned());
    let (canonical, names) = canonical_request(call, &canonical_query(&call.query), &headers, &payload);
    let authorization = format!(
        "AWS4-HMAC-SHA256 Credential={}/{}/{REGION}/s3/aws4_request, SignedHeaders={names}, Signature={}",
        keys.access_key,
        &date[..8],
        signature(keys, &date, &canonical)
    );
    headers.push(("authorization".to_owned(), authorization.into_bytes()));
    let target =
        if call.query.is_empty() { call.path.clone() } else { format!("{}?{}", call.path, call.query) };
    encode(call, &target, &headers)
}

fn encode(call: &Call, target: &str, headers: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = format!("{} {target} HTTP/1.1\r\n", call.method).into_bytes();
    for (name, value) in headers {
        bytes.extend_from_slice(name.as_bytes());
        bytes.extend_from_slice(b": ");
        bytes.extend_from_slice(value);
        bytes.extend_from_slice(b"\r\n");
    }
    let chunked = headers.iter().any(|(name, _)| name == "transfer-encoding");
    let length = call.length.clone().unwrap_or_else(|| call.body.len().to_string());
    if !chunked
        && !length.is_empty()
        && (call.length.is_some() || !call.body.is_empty() || call.method == "PUT")
    {
        bytes.extend_from_slice(format!("content-length: {length}\r\n").as_bytes());
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(&call.body);
    bytes
}
