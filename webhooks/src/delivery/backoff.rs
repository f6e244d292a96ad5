//! Exponential backoff of deliveries, with jitter.

use crate::id::DeliveryId;
use crate::limits::{ATTEMPT_WAIT_MAX, RETRY_AFTER_MAX};
use std::time::Duration;

/// The jitter is up to this part of the wait.
const JITTER_PART: u64 = 10;

/// Returns the wait after `attempts` failed attempts: 2^attempts seconds, up to a tenth more, and at most six hours
/// (specification, "Retries and guarantees"). `retry_after` can lengthen it, but not shorten it.
///
/// The jitter depends on the delivery and the attempt only. It spreads deliveries that failed at the same time.
pub(super) fn wait_after(delivery: DeliveryId, attempts: u8, retry_after: Option<Duration>) -> Duration {
    let longest = ATTEMPT_WAIT_MAX.as_secs();
    let doubled = 1u64 << attempts.min(32);
    let seconds = doubled.min(longest);
    let jitter_max = seconds * 1000 / JITTER_PART;
    let jitter = scatter(delivery, attempts) % (jitter_max + 1);
    let wait = Duration::from_millis(seconds * 1000 + jitter).min(ATTEMPT_WAIT_MAX);
    wait.max(retry_after.unwrap_or_default().min(RETRY_AFTER_MAX))
}

/// Returns a number that looks random (the finalizer of SplitMix64).
fn scatter(delivery: DeliveryId, attempts: u8) -> u64 {
    let (_, random) = delivery.0.split_at(8);
    let mut value =
        random.iter().fold(u64::from(attempts), |sum, byte| sum.rotate_left(8) ^ u64::from(*byte));
    value = (value ^ value >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    value = (value ^ value >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ value >> 31
}

#[cfg(test)]
mod tests {
    use super::wait_after;
    use crate::id::DeliveryId;
    use cairn_engine::Tick;
    use std::collections::BTreeSet;
    use std::time::Duration;

    fn id(number: u8) -> DeliveryId {
        DeliveryId::new(Tick(1 << 50), [number; 8])
    }

    #[test]
    fn waits_double_and_end_at_six_hours() {
        for attempts in 1..=20u8 {
            let wait = wait_after(id(1), attempts, None).as_millis();
            let base = (1000u128 << attempts).min(21_600_000);
            assert!(wait >= base && wait <= (base + base / 10).min(21_600_000), "{attempts}: {wait}");
        }
        assert_eq!(wait_after(id(1), u8::MAX, None), Duration::from_secs(21_600));
    }

    #[test]
    fn jitter_is_deterministic_and_spreads_deliveries() {
        let waits: BTreeSet<_> = (0..100).map(|number| wait_after(id(number), 6, None)).collect();
        assert!(waits.len() > 80, "{}", waits.len());
        assert_eq!(wait_after(id(7), 6, None), wait_after(id(7), 6, None));
    }

    #[test]
    fn the_target_can_lengthen_a_wait_but_not_shorten_it() {
        let wait = wait_after(id(1), 3, None);
        assert_eq!(wait_after(id(1), 3, Some(Duration::from_secs(1))), wait);
        assert_eq!(wait_after(id(1), 3, Some(Duration::from_secs(60))), Duration::from_secs(60));
        assert_eq!(wait_after(id(1), 3, Some(Duration::from_secs(86_400))), Duration::from_secs(3600));
    }
}
