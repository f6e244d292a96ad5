//! Extents that are reserved for one payload while it is written.

use crate::format::extent::{Extent, push_extent, total_units};
use crate::space::allocator::{Allocator, MinExtent};
use std::sync::Arc;

/// Extents that are reserved for a payload. Dropping it frees them; all writes to them must have ended by then.
#[derive(Debug)]
pub(crate) struct Reservation {
    allocator: Arc<Allocator>,
    /// The allocator's numbers of it: one, or several after [`Reservation::append`].
    numbers: Vec<u64>,
    extents: Vec<Extent>,
}

impl Allocator {
    /// Reserves extents for `bytes` bytes.
    ///
    /// All extents but the last hold whole blocks. Returns `None` if there is not enough free space in extents that are
    /// long enough: then the volume must grow.
    pub(crate) fn reserve(self: &Arc<Self>, bytes: u64, shortest: MinExtent) -> Option<Reservation> {
        let (number, extents) = self.register(bytes, shortest)?;
        Some(Reservation { allocator: Arc::clone(self), numbers: vec![number], extents })
    }
}

impl Reservation {
    /// Returns the extents in the order of the payload.
    pub(crate) fn extents(&self) -> &[Extent] {
        &self.extents
    }

    /// Appends another reservation of the same slice.
    pub(crate) fn append(&mut self, mut more: Self) {
        assert!(Arc::ptr_eq(&self.allocator, &more.allocator), "both reservations belong to one slice");
        self.numbers.append(&mut more.numbers);
        for extent in std::mem::take(&mut more.extents) {
            push_extent(&mut self.extents, extent);
        }
    }

    /// Keeps the first `units` units and frees the rest. All writes to the rest must have ended.
    pub(crate) fn shorten(&mut self, units: u64) {
        let surplus = total_units(&self.extents).checked_sub(units).expect("a reservation does not grow");
        assert!(units > 0, "a payload without bytes reserves nothing");
        if surplus == 0 {
            return;
        }
        let (mut kept, mut freed, mut missing) = (Vec::new(), Vec::new(), units);
        for extent in self.extents.drain(..) {
            let length = u64::from(extent.units);
            let taken = length.min(missing);
            missing -= taken;
            if taken > 0 {
                kept.push(Extent::at(extent.address(), taken));
            }
            if taken < length {
                freed.push(Extent::at(extent.address() + taken, length - taken));
            }
        }
        let number = self.allocator.end_reservations(&self.numbers, &freed, &kept);
        self.numbers = number.into_iter().collect();
        self.extents = kept;
    }

    /// Ends the reservation without freeing its extents: a committed record owns them now.
    pub(crate) fn commit(mut self) {
        self.extents.clear();
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        // Empty after the reservation was appended to another one.
        if self.numbers.is_empty() {
            assert!(self.extents.is_empty(), "extents move together with the numbers of their reservation");
            return;
        }
        self.allocator.end_reservations(&self.numbers, &self.extents, &[]);
    }
}

#[cfg(test)]
mod tests {
    use crate::device::file_map::FreeKind;
    use crate::format::extent::{Extent, total_units};
    use crate::limits::{BLOCK_UNITS, UNIT_BYTES};
    use crate::space::allocator::{Allocator, MinExtent};
    use std::sync::Arc;

    #[test]
    fn shortened_reservation_frees_exactly_what_it_does_not_keep() {
        let free = 2 * BLOCK_UNITS + 8;
        for units in [1, 3, BLOCK_UNITS, BLOCK_UNITS + 1, 2 * BLOCK_UNITS + 7, free] {
            let allocator = Arc::new(Allocator::default());
            for (start, units) in [(1, BLOCK_UNITS), (100, BLOCK_UNITS), (200, 8)] {
                let units = u32::try_from(units).expect("small");
                allocator.add(Extent { volume: 0, start, units }, FreeKind::Fresh);
            }
            let reserve = |units| allocator.reserve(units * UNIT_BYTES, MinExtent::OneBlock).expect("fits");
            let mut reservation = reserve(BLOCK_UNITS);
            reservation.append(reserve(BLOCK_UNITS + 8));
            let before = reservation.extents().to_vec();
            reservation.shorten(units);
            let kept = reservation.extents().to_vec();
            assert_eq!(total_units(&kept), units);
            assert!(kept.iter().zip(&before).all(|(kept, before)| kept.address() == before.address()));
            assert_eq!(allocator.free_space().free_units, free - units);
            assert_eq!(allocator.reserved_units(), units);
            drop(reservation);
            assert_eq!((allocator.free_space().free_units, allocator.reserved_units()), (free, 0));
        }
    }
}
