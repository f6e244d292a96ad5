//! PutBucketEncryption: takes AES256, which is what encryption at rest does anyway. Source: API Reference,
//! PutBucketEncryption.
//!
//! The configuration is stored, because tools compare what they read with what they put.

use crate::body::read_document;
use crate::call::Call;
use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::headers::encryption::{AES256, not_at_rest};
use crate::reply::Reply;
use crate::xml::reader::Element;
use cairn_engine::{BucketChange, BucketEncryption};
use cairn_http1::StatusCode;
use cairn_net::RequestBody;

const DEFAULT: &str = "ApplyServerSideEncryptionByDefault";

pub(crate) async fn put_bucket_encryption(call: &Call<'_>, body: &mut RequestBody<'_>) -> S3Result<Reply> {
    let bucket = call.bucket()?;
    let encryption = parse_document(&read_document(call, body, "ServerSideEncryptionConfiguration").await?)?;
    let store = call.engine.store();
    if !store.encrypts_at_rest() {
        return Err(not_at_rest());
    }
    store.change_bucket(&bucket, BucketChange::Encryption(Some(encryption))).await?;
    call.recording.describe(|| AES256.to_owned());
    Ok(Reply::empty(StatusCode::OK))
}

/// Reads the document.
///
/// # Errors
/// `MalformedXML` for anything but one rule, `InvalidArgument` for a key of KMS with AES256, `NotImplemented` for other kinds
/// of encryption.
fn parse_document(document: &Element) -> S3Result<BucketEncryption> {
    let malformed = || S3Error::new(ErrorCode::MalformedXML);
    let mut rules = document.children_named("Rule");
    let (Some(rule), None) = (rules.next(), rules.next()) else { return Err(malformed()) };
    if let Some(default) = rule.only_child(DEFAULT)? {
        let has_key = default.only_text("KMSMasterKeyID")?.is_some();
        match default.only_text("SSEAlgorithm")? {
            Some(AES256) if has_key => {
                let message = "a KMSMasterKeyID is not applicable if the default sse algorithm is not aws:kms or aws:kms:dsse";
                return Err(S3Error::with_message(ErrorCode::InvalidArgument, message)
                    .element("ArgumentName", DEFAULT));
            }
            Some(AES256) => {}
            Some("aws:kms" | "aws:kms:dsse") => {
                return Err(S3Error::not_implemented(
                    "KMS is not implemented: set SSEAlgorithm to AES256, with a key of the server.",
                ));
            }
            _ => return Err(malformed()),
        }
    }
    let bucket_key = match rule.only_text("BucketKeyEnabled")? {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return Err(malformed()),
    };
    let mut blocks_client_keys = false;
    if let Some(blocked) = rule.only_child("BlockedEncryptionTypes")? {
        for kind in blocked.children_named("EncryptionType") {
            match kind.text().trim() {
                "SSE-C" => blocks_client_keys = true,
                "NONE" => {
                    return Err(S3Error::not_implemented(
                        "Keys of clients (SSE-C) are not implemented: they cannot be allowed; omit the type NONE.",
                    ));
                }
                _ => return Err(malformed()),
            }
        }
    }
    Ok(BucketEncryption { bucket_key, blocks_client_keys })
}

#[cfg(test)]
mod tests {
    use super::parse_document;
    use crate::xml::reader::parse;
    use cairn_engine::BucketEncryption;

    fn parsed(inner: &str) -> Result<BucketEncryption, (u16, &'static str)> {
        let body = format!("<ServerSideEncryptionConfiguration>{inner}</ServerSideEncryptionConfiguration>");
        let document = parse(body.as_bytes()).expect(inner);
        parse_document(&document).map_err(|error| (error.status(), error.code()))
    }

    fn rule(algorithm: &str, more: &str) -> String {
        let default = format!("<SSEAlgorithm>{algorithm}</SSEAlgorithm>");
        format!(
            "<Rule><ApplyServerSideEncryptionByDefault>{default}</ApplyServerSideEncryptionByDefault>{more}</Rule>"
        )
    }

    #[test]
    fn one_rule_with_aes256_is_accepted() {
        let blocked = |kind: &str| {
            format!(
                "<BlockedEncryptionTypes><EncryptionType>{kind}</EncryptionType></BlockedEncryptionTypes>"
            )
        };
        let none = BucketEncryption::default();
        for (inner, expected) in [
            (rule("AES256", ""), none),
            (rule("AES256", "<BucketKeyEnabled>false</BucketKeyEnabled>"), none),
            (
                rule("AES256", "<BucketKeyEnabled>true</BucketKeyEnabled>"),
                BucketEncryption { bucket_key: true, ..none },
            ),
            (rule("AES256", &blocked("SSE-C")), BucketEncryption { blocks_client_keys: true, ..none }),
            ("<Rule/>".to_owned(), none),
        ] {
            assert_eq!(parsed(&inner), Ok(expected), "{inner}");
        }
        let malformed = Err((400, "MalformedXML"));
        for inner in [
            String::new(),
            rule("AES256", "") + &rule("aws:kms", ""),
            rule("AES128", ""),
            rule("", ""),
            rule("AES256</SSEAlgorithm><SSEAlgorithm>AES256", ""),
            rule("AES256", "<BucketKeyEnabled>yes</BucketKeyEnabled>"),
            rule("AES256", &blocked("SSE-S3")),
            "<Rule><ApplyServerSideEncryptionByDefault/></Rule>".to_owned(),
        ] {
            assert_eq!(parsed(&inner), malformed, "{inner}");
        }
        let not_implemented = Err((501, "NotImplemented"));
        for inner in [rule("aws:kms", ""), rule("aws:kms:dsse", ""), rule("AES256", &blocked("NONE"))] {
            assert_eq!(parsed(&inner), not_implemented, "{inner}");
        }
        let with_key = rule("AES256</SSEAlgorithm><KMSMasterKeyID>k</KMSMasterKeyID><SSEAlgorithm>", "")
            .replace("<SSEAlgorithm></SSEAlgorithm>", "");
        assert_eq!(parsed(&with_key), Err((400, "InvalidArgument")));
    }
}
