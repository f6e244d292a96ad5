//! AWS Signature Version 4 as clients make it: in headers, in presigned URLs, and over chunked bodies.
//!
//! Sources: "Authenticating Requests: Using the Authorization Header", "Using Query Parameters" and "Transferring Payload in
//! Multiple Chunks, including trailing headers" (Amazon S3 API reference). Nothing is shared with the server's verification,
//! so that an error there is not repeated here.

use cairn_http1::{encode_strict, iso8601_millis};
use ring::{digest, hmac};

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
/// The value of `x-amz-content-sha256` for a body that is not signed.
const UNSIGNED_PAYLOAD: &str = "UNSIGNED-PAYLOAD";

/// An access key and its secret.
#[derive(Clone)]
pub(crate) struct Credentials {
    pub(crate) access_key: String,
    pub(crate) secret_key: String,
}

/// The second at which a request is signed: `20130524T000000Z`.
#[derive(Clone)]
pub(crate) struct Stamp(String);

impl Stamp {
    /// Formats a time in milliseconds since the Unix epoch.
    pub(crate) fn from_millis(millis: u64) -> Self {
        let iso = iso8601_millis(millis - millis % 1000);
        let digits = iso.split('.').next().unwrap_or_default();
        Self(digits.replace(['-', ':'], "") + "Z")
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    fn date(&self) -> &str {
        self.0.split('T').next().unwrap_or_default()
    }
}

/// The signed parts of a request. Headers are sorted by name, in lower case, with `host`; the query is encoded and sorted.
pub(crate) struct Parts<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) query: &'a str,
    pub(crate) headers: &'a [(&'a str, &'a str)],
    pub(crate) payload: &'a str,
}

/// Signs the requests of one credential at one moment.
pub(crate) struct Signer<'a> {
    credentials: &'a Credentials,
    stamp: Stamp,
    scope: String,
    key: hmac::Key,
}

/// The key of one day and region, which is expensive to make.
#[derive(Clone)]
pub(crate) struct DayKey {
    scope: String,
    key: hmac::Key,
}

fn scope(stamp: &Stamp, region: &str) -> String {
    format!("{}/{region}/s3/aws4_request", stamp.date())
}

impl<'a> Signer<'a> {
    pub(crate) fn new(credentials: &'a Credentials, region: &str, stamp: Stamp) -> Self {
        let first = format!("AWS4{}", credentials.secret_key);
        let chain = [stamp.date(), region, "s3", "aws4_request"];
        let key = chain.iter().fold(hmac_key(first.as_bytes()), |key, text| {
            hmac_key(hmac::sign(&key, text.as_bytes()).as_ref())
        });
        let scope = scope(&stamp, region);
        Self { credentials, stamp, scope, key }
    }

    /// As [`Signer::new`], with the key of an earlier request of the same credential if it was made on the same day.
    pub(crate) fn with_key_of(
        last: &mut Option<DayKey>,
        credentials: &'a Credentials,
        region: &str,
        stamp: Stamp,
    ) -> Self {
        if let Some(DayKey { scope: of_day, key }) = last.as_ref()
            && *of_day == scope(&stamp, region)
        {
            return Self { credentials, stamp, scope: of_day.clone(), key: key.clone() };
        }
        let signer = Self::new(credentials, region, stamp);
        *last = Some(DayKey { scope: signer.scope.clone(), key: signer.key.clone() });
        signer
    }

    /// Signs any text.
    fn sign(&self, text: &str) -> String {
        hex::encode(hmac::sign(&self.key, text.as_bytes()).as_ref())
    }

    fn signature(&self, parts: &Parts<'_>) -> String {
        let Parts { method, path, query, headers, payload } = parts;
        let lines: String = headers.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
        let names = signed_names(headers);
        let request = format!("{method}\n{path}\n{query}\n{lines}\n{names}\n{payload}");
        self.sign(&format!("{ALGORITHM}\n{}\n{}\n{}", self.stamp.0, self.scope, sha256(request.as_bytes())))
    }

    /// Returns the value of `Authorization`, and the signature in it.
    pub(crate) fn authorization(&self, parts: &Parts<'_>) -> (String, String) {
        let signature = self.signature(parts);
        let Credentials { access_key, .. } = self.credentials;
        let names = signed_names(parts.headers);
        let value = format!(
            "{ALGORITHM} Credential={access_key}/{}, SignedHeaders={names}, Signature={signature}",
            self.scope
        );
        (value, signature)
    }

    /// Returns the query of a presigned URL. Only `host` is signed.
    pub(crate) fn presigned_query(&self, method: &str, host: &str, path: &str, seconds: u32) -> String {
        let credential = encode_strict(format!("{}/{}", self.credentials.access_key, self.scope));
        let query = format!(
            "X-Amz-Algorithm={ALGORITHM}&X-Amz-Credential={credential}&X-Amz-Date={}&X-Amz-Expires={seconds}&X-Amz-SignedHeaders=host",
            self.stamp.0
        );
        let headers = [("host", host)];
        let parts = Parts { method, path, query: &query, headers: &headers, payload: UNSIGNED_PAYLOAD };
        format!("{query}&X-Amz-Signature={}", self.signature(&parts))
    }

    /// Frames a body in signed chunks, with a signed trailer. `seed` is the signature of the head.
    pub(crate) fn signed_chunks(
        &self,
        seed: &str,
        content: &[u8],
        chunk_bytes: usize,
        trailer: (&str, &str),
    ) -> Vec<u8> {
        let (name, value) = trailer;
        let mut previous = seed.to_owned();
        let mut framed = Vec::with_capacity(content.len() + 1024);
        for chunk in content.chunks(chunk_bytes).chain([&[][..]]) {
            let text = format!(
                "{ALGORITHM}-PAYLOAD\n{}\n{}\n{previous}\n{}\n{}",
                self.stamp.0,
                self.scope,
                sha256(b""),
                sha256(chunk)
            );
            previous = self.sign(&text);
            framed.extend_from_slice(format!("{:x};chunk-signature={previous}\r\n", chunk.len()).as_bytes());
            framed.extend_from_slice(chunk);
            if !chunk.is_empty() {
                framed.extend_from_slice(b"\r\n");
            }
        }
        let digest = sha256(format!("{name}:{value}\n").as_bytes());
        let text = format!("{ALGORITHM}-TRAILER\n{}\n{}\n{previous}\n{digest}", self.stamp.0, self.scope);
        let signature = self.sign(&text);
        framed.extend_from_slice(
            format!("{name}:{value}\r\nx-amz-trailer-signature:{signature}\r\n\r\n").as_bytes(),
        );
        framed
    }
}

/// Frames a body in chunks that are not signed, with a trailer.
pub(crate) fn unsigned_chunks(content: &[u8], chunk_bytes: usize, (name, value): (&str, &str)) -> Vec<u8> {
    let mut framed = Vec::with_capacity(content.len() + 1024);
    for chunk in content.chunks(chunk_bytes) {
        framed.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        framed.extend_from_slice(chunk);
        framed.extend_from_slice(b"\r\n");
    }
    framed.extend_from_slice(format!("0\r\n{name}:{value}\r\n\r\n").as_bytes());
    framed
}

fn signed_names(headers: &[(&str, &str)]) -> String {
    headers.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";")
}

fn hmac_key(bytes: &[u8]) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, bytes)
}

/// The SHA-256 in hex.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex::encode(digest::digest(&digest::SHA256, bytes).as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2013-05-24T00:00:00Z, the time of AWS's examples.
    const MILLIS: u64 = 1_369_353_600_000;

    fn credentials() -> Credentials {
        Credentials {
            access_key: "AKIAIOSFODNN7EXAMPLE".to_owned(),
            secret_key: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned(),
        }
    }

    /// "Example: GET Object" of the page about the header.
    #[test]
    fn the_example_of_a_header() {
        let credentials = credentials();
        let signer = Signer::new(&credentials, "us-east-1", Stamp::from_millis(MILLIS + 999));
        let empty = sha256(b"");
        let headers = [
            ("host", "examplebucket.s3.amazonaws.com"),
            ("range", "bytes=0-9"),
            ("x-amz-content-sha256", empty.as_str()),
            ("x-amz-date", "20130524T000000Z"),
        ];
        let parts = Parts { method: "GET", path: "/test.txt", query: "", headers: &headers, payload: &empty };
        let (_, signature) = signer.authorization(&parts);
        assert_eq!(signature, "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
    }

    #[test]
    fn a_key_is_kept_for_its_day_and_region() {
        let (credentials, mut key) = (credentials(), None);
        for (region, millis) in [
            ("us-east-1", MILLIS),
            ("us-east-1", MILLIS + 1000),
            ("eu-west-1", MILLIS),
            ("eu-west-1", MILLIS + 86_400_000),
        ] {
            let stamp = Stamp::from_millis(millis);
            let kept = Signer::with_key_of(&mut key, &credentials, region, stamp.clone());
            assert_eq!(kept.sign("text"), Signer::new(&credentials, region, stamp).sign("text"), "{region}");
        }
    }

    /// The example of the page about query parameters.
    #[test]
    fn the_example_of_a_presigned_url() {
        let credentials = credentials();
        let signer = Signer::new(&credentials, "us-east-1", Stamp::from_millis(MILLIS));
        let query = signer.presigned_query("GET", "examplebucket.s3.amazonaws.com", "/test.txt", 86_400);
        assert!(
            query.ends_with("aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"),
            "{query}"
        );
    }

    /// The example of the page about trailing headers: 65 KiB of `a` in chunks of 64 KiB, with a CRC-32C.
    #[test]
    fn the_example_of_signed_chunks_with_a_trailer() {
        let credentials = credentials();
        let signer = Signer::new(&credentials, "us-east-1", Stamp::from_millis(MILLIS));
        let seed = "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e";
        let trailer = ("x-amz-checksum-crc32c", "sOO8/Q==");
        let framed = signer.signed_chunks(seed, &[b'a'; 65 * 1024], 64 * 1024, trailer);
        let text = String::from_utf8(framed).expect("ASCII");
        for signature in [
            "10000;chunk-signature=b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2\r\n",
            "400;chunk-signature=1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7\r\n",
            "0;chunk-signature=2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992\r\n",
            "x-amz-trailer-signature:d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435\r\n\r\n",
        ] {
            assert!(text.contains(signature), "{signature}");
        }
    }

    #[test]
    fn unsigned_chunks_have_their_lengths() {
        assert_eq!(unsigned_chunks(b"abcde", 3, ("n", "v")), b"3\r\nabc\r\n2\r\nde\r\n0\r\nn:v\r\n\r\n");
        assert_eq!(unsigned_chunks(b"", 3, ("n", "v")), b"0\r\nn:v\r\n\r\n");
    }
}
