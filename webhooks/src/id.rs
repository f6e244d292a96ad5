//! Ids of webhooks and deliveries: UUIDs of version 7 (RFC 9562, section 5.7).

use cairn_engine::Tick;
use cairn_model::Timestamp;
use std::{fmt, io};
use uuid::{Builder, Uuid};

/// Length of an id in bytes.
pub(crate) const ID_BYTES: usize = 16;
/// Bytes at the beginning of a delivery's id that its event determines.
pub(crate) const EVENT_BYTES: usize = 8;
/// Milliseconds have 48 bits in a UUID of version 7.
const TIME_MAX: u64 = (1 << 48) - 1;

/// Parses the hyphenated form: 36 characters, in upper or lower case.
fn parse(text: &str) -> Option<[u8; ID_BYTES]> {
    const HYPHENATED_BYTES: usize = 36;
    let id = Some(text).filter(|text| text.len() == HYPHENATED_BYTES).map(Uuid::try_parse)?.ok()?;
    (id.get_version_num() == 7).then_some(id.into_bytes())
}

macro_rules! id {
    ($name:ident, $doc:literal) => {
        #[doc = $doc]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub(crate) [u8; ID_BYTES]);

        impl $name {
            /// Parses the hyphenated form: 36 characters, in upper or lower case.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                parse(text).map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                Uuid::from_bytes(self.0).hyphenated().fmt(out)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(out, "{}({self})", stringify!($name))
            }
        }
    };
}

id!(WebhookId, "The id of a webhook. Webhooks that are created later have greater ids.");
id!(
    DeliveryId,
    "The id of a delivery: of one event to one webhook. Its time is the event's tick, so it names the event; the rest is random."
);

impl WebhookId {
    /// Makes a random id with the time `now`.
    ///
    /// # Errors
    /// The operating system has no random bytes.
    pub(crate) fn make(now: Timestamp) -> io::Result<Self> {
        let mut random = [0; 10];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let id = Builder::from_unix_timestamp_millis(now.0.min(TIME_MAX), &random).into_uuid();
        Ok(Self(id.into_bytes()))
    }
}

impl DeliveryId {
    /// Makes the id of a delivery of the event at this tick.
    pub(crate) fn new(event: Tick, random: [u8; 8]) -> Self {
        let [_, _, a, b, c, d, e, f] = event.time().0.to_be_bytes();
        let [.., high, low] = event.0.to_be_bytes();
        let mut id = [a, b, c, d, e, f, 0x70 | high & 0x0F, low, 0, 0, 0, 0, 0, 0, 0, 0];
        id[EVENT_BYTES..].copy_from_slice(&random);
        id[EVENT_BYTES] = id[EVENT_BYTES] & 0x3F | 0x80;
        Self(id)
    }

    /// Returns the position of the event.
    pub(crate) fn event(self) -> Tick {
        let [a, b, c, d, e, f, high, low, ..] = self.0;
        let fraction = u64::from(u16::from_be_bytes([high & 0x0F, low]));
        Tick(Tick::first_at(Timestamp(u64::from_be_bytes([0, 0, a, b, c, d, e, f]))).0 | fraction)
    }
}

#[cfg(test)]
mod tests {
    use super::{DeliveryId, EVENT_BYTES, WebhookId};
    use cairn_engine::{EventId, Tick};
    use cairn_model::Timestamp;

    #[test]
    fn ids_are_version_7_uuids_and_round_trip() {
        let id = WebhookId::make(Timestamp(0x0001_0203_0405)).expect("random bytes");
        assert!(id.to_string().starts_with("00010203-0405-7"), "{id}");
        assert_eq!(WebhookId::parse(&id.to_string()), Some(id));
        for bad in ["", "00010203-0405-4000-bfff-ffffffffffff", &id.to_string()[1..]] {
            assert_eq!(WebhookId::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_delivery_names_its_event() {
        let tick = Tick(0x0001_9abc_def0_1234 << 8 | 0x9F);
        let id = DeliveryId::new(tick, [0xFF; 8]);
        assert_eq!(DeliveryId::parse(&id.to_string()), Some(id));
        assert_eq!(id.event(), tick);
        let event = EventId::new(tick, &[7; 16]).to_string();
        assert_eq!(event[..2 * EVENT_BYTES + 2], id.to_string()[..2 * EVENT_BYTES + 2], "the same beginning");
        assert_ne!(DeliveryId::new(tick, [0; 8]), id);
    }
}
