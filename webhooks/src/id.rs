//! Ids of webhooks and deliveries.

use cairn_engine::Tick;
pub(crate) use cairn_model::time_id::ID_BYTES;
use cairn_model::{Timestamp, time_id};

/// Bytes at the beginning of a delivery's id that its event determines.
pub(crate) const EVENT_BYTES: usize = 8;

time_id! {
    /// The id of a webhook. Webhooks that are created later have greater ids.
    WebhookId
}

time_id! {
    /// The id of a delivery: of one event to one webhook. Its time is the event's tick, so it names the event; the rest is
    /// random.
    DeliveryId
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
    use super::{DeliveryId, EVENT_BYTES};
    use cairn_engine::{EventId, Tick};

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
