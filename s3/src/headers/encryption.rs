//! Server-side encryption: what requests may ask for, and what responses say.
//!
//! Source: "Using server-side encryption with Amazon S3 managed keys (SSE-S3)" (AWS). Encryption at rest is a setting of the
//! store. With it, a request for `AES256` asks for what happens anyway. `request/unsupported_headers.rs` refuses all other
//! kinds of encryption.

use crate::compatibility::Compatibility;
use crate::errors::{S3Error, S3Result};
use crate::request::fields::Fields;
use cairn_http1::ResponseHead;
use cairn_observe::RefusingSetting;

/// The header that asks for encryption, and that names it in responses.
pub(crate) const ENCRYPTION_HEADER: &str = "x-amz-server-side-encryption";
/// The encryption with a key of the server.
pub(crate) const AES256: &str = "AES256";

const NOT_AT_REST: &str = "This server does not encrypt what it stores, so AES256 is not implemented: set \
                           storage.encryption_enabled = true on the server, or ask for no encryption.";

/// Checks the encryption that a request asks for.
///
/// # Errors
/// `InvalidArgument` for an unknown encryption, `NotImplemented` if the store does not encrypt at rest.
pub(crate) fn check(fields: Fields<'_>, encrypts_at_rest: bool) -> S3Result<()> {
    let sent = fields.headers().iter().map(|(name, value)| (*name, *value));
    let hoisted = fields.hoisted().map(|(name, value)| (name, value.as_bytes()));
    for (_, value) in sent.chain(hoisted).filter(|(name, _)| *name == ENCRYPTION_HEADER) {
        if value != AES256.as_bytes() {
            let value = String::from_utf8_lossy(value);
            let message = "The encryption method specified is not supported";
            return Err(S3Error::invalid_argument(ENCRYPTION_HEADER, &value, message));
        }
        if !encrypts_at_rest {
            return Err(not_at_rest());
        }
    }
    Ok(())
}

/// Returns the error for a request of encryption to a store that does not encrypt at rest.
pub(crate) fn not_at_rest() -> S3Error {
    S3Error::not_implemented(NOT_AT_REST).setting_at(RefusingSetting::EncryptionAtRest)
}

/// Says in a response whether the payload that it is about is encrypted at rest. The mode `strict` has no such header.
pub(crate) fn write(head: &mut ResponseHead, mode: Compatibility, is_encrypted: bool) {
    if is_encrypted && mode == Compatibility::Extended {
        head.header(ENCRYPTION_HEADER, AES256);
    }
}

#[cfg(test)]
mod tests {
    use super::{ENCRYPTION_HEADER, check, write};
    use crate::compatibility::Compatibility;
    use crate::request::fields::Fields;
    use crate::request::query::Query;
    use cairn_http1::{ResponseHead, StatusCode};
    use cairn_observe::RefusingSetting;

    #[test]
    fn only_aes256_is_accepted_and_only_with_encryption_at_rest() {
        let checked = |values: &[&str], query: &str, at_rest| {
            let query = Query::parse(Some(query)).expect("parses");
            let headers: Vec<(&str, &[u8])> =
                values.iter().map(|value| (ENCRYPTION_HEADER, value.as_bytes())).collect();
            check(Fields::new(&headers, &query), at_rest).map_err(|error| (error.status(), error.setting()))
        };
        let off = Err((501, Some(RefusingSetting::EncryptionAtRest)));
        for at_rest in [true, false] {
            let accepted = if at_rest { Ok(()) } else { off };
            assert_eq!(checked(&[], "", at_rest), Ok(()));
            assert_eq!(checked(&["AES256"], "", at_rest), accepted);
            assert_eq!(checked(&[], "X-Amz-Server-Side-Encryption=AES256", at_rest), accepted);
        }
        for other in ["", "aes256", "AES128", "AES256,AES256"] {
            assert_eq!(checked(&[other], "", true), Err((400, None)), "{other}");
            assert_eq!(checked(&["AES256", other], "", true), Err((400, None)), "{other}");
        }
    }

    #[test]
    fn responses_of_the_extended_mode_name_it() {
        for (mode, is_encrypted, expected) in [
            (Compatibility::Extended, true, Some(&b"AES256"[..])),
            (Compatibility::Extended, false, None),
            (Compatibility::Strict, true, None),
        ] {
            let mut head = ResponseHead::new(StatusCode::OK);
            write(&mut head, mode, is_encrypted);
            assert_eq!(head.get(ENCRYPTION_HEADER), expected);
        }
    }
}
