//! Records of webhooks and of their health, and their formats on disk.
//!
//! Table `webhooks`: the key is the webhook's id (16 bytes), the body is JSON in UTF-8, version 1:
//! ```text
//! {"target_url":"https://…","event_types":["object.created"],"bucket_filter":null,"object_prefix_filter":null,"enabled":true,
//!  "created_at":<ms>,"from_tick":<tick>,"sealed_secret":"<hex>","sealed_previous":null,"previous_expires_at":null}
//! ```
//! `from_tick` is the first event that the webhook receives: it was created or enabled at that tick. `seal.rs` describes sealed
//! secrets.
//!
//! Table `health`: the key is the webhook's id (16 bytes), the body, version 1:
//! ```text
//! offset  size  content
//! 0       8     waiting deliveries (little-endian, as all numbers of this body)
//! 8       4     failed attempts since the last success
//! 12      4     attempts in a row without an answer, or with 429 or 5xx
//! 16      8     time of the last success in ms; 0: none
//! 24      8     deliveries that were queued at this time in ms or earlier are dropped
//! 32      n     the error of the last failed attempt (UTF-8)
//! ```

use super::seal::SecretKey;
use crate::destination::TargetUrl;
use crate::id::WebhookId;
use crate::signature::{SigningSecret, SigningSecrets};
use cairn_engine::{EventType, EventTypes, StorageEvent, Tick};
use cairn_model::Timestamp;
use serde::{Deserialize, Serialize};
use std::io;

/// The version of all records in this folder.
pub(crate) const RECORD_VERSION: u8 = 1;

/// The settings of a webhook that a client can change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Settings {
    pub(crate) target_url: String,
    pub(crate) event_types: Vec<EventType>,
    pub(crate) bucket_filter: Option<String>,
    pub(crate) object_prefix_filter: Option<String>,
    pub(crate) enabled: bool,
}

/// A webhook without its health. Replaced as a whole by every change.
#[derive(Clone, Debug)]
pub(crate) struct WebhookRecord {
    pub(crate) id: WebhookId,
    pub(crate) settings: Settings,
    pub(crate) target: TargetUrl,
    /// The set of `settings.event_types`.
    pub(crate) types: EventTypes,
    pub(crate) created_at: Timestamp,
    /// The first event that it receives.
    pub(crate) from_tick: Tick,
    pub(crate) secret: SigningSecret,
    /// The secret before the last rotation, and when it stops being valid.
    pub(crate) previous: Option<(SigningSecret, Timestamp)>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    target_url: String,
    event_types: Vec<String>,
    bucket_filter: Option<String>,
    object_prefix_filter: Option<String>,
    enabled: bool,
    created_at: u64,
    from_tick: u64,
    sealed_secret: String,
    sealed_previous: Option<String>,
    previous_expires_at: Option<u64>,
}

impl WebhookRecord {
    /// Returns whether the filters select an event. An event of a bucket has no key, so no prefix selects it.
    pub(crate) fn selects(&self, event: &StorageEvent) -> bool {
        let settings = &self.settings;
        let prefix = settings.object_prefix_filter.as_deref().filter(|prefix| !prefix.is_empty());
        self.types.contains(event.kind)
            && settings.bucket_filter.as_deref().is_none_or(|bucket| bucket == event.bucket)
            && prefix.is_none_or(|prefix| {
                event.object.as_ref().is_some_and(|object| object.key.starts_with(prefix))
            })
    }

    /// Returns the secrets that sign at this time.
    pub(crate) fn secrets(&self, now: Timestamp) -> SigningSecrets<'_> {
        let previous = self.previous.as_ref().filter(|(_, end)| now < *end).map(|(secret, _)| secret);
        SigningSecrets { current: &self.secret, previous }
    }

    /// Returns the body on disk.
    ///
    /// # Errors
    /// If the system's random number generator fails.
    pub(crate) fn encode(&self, key: &SecretKey) -> io::Result<Vec<u8>> {
        let seal = |secret| key.seal(self.id, secret).map(hex::encode);
        let settings = &self.settings;
        let stored = Stored {
            target_url: settings.target_url.clone(),
            event_types: settings.event_types.iter().map(|kind| kind.name().to_owned()).collect(),
            bucket_filter: settings.bucket_filter.clone(),
            object_prefix_filter: settings.object_prefix_filter.clone(),
            enabled: settings.enabled,
            created_at: self.created_at.0,
            from_tick: self.from_tick.0,
            sealed_secret: seal(&self.secret)?,
            sealed_previous: self.previous.as_ref().map(|(secret, _)| seal(secret)).transpose()?,
            previous_expires_at: self.previous.as_ref().map(|(_, end)| end.0),
        };
        serde_json::to_vec(&stored).map_err(io::Error::other)
    }

    /// Reads a record. Returns `None` if it has an unknown form or its secret cannot be opened.
    pub(crate) fn decode(id: WebhookId, version: u8, body: &[u8], key: &SecretKey) -> Option<Self> {
        if version != RECORD_VERSION {
            return None;
        }
        let stored: Stored = serde_json::from_slice(body).ok()?;
        let open = |sealed: &str| key.open(id, &hex::decode(sealed).ok()?);
        let kinds = stored.event_types.iter().map(|name| EventType::from_name(name));
        let event_types: Vec<_> = kinds.collect::<Option<_>>()?;
        let previous = match (stored.sealed_previous, stored.previous_expires_at) {
            (Some(sealed), Some(end)) => Some((open(&sealed)?, Timestamp(end))),
            (None, None) => None,
            _ => return None,
        };
        Some(Self {
            id,
            target: TargetUrl::parse(&stored.target_url).ok()?,
            types: event_types.iter().copied().collect(),
            settings: Settings {
                target_url: stored.target_url,
                event_types,
                bucket_filter: stored.bucket_filter,
                object_prefix_filter: stored.object_prefix_filter,
                enabled: stored.enabled,
            },
            created_at: Timestamp(stored.created_at),
            from_tick: Tick(stored.from_tick),
            secret: open(&stored.sealed_secret)?,
            previous,
        })
    }
}

/// The health of a webhook's deliveries.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Health {
    /// Waiting deliveries.
    pub(crate) pending: u64,
    /// Failed attempts since the last success.
    pub(crate) consecutive_failures: u32,
    /// Attempts in a row that found the target unavailable: no answer, 429 or 5xx.
    pub(crate) target_failures: u32,
    pub(crate) last_success_at: Option<Timestamp>,
    /// Deliveries that were queued then or earlier are dropped.
    pub(crate) dropped_until: Timestamp,
    pub(crate) last_error: String,
}

impl Health {
    /// Returns the body on disk.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(32 + self.last_error.len());
        body.extend_from_slice(&self.pending.to_le_bytes());
        body.extend_from_slice(&self.consecutive_failures.to_le_bytes());
        body.extend_from_slice(&self.target_failures.to_le_bytes());
        body.extend_from_slice(&self.last_success_at.unwrap_or_default().0.to_le_bytes());
        body.extend_from_slice(&self.dropped_until.0.to_le_bytes());
        body.extend_from_slice(self.last_error.as_bytes());
        body
    }

    /// Reads a body. Returns `None` if it has an unknown form.
    pub(crate) fn decode(version: u8, body: &[u8]) -> Option<Self> {
        let (pending, rest) = body.split_first_chunk()?;
        let (consecutive_failures, rest) = rest.split_first_chunk()?;
        let (target_failures, rest) = rest.split_first_chunk()?;
        let (last_success_at, rest) = rest.split_first_chunk()?;
        let (dropped_until, last_error) = rest.split_first_chunk()?;
        let last_success_at = Timestamp(u64::from_le_bytes(*last_success_at));
        (version == RECORD_VERSION).then_some(())?;
        Some(Self {
            pending: u64::from_le_bytes(*pending),
            consecutive_failures: u32::from_le_bytes(*consecutive_failures),
            target_failures: u32::from_le_bytes(*target_failures),
            last_success_at: (last_success_at.0 > 0).then_some(last_success_at),
            dropped_until: Timestamp(u64::from_le_bytes(*dropped_until)),
            last_error: String::from_utf8(last_error.to_vec()).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: WebhookId = WebhookId([1; 16]);

    fn key() -> SecretKey {
        SecretKey::derive(b"master", [7; 16])
    }

    /// Golden bytes: a change here is a change of the on-disk format.
    #[test]
    fn record_formats_do_not_change() {
        let sealed = include_str!("golden/sealed_secret.hex").trim();
        let text = format!(
            concat!(
                r#"{{"target_url":"https://example.com/","event_types":["object.deleted","bucket.created"],"#,
                r#""bucket_filter":"b","object_prefix_filter":null,"enabled":true,"created_at":5,"from_tick":6,"#,
                r#""sealed_secret":"{0}","sealed_previous":"{0}","previous_expires_at":9}}"#
            ),
            sealed
        );
        let record = WebhookRecord::decode(ID, 1, text.as_bytes(), &key()).expect("reads");
        assert_eq!(record.settings.event_types, [EventType::ObjectDeleted, EventType::BucketCreated]);
        assert_eq!((record.created_at, record.from_tick), (Timestamp(5), Tick(6)));
        assert!(
            record.secrets(Timestamp(8)).previous.is_some()
                && record.secrets(Timestamp(9)).previous.is_none()
        );
        let again = record.encode(&key()).expect("seals");
        assert_eq!(String::from_utf8(again).expect("UTF-8").len(), text.len(), "only the nonces differ");
        for (version, text) in
            [(2, text.clone()), (1, text.replace("object.deleted", "x")), (1, "{}".to_owned())]
        {
            assert!(WebhookRecord::decode(ID, version, text.as_bytes(), &key()).is_none(), "{text}");
        }

        let health = Health {
            pending: 1,
            consecutive_failures: 2,
            target_failures: 3,
            last_success_at: Some(Timestamp(4)),
            dropped_until: Timestamp(5),
            last_error: "é".to_owned(),
        };
        let bytes = hex::decode(
            "01000000000000000200000003000000040000000000000005000000000000 00c3a9".replace(' ', ""),
        );
        assert_eq!(health.encode(), bytes.expect("hex"));
        assert_eq!(Health::decode(1, &health.encode()), Some(health.clone()));
        assert_eq!(Health::decode(1, &Health::default().encode()), Some(Health::default()));
        assert_eq!((Health::decode(2, &health.encode()), Health::decode(1, &[0; 31])), (None, None));
    }
}
