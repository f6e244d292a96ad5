//! GetBucketEncryption: what was put, else AES256, as AWS has it for every bucket. Source: API Reference, GetBucketEncryption.
//!
//! Encryption at rest is a setting of the store. Without it no bucket has a configuration.

use crate::call::Call;
use crate::errors::{ErrorCode, S3Result};
use crate::headers::encryption::AES256;
use crate::reply::Reply;
use crate::xml::writer::XmlWriter;

pub(crate) fn get_bucket_encryption(call: &Call<'_>) -> S3Result<Reply> {
    let bucket = call.bucket()?;
    if !call.engine.store().encrypts_at_rest() {
        return Err(ErrorCode::ServerSideEncryptionConfigurationNotFoundError.into());
    }
    let encryption = bucket.settings().encryption.unwrap_or_default();
    let mut xml = XmlWriter::with_capacity(512);
    xml.open_root("ServerSideEncryptionConfiguration");
    xml.open("Rule");
    xml.open("ApplyServerSideEncryptionByDefault");
    xml.text("SSEAlgorithm", AES256);
    xml.close("ApplyServerSideEncryptionByDefault");
    if encryption.blocks_client_keys {
        xml.open("BlockedEncryptionTypes");
        xml.text("EncryptionType", "SSE-C");
        xml.close("BlockedEncryptionTypes");
    }
    xml.value("BucketKeyEnabled", encryption.bucket_key);
    xml.close("Rule");
    xml.close("ServerSideEncryptionConfiguration");
    Ok(Reply::xml(xml))
}
