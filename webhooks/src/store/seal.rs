//! Encryption of signing secrets at rest.
//!
//! The owner of a sealed secret is the id of its webhook (16 bytes). The format is that of [`SealingKey`].

use crate::id::WebhookId;
use crate::signature::SigningSecret;
use cairn_tables::SealingKey;
use std::io;

const INFO: &[u8] = b"cairn webhook secret sealing 1";

/// The key that seals secrets.
pub(crate) struct SecretKey(SealingKey);

impl SecretKey {
    /// Derives the key of the store with this id.
    pub(crate) fn derive(master_key: &[u8], store: [u8; 16]) -> Self {
        Self(SealingKey::derive(master_key, store, INFO))
    }

    /// Encrypts the secret of a webhook.
    ///
    /// # Errors
    /// The system's random number generator failed.
    pub(crate) fn seal(&self, webhook: WebhookId, secret: &SigningSecret) -> io::Result<Vec<u8>> {
        self.0.seal(&[&webhook.0], secret.expose().as_bytes())
    }

    /// Decrypts the secret of a webhook. Returns `None` if it was not sealed with this key for this webhook, or is damaged.
    pub(crate) fn open(&self, webhook: WebhookId, sealed: &[u8]) -> Option<SigningSecret> {
        let secret = self.0.open(&[&webhook.0], sealed)?;
        SigningSecret::parse(std::str::from_utf8(&secret).ok()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::{SecretKey, WebhookId};
    use crate::signature::SigningSecret;

    const WEBHOOK: WebhookId = WebhookId([1; 16]);

    fn opened(key: &SecretKey, webhook: WebhookId, sealed: &[u8]) -> Option<String> {
        key.open(webhook, sealed).map(|secret| secret.expose().to_owned())
    }

    #[test]
    fn secrets_open_only_for_their_webhook() {
        let key = SecretKey::derive(b"master", [7; 16]);
        let secret = SigningSecret::generate().expect("random bytes");
        let sealed = key.seal(WEBHOOK, &secret).expect("seals");
        assert_eq!(opened(&key, WEBHOOK, &sealed).as_deref(), Some(secret.expose()));
        assert_eq!(opened(&key, WebhookId([2; 16]), &sealed), None);
    }

    /// A change here would make the secrets of existing stores unreadable.
    #[test]
    fn secrets_of_earlier_versions_open() {
        let key = SecretKey::derive(b"master", [7; 16]);
        let sealed = hex::decode(include_str!("golden/sealed_secret.hex").trim()).expect("hex");
        let expected = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
        assert_eq!(opened(&key, WEBHOOK, &sealed).as_deref(), Some(expected));
    }
}
