//! Records of deliveries, and their formats on disk.
//!
//! Numbers in keys are big-endian, so that keys sort by them; numbers in bodies are little-endian. Every body has version 1.
//! Times are in milliseconds. `flags`: bit 0: a redelivery; bit 1: the last entry of its delivery.
//!
//! ```text
//! pending: what is to be sent, in the order of sending
//! key     webhook id (16), begun (1: 0 no attempt was made, 1 one was), due time (8), delivery id (16)
//! body    time of queueing (8), attempts made (1), flags (1), event type (1)
//!
//! waiting: the same deliveries in the order of queueing
//! key     webhook id (16), time of queueing (8), delivery id (16)
//! body    due time (8), begun (1), attempts made (1), flags (1), event type (1)
//!
//! deliveries: all deliveries by their event
//! key     delivery id (16); it begins with the first 8 bytes of the event's id
//! body    webhook id (16), time of queueing (8), state (1), times of its log entries, oldest first (8 each)
//!
//! succeeded, unsuccessful: the log, one entry for each attempt and each drop
//! key     webhook id (16), time of the attempt (8), delivery id (16)
//! body    state (1), attempt (1), flags (1), event type (1), HTTP status (2; 0: none), time of the next attempt (8; 0: none),
//!         error (UTF-8)
//! ```
//! States: 1 pending, 2 succeeded, 3 failed, 4 dropped. An attempt after which its delivery goes on is pending until the
//! delivery ends, and then failed.

use super::webhook_record::RECORD_VERSION;
use crate::id::{DeliveryId, ID_BYTES, WebhookId};
use cairn_engine::EventType;
use cairn_lmdb::Record;
use cairn_model::Timestamp;

const FLAG_REDELIVERY: u8 = 1;
const FLAG_LAST: u8 = 2;

cairn_model::named_enum! {
    /// The status of a delivery. Named as in the management API. The numbers are those on disk.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum DeliveryStatus {
        /// It waits for an attempt, or an attempt is being made.
        Pending = 1 => "pending",
        /// The target answered with a status from 200 to 299.
        Succeeded = 2 => "succeeded",
        /// The attempt failed, and the delivery has ended.
        Failed = 3 => "failed",
        /// The delivery ended without a further attempt: the webhook was disabled, or the event is no longer stored.
        Dropped = 4 => "dropped",
    }
}

impl DeliveryStatus {
    /// Returns the status with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }

    const fn number(self) -> u8 {
        self as u8
    }

    fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.number() == number)
    }
}

/// A delivery that has not ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Waiting {
    pub(crate) id: DeliveryId,
    pub(crate) webhook: WebhookId,
    pub(crate) kind: EventType,
    pub(crate) queued_at: Timestamp,
    pub(crate) due: Timestamp,
    /// Whether it goes on although first attempts are held back.
    pub(crate) begun: bool,
    /// Attempts that were made.
    pub(crate) attempts: u8,
    pub(crate) redelivery: bool,
}

/// One entry of the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct LogEntry {
    pub(crate) status: DeliveryStatus,
    pub(crate) attempt: u8,
    pub(crate) redelivery: bool,
    /// Whether it is the last one of its delivery.
    pub(crate) is_last: bool,
    pub(crate) kind: EventType,
    pub(crate) http_status: Option<u16>,
    pub(crate) next_attempt_at: Option<Timestamp>,
    pub(crate) error: String,
}

/// A delivery with the places of its log entries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Summary {
    pub(crate) webhook: WebhookId,
    pub(crate) queued_at: Timestamp,
    pub(crate) status: DeliveryStatus,
    /// Times of its log entries, oldest first.
    pub(crate) times: Vec<Timestamp>,
}

pub(crate) type PendingKey = [u8; 2 * ID_BYTES + 9];
pub(crate) type TimeKey = [u8; 2 * ID_BYTES + 8];

/// Returns the key of a waiting delivery or a log entry.
pub(crate) fn time_key(webhook: WebhookId, time: Timestamp, id: DeliveryId) -> TimeKey {
    let mut key = [0; 2 * ID_BYTES + 8];
    key[..ID_BYTES].copy_from_slice(&webhook.0);
    key[ID_BYTES..ID_BYTES + 8].copy_from_slice(&time.0.to_be_bytes());
    key[ID_BYTES + 8..].copy_from_slice(&id.0);
    key
}

/// Splits the key of a waiting delivery or a log entry.
pub(crate) fn time_key_parts(key: &[u8]) -> Option<(WebhookId, Timestamp, DeliveryId)> {
    let (webhook, rest) = key.split_first_chunk()?;
    let (time, id) = rest.split_first_chunk()?;
    Some((WebhookId(*webhook), Timestamp(u64::from_be_bytes(*time)), DeliveryId(id.try_into().ok()?)))
}

/// Returns the beginning of the keys in `pending` of a webhook's deliveries that have begun or not.
pub(crate) fn pending_prefix(webhook: WebhookId, begun: bool) -> [u8; ID_BYTES + 1] {
    let mut key = [u8::from(begun); ID_BYTES + 1];
    key[..ID_BYTES].copy_from_slice(&webhook.0);
    key
}

fn flag(bits: u8, flag: u8) -> bool {
    bits & flag != 0
}

/// Splits `N` bytes off the beginning.
fn split<const N: usize>(bytes: &[u8]) -> Option<([u8; N], &[u8])> {
    bytes.split_first_chunk().map(|(first, rest)| (*first, rest))
}

fn time(bytes: [u8; 8]) -> Timestamp {
    Timestamp(u64::from_le_bytes(bytes))
}

fn known<'r>(record: &Record<'r>) -> Option<&'r [u8]> {
    (record.version == RECORD_VERSION).then_some(record.body)
}

impl Waiting {
    /// Returns the key in `pending`.
    pub(crate) fn pending_key(&self) -> PendingKey {
        let mut key = [0; 2 * ID_BYTES + 9];
        key[..=ID_BYTES].copy_from_slice(&pending_prefix(self.webhook, self.begun));
        key[ID_BYTES + 1..ID_BYTES + 9].copy_from_slice(&self.due.0.to_be_bytes());
        key[ID_BYTES + 9..].copy_from_slice(&self.id.0);
        key
    }

    /// Returns the key in `waiting`.
    pub(crate) fn waiting_key(&self) -> TimeKey {
        time_key(self.webhook, self.queued_at, self.id)
    }

    /// Returns the body in `pending`.
    pub(crate) fn pending_body(&self) -> [u8; 11] {
        let mut body = [0; 11];
        body[..8].copy_from_slice(&self.queued_at.0.to_le_bytes());
        body[8..].copy_from_slice(&[self.attempts, u8::from(self.redelivery), self.kind.number()]);
        body
    }

    /// Returns the body in `waiting`.
    pub(crate) fn waiting_body(&self) -> [u8; 12] {
        let mut body = [0; 12];
        body[..8].copy_from_slice(&self.due.0.to_le_bytes());
        let rest = [u8::from(self.begun), self.attempts, u8::from(self.redelivery), self.kind.number()];
        body[8..].copy_from_slice(&rest);
        body
    }

    /// Reads a record of `pending`. Returns `None` if it has an unknown form.
    pub(crate) fn from_pending(key: &[u8], record: &Record<'_>) -> Option<Self> {
        let (webhook, rest) = split(key)?;
        let ([begun], rest) = split(rest)?;
        let (due, id) = split(rest)?;
        let (queued_at, rest) = split(known(record)?)?;
        let [attempts, flags, kind] = *rest else { return None };
        Some(Self {
            id: DeliveryId(id.try_into().ok()?),
            webhook: WebhookId(webhook),
            kind: EventType::from_number(kind)?,
            queued_at: time(queued_at),
            due: Timestamp(u64::from_be_bytes(due)),
            begun: begun != 0,
            attempts,
            redelivery: flag(flags, FLAG_REDELIVERY),
        })
    }

    /// Reads a record of `waiting`. Returns `None` if it has an unknown form.
    pub(crate) fn from_waiting(key: &[u8], record: &Record<'_>) -> Option<Self> {
        let (webhook, queued_at, id) = time_key_parts(key)?;
        let (due, rest) = split(known(record)?)?;
        let [begun, attempts, flags, kind] = *rest else { return None };
        Some(Self {
            id,
            webhook,
            kind: EventType::from_number(kind)?,
            queued_at,
            due: time(due),
            begun: begun != 0,
            attempts,
            redelivery: flag(flags, FLAG_REDELIVERY),
        })
    }
}

impl LogEntry {
    /// Returns the body on disk.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let flags =
            if self.redelivery { FLAG_REDELIVERY } else { 0 } | if self.is_last { FLAG_LAST } else { 0 };
        let mut body = Vec::with_capacity(14 + self.error.len());
        body.extend_from_slice(&[self.status.number(), self.attempt, flags, self.kind.number()]);
        body.extend_from_slice(&self.http_status.unwrap_or_default().to_le_bytes());
        body.extend_from_slice(&self.next_attempt_at.unwrap_or_default().0.to_le_bytes());
        body.extend_from_slice(self.error.as_bytes());
        body
    }

    /// Reads a record. Returns `None` if it has an unknown form.
    pub(crate) fn decode(record: &Record<'_>) -> Option<Self> {
        let ([status, attempt, flags, kind], rest) = split(known(record)?)?;
        let (http_status, rest) = split(rest)?;
        let (next, error) = split(rest)?;
        let (http_status, next) = (u16::from_le_bytes(http_status), time(next));
        Some(Self {
            status: DeliveryStatus::from_number(status)?,
            attempt,
            redelivery: flag(flags, FLAG_REDELIVERY),
            is_last: flag(flags, FLAG_LAST),
            kind: EventType::from_number(kind)?,
            http_status: (http_status > 0).then_some(http_status),
            next_attempt_at: (next.0 > 0).then_some(next),
            error: String::from_utf8(error.to_vec()).ok()?,
        })
    }
}

impl Summary {
    /// Returns the body on disk.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(25 + 8 * self.times.len());
        body.extend_from_slice(&self.webhook.0);
        body.extend_from_slice(&self.queued_at.0.to_le_bytes());
        body.push(self.status.number());
        self.times.iter().for_each(|time| body.extend_from_slice(&time.0.to_le_bytes()));
        body
    }

    /// Reads a record. Returns `None` if it has an unknown form.
    pub(crate) fn decode(record: &Record<'_>) -> Option<Self> {
        let (webhook, rest) = split(known(record)?)?;
        let (queued_at, rest) = split(rest)?;
        let ([status], rest) = split(rest)?;
        let (times, rest) = rest.as_chunks::<8>();
        let times = times.iter().map(|bytes| time(*bytes)).collect();
        let status = DeliveryStatus::from_number(status)?;
        let summary = Self { webhook: WebhookId(webhook), queued_at: time(queued_at), status, times };
        rest.is_empty().then_some(summary)
    }
}
