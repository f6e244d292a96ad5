//! Extents that a hold keeps from being reused.
//!
//! A hold lets a tool copy the volumes while clients write (`store/hold.rs`). Until it ends, extents of removed payloads are
//! kept here instead of becoming free. A hold never costs a client a write: when space is missing, it is given up.

use crate::format::extent::Extent;
use crate::limits::HELD_EXTENTS_MAX;
use std::fmt;

/// The reason why a hold was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HoldLoss {
    /// A client needed the space.
    NoSpace,
    /// More extents were removed than it may keep.
    TooMany,
}

impl fmt::Display for HoldLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSpace => "the disk became full: clients needed the space that was kept for the backup",
            Self::TooMany => "more objects were overwritten or deleted than a backup can keep",
        })
    }
}

/// The extents that a hold keeps in one slice.
#[derive(Debug, Default)]
pub(super) struct Held {
    state: HoldState,
    extents: Vec<Extent>,
    units: u64,
}

#[derive(Clone, Copy, Debug, Default)]
enum HoldState {
    #[default]
    None,
    Holding,
    Lost(HoldLoss),
}

impl Held {
    pub(super) fn begin(&mut self) {
        assert!(self.extents.is_empty(), "the extents of a hold are released before the next one begins");
        self.state = HoldState::Holding;
    }

    pub(super) const fn end(&mut self) {
        self.state = HoldState::None;
    }

    pub(super) const fn check(&self) -> Result<(), HoldLoss> {
        match self.state {
            HoldState::Lost(loss) => Err(loss),
            HoldState::None | HoldState::Holding => Ok(()),
        }
    }

    /// Gives the hold up, unless it keeps nothing.
    pub(super) const fn lose(&mut self, loss: HoldLoss) {
        if matches!(self.state, HoldState::Holding) && self.units > 0 {
            self.state = HoldState::Lost(loss);
        }
    }

    /// Keeps an extent. Returns `false` if there is no hold, or if it keeps too much and is given up.
    pub(super) fn keep(&mut self, extent: Extent) -> bool {
        if !matches!(self.state, HoldState::Holding) {
            return false;
        }
        let follows =
            |last: &&mut Extent| last.volume == extent.volume && last.start + last.units == extent.start;
        let is_full = self.extents.len() >= HELD_EXTENTS_MAX;
        match self.extents.last_mut().filter(follows) {
            Some(last) => last.units += extent.units,
            None if !is_full => self.extents.push(extent),
            None => {
                self.state = HoldState::Lost(HoldLoss::TooMany);
                return false;
            }
        }
        self.units += u64::from(extent.units);
        true
    }

    /// Takes at most `most` extents out, if the hold has ended or was given up.
    pub(super) fn release(&mut self, most: usize) -> Vec<Extent> {
        if matches!(self.state, HoldState::Holding) {
            return Vec::new();
        }
        let released = self.extents.split_off(self.extents.len().saturating_sub(most));
        self.units -= released.iter().map(|extent| u64::from(extent.units)).sum::<u64>();
        if self.extents.is_empty() {
            self.extents = Vec::new();
        }
        released
    }

    pub(super) const fn units(&self) -> u64 {
        self.units
    }

    pub(super) fn extents(&self) -> impl Iterator<Item = &Extent> {
        self.extents.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::{Held, HoldLoss};
    use crate::device::file_map::FreeKind;
    use crate::format::extent::Extent;
    use crate::format::payload_id::PayloadId;
    use crate::limits::{HELD_EXTENTS_MAX, UNIT_BYTES};
    use crate::space::allocator::{Allocator, MinExtent, RemovedPayload};
    use std::sync::Arc;

    const ID: PayloadId = PayloadId([1; 16]);

    fn extent(start: u32, units: u32) -> Extent {
        Extent { volume: 0, start, units }
    }

    /// An allocator whose 16 units a payload owns.
    fn full() -> (Arc<Allocator>, RemovedPayload) {
        let allocator = Arc::new(Allocator::default());
        allocator.add(extent(1, 16), FreeKind::Fresh);
        let reservation = allocator.reserve(16 * UNIT_BYTES, MinExtent::OneBlock).expect("fits");
        let extents = reservation.extents().to_vec();
        reservation.commit();
        (allocator, RemovedPayload { id: ID, extents })
    }

    fn is_free(allocator: &Arc<Allocator>) -> bool {
        allocator.reserve(16 * UNIT_BYTES, MinExtent::OneBlock).is_some()
    }

    #[test]
    fn what_is_removed_during_a_hold_is_free_after_it() {
        let (allocator, removed) = full();
        allocator.begin_hold();
        allocator.free_removed(vec![removed]);
        assert!(!is_free(&allocator));
        assert_eq!((allocator.held_units(), allocator.check_hold()), (16, Ok(())));
        assert_eq!(allocator.release_held(), 0, "not before its end");
        allocator.end_hold();
        assert!(!is_free(&allocator), "it is freed in pieces");
        assert_eq!((allocator.release_held(), allocator.release_held()), (1, 0));
        assert!(is_free(&allocator));
    }

    /// A reader of a payload that was removed before the hold began ends during it. Its extents are kept, too: whether a
    /// snapshot refers to them is not known here.
    #[test]
    fn what_readers_release_during_a_hold_is_kept() {
        let (allocator, removed) = full();
        let pin = allocator.pin(ID, allocator.free_epoch()).expect("nothing was removed");
        allocator.free_removed(vec![removed]);
        allocator.begin_hold();
        drop(pin);
        assert!(!is_free(&allocator));
        allocator.end_hold();
        allocator.release_held();
        assert!(is_free(&allocator));
    }

    #[test]
    fn a_hold_is_given_up_for_a_writer_and_says_so() {
        let (allocator, removed) = full();
        allocator.begin_hold();
        assert!(!allocator.give_up_hold(), "it keeps nothing that could help");
        assert_eq!(allocator.check_hold(), Ok(()));
        allocator.free_removed(vec![removed]);
        assert!(allocator.give_up_hold());
        assert_eq!(allocator.check_hold(), Err(HoldLoss::NoSpace));
        assert!(is_free(&allocator));
        allocator.end_hold();
        assert_eq!(allocator.check_hold(), Ok(()));
    }

    #[test]
    fn a_reservation_that_is_dropped_is_free_at_once() {
        let allocator = Arc::new(Allocator::default());
        allocator.add(extent(1, 16), FreeKind::Fresh);
        allocator.begin_hold();
        drop(allocator.reserve(16 * UNIT_BYTES, MinExtent::OneBlock).expect("fits"));
        assert!(is_free(&allocator));
    }

    #[test]
    fn a_hold_that_keeps_too_much_is_given_up() {
        let mut held = Held::default();
        held.begin();
        let every_second = |number: usize| extent(u32::try_from(2 * number + 1).expect("small"), 1);
        for number in 0..HELD_EXTENTS_MAX {
            assert!(held.keep(every_second(number)));
        }
        assert!(
            held.keep(extent(u32::try_from(2 * HELD_EXTENTS_MAX).expect("small"), 1)),
            "it continues the last one"
        );
        assert_eq!(held.check(), Ok(()));
        assert!(!held.keep(every_second(HELD_EXTENTS_MAX + 1)));
        assert_eq!(held.check(), Err(HoldLoss::TooMany));
        assert_eq!(held.release(usize::MAX).len(), HELD_EXTENTS_MAX);
        assert_eq!(held.units(), 0);
    }
}
