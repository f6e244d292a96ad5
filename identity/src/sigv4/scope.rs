//! Parses credential scopes and lists of signed headers, from headers and queries.

use super::date::AmzDate;
use super::error::MalformedReason;

/// Most header names in a signature. A request head of 32 KiB has no room for more useful ones, and the limit bounds the cost
/// of matching names with headers.
pub const SIGNED_HEADERS_MAX: usize = 256;

/// The service that a credential must be for.
const SERVICE: &str = "s3";

/// The end of every credential scope of Signature Version 4.
const TERMINATOR: &str = "aws4_request";

/// `<access key>/<YYYYMMDD>/<region>/s3/aws4_request`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scope<'a> {
    pub(super) access_key: &'a str,
    /// Eight digits. Only compared with the day of the request, so it need not be a date that exists.
    pub(super) date: &'a str,
    /// Any text: this service accepts every region.
    pub(super) region: &'a str,
    /// Everything after the access key, as it appears in the string to sign.
    pub(super) text: &'a str,
}

impl<'a> Scope<'a> {
    /// Parses a credential. Fields are counted from the end because an access key may contain slashes.
    pub(super) fn parse(credential: &'a str) -> Result<Self, MalformedReason> {
        let mut fields = credential.rsplitn(5, '/');
        let mut next = || fields.next().filter(|field| !field.is_empty()).ok_or(MalformedReason::Credential);
        let (terminator, service, region, date, access_key) = (next()?, next()?, next()?, next()?, next()?);
        if date.len() != 8 || !date.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(MalformedReason::CredentialDate(date.to_owned()));
        }
        if service != SERVICE {
            return Err(MalformedReason::Service(service.to_owned()));
        }
        if terminator != TERMINATOR {
            return Err(MalformedReason::Terminator(terminator.to_owned()));
        }
        Ok(Self { access_key, date, region, text: &credential[access_key.len() + 1..] })
    }

    /// Checks that the day of the scope is the day of the request. Otherwise a signing key could be used on other days.
    pub(super) fn check_day(&self, date: &AmzDate) -> Result<(), MalformedReason> {
        if self.date == date.day() {
            return Ok(());
        }
        Err(MalformedReason::DateMismatch {
            credential: self.date.to_owned(),
            request: date.day().to_owned(),
        })
    }
}

/// The names of the signed headers, in the order of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SignedHeaders<'a> {
    /// The list as sent, which is also its form in the canonical request.
    pub(super) text: &'a str,
}

impl<'a> SignedHeaders<'a> {
    /// Parses a list of header names in lower case, separated by semicolons.
    pub(super) fn parse(text: &'a str) -> Result<Self, MalformedReason> {
        let list = Self { text };
        let valid = list.names().all(|name| !name.is_empty() && name.bytes().all(is_lower_case_token))
            && list.names().count() <= SIGNED_HEADERS_MAX;
        if valid { Ok(list) } else { Err(MalformedReason::SignedHeaders) }
    }

    pub(super) fn names(self) -> impl Iterator<Item = &'a str> {
        self.text.split(';')
    }

    pub(super) fn contains(self, name: &str) -> bool {
        self.names().any(|signed| signed == name)
    }
}

/// Returns whether a header name in lower case may contain this byte (RFC 9110 section 5.6.2).
const fn is_lower_case_token(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'!' | b'#' | b'$' | b'%' | b'&' | b'\''
        | b'*' | b'+' | b'^' | b'`' | b'|' | b'~')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_keys_may_contain_slashes() {
        let scope = Scope::parse("a/b/20130524/eu/s3/aws4_request").expect("valid");
        assert_eq!(scope.access_key, "a/b");
        assert_eq!((scope.date, scope.region), ("20130524", "eu"));
        assert_eq!(scope.text, "20130524/eu/s3/aws4_request");
    }

    #[test]
    fn credentials_with_missing_or_empty_fields_are_malformed() {
        for text in
            ["", "HAHAHA", "a/20130524/eu/s3", "/20130524/eu/s3/aws4_request", "a/20130524//s3/aws4_request"]
        {
            assert_eq!(Scope::parse(text), Err(MalformedReason::Credential), "{text}");
        }
    }

    #[test]
    fn each_wrong_field_has_its_own_error() {
        let cases = [
            ("a/2013052/eu/s3/aws4_request", MalformedReason::CredentialDate("2013052".into())),
            ("a/2013052x/eu/s3/aws4_request", MalformedReason::CredentialDate("2013052x".into())),
            ("a/20130524/eu/ec2/aws4_request", MalformedReason::Service("ec2".into())),
            ("a/20130524/eu/s3/aws5_request", MalformedReason::Terminator("aws5_request".into())),
        ];
        for (text, reason) in cases {
            assert_eq!(Scope::parse(text), Err(reason), "{text}");
        }
    }

    #[test]
    fn signed_header_names_are_validated() {
        assert!(SignedHeaders::parse("host;x-amz-date").is_ok_and(|list| list.contains("host")));
        let long = vec!["a"; SIGNED_HEADERS_MAX + 1].join(";");
        for text in ["", ";", "host;", "Host", "ho st", "host,range", long.as_str()] {
            assert_eq!(SignedHeaders::parse(text), Err(MalformedReason::SignedHeaders), "{text}");
        }
    }
}
