//! Tests of the allocator: reservations, pins, orphans, holes.

use super::{Allocator, MinExtent, RemovedPayload};
use crate::device::file_map::FreeKind;
use crate::format::extent::{Extent, total_units};
use crate::format::payload_id::PayloadId;
use crate::limits::{BLOCK_UNITS, LONG_PIECE_UNITS, RECLAIM_PIECE_UNITS_MAX, UNIT_BYTES, WRITTEN_POOL_UNITS};
use std::sync::Arc;

fn extent(start: u32, units: u64) -> Extent {
    Extent { volume: 0, start, units: u32::try_from(units).expect("small") }
}

fn with_fresh_units(units: u64) -> Arc<Allocator> {
    let allocator = Arc::new(Allocator::default());
    allocator.add(extent(1, units), FreeKind::Fresh);
    allocator
}

#[test]
fn dropped_reservation_is_free_again_and_committed_one_is_not() {
    let allocator = with_fresh_units(64);
    drop(allocator.reserve(10 * UNIT_BYTES, MinExtent::OneBlock).expect("fits"));
    assert_eq!(allocator.free_space().free_units, 64);
    allocator.reserve(10 * UNIT_BYTES, MinExtent::OneBlock).expect("fits").commit();
    assert_eq!(allocator.free_space().free_units, 54);
    assert!(allocator.reserve(100 * UNIT_BYTES, MinExtent::OneBlock).is_none());
    assert_eq!(allocator.free_space().free_units, 54, "a failed reservation takes nothing");
}

#[test]
fn all_extents_but_the_last_hold_whole_blocks() {
    let allocator = Arc::new(Allocator::default());
    for start in [1, 100, 200] {
        allocator.add(extent(start, BLOCK_UNITS + 3), FreeKind::Fresh);
    }
    let scattered = allocator.reserve((2 * BLOCK_UNITS + 5) * UNIT_BYTES, MinExtent::Long);
    assert!(scattered.is_none(), "short extents are not used while the volume can grow");
    let reservation =
        allocator.reserve((2 * BLOCK_UNITS + 5) * UNIT_BYTES, MinExtent::OneBlock).expect("fits");
    let units: Vec<u64> = reservation.extents().iter().map(|e| u64::from(e.units)).collect();
    assert_eq!(units.iter().sum::<u64>(), 2 * BLOCK_UNITS + 5);
    assert!(units.iter().rev().skip(1).all(|n| n % BLOCK_UNITS == 0), "{units:?}");
}

/// A reader pins a payload, then the object is overwritten and other payloads are written. The reader's extents must
/// not be handed out before it ends.
#[test]
fn removed_extents_are_deferred_until_their_readers_end() {
    let allocator = with_fresh_units(16);
    let id = PayloadId([1; 16]);
    let reservation = allocator.reserve(16 * UNIT_BYTES, MinExtent::OneBlock).expect("fits");
    let extents = reservation.extents().to_vec();
    reservation.commit();
    let pin = allocator.pin(id, allocator.free_epoch()).expect("nothing was removed");
    let second = allocator.pin(id, allocator.free_epoch()).expect("nothing was removed");
    allocator.free_removed(vec![RemovedPayload { id, extents }]);
    assert!(allocator.reserve(UNIT_BYTES, MinExtent::OneBlock).is_none());
    drop(pin);
    assert!(allocator.reserve(UNIT_BYTES, MinExtent::OneBlock).is_none());
    drop(second);
    assert_eq!(
        allocator.reserve(16 * UNIT_BYTES, MinExtent::OneBlock).expect("free again").extents().len(),
        1
    );
}

/// A record vanished while its payload was read, and a repair took its extents for orphans. The reader must end before
/// anyone else writes there, and its pin does not say which extents it reads.
#[test]
fn orphans_are_deferred_until_all_current_readers_end() {
    let allocator = with_fresh_units(16);
    let reservation = allocator.reserve(16 * UNIT_BYTES, MinExtent::OneBlock).expect("fits");
    assert_eq!(allocator.reserved_units(), 16);
    let extents = reservation.extents().to_vec();
    reservation.commit();
    assert_eq!(allocator.reserved_units(), 0);
    let pins =
        [1, 2].map(|n| allocator.pin(PayloadId([n; 16]), allocator.free_epoch()).expect("nothing removed"));
    allocator.free_orphans(extents);
    for pin in pins {
        assert!(allocator.reserve(UNIT_BYTES, MinExtent::OneBlock).is_none());
        let later = allocator.pin(PayloadId([3; 16]), allocator.free_epoch()).expect("nothing removed");
        drop(pin);
        drop(later);
    }
    assert!(allocator.reserve(16 * UNIT_BYTES, MinExtent::OneBlock).is_some());
}

#[test]
fn orphan_that_an_upload_has_reserved_is_skipped() {
    let allocator = with_fresh_units(16);
    let upload = allocator.reserve(4 * UNIT_BYTES, MinExtent::OneBlock).expect("fits");
    allocator.free_orphans(upload.extents().to_vec());
    assert_eq!(allocator.free_space().free_units, 12);
    drop(upload);
    assert_eq!((allocator.free_space().free_units, allocator.reserved_units()), (16, 0));
}

#[test]
fn pin_with_an_old_free_epoch_is_refused() {
    let allocator = with_fresh_units(16);
    let before = allocator.free_epoch();
    let reservation = allocator.reserve(UNIT_BYTES, MinExtent::OneBlock).expect("fits");
    let extents = reservation.extents().to_vec();
    reservation.commit();
    allocator.free_removed(vec![RemovedPayload { id: PayloadId([1; 16]), extents }]);
    assert!(allocator.pin(PayloadId([1; 16]), before).is_none());
}

#[test]
fn surplus_is_long_runs_and_keeps_the_written_pool() {
    let allocator = Arc::new(Allocator::default());
    allocator.add(extent(1, 1000), FreeKind::Fresh);
    allocator.add(extent(2000, 2 * WRITTEN_POOL_UNITS), FreeKind::Written);
    let held = allocator.reserve(100 * UNIT_BYTES, MinExtent::OneBlock).expect("fits");
    let mut given_back = 0;
    while let Some((surplus, kind)) = allocator.take_surplus(u64::MAX) {
        let units = u64::from(surplus.units);
        assert!((LONG_PIECE_UNITS..=RECLAIM_PIECE_UNITS_MAX).contains(&units));
        assert!(!surplus.overlaps(&held.extents()[0]));
        given_back += units;
        allocator.add(surplus, FreeKind::Hole);
        assert!(given_back > 900 || kind == FreeKind::Fresh, "fresh space is taken first");
    }
    let state = allocator.free_space();
    assert_eq!((state.free_units, state.hole_units), (WRITTEN_POOL_UNITS, given_back));
    assert_eq!(given_back, 900 + WRITTEN_POOL_UNITS);
}

#[test]
fn holes_are_not_reserved_until_they_are_allocated_again() {
    let allocator = Arc::new(Allocator::default());
    for hole in 0..20 {
        allocator.add(extent(hole * 1000 + 1, LONG_PIECE_UNITS), FreeKind::Hole);
    }
    assert!(allocator.reserve(UNIT_BYTES, MinExtent::OneBlock).is_none());
    assert_eq!(allocator.take_holes(16 * LONG_PIECE_UNITS, 16 * LONG_PIECE_UNITS), [], "too many short ones");
    assert_eq!(allocator.free_space().hole_units, 20 * LONG_PIECE_UNITS);
    let taken = allocator.take_holes(4 * LONG_PIECE_UNITS, LONG_PIECE_UNITS + 1);
    assert_eq!(total_units(&taken), 4 * LONG_PIECE_UNITS);
    assert_eq!(allocator.free_space().hole_units, 16 * LONG_PIECE_UNITS);
}

#[test]
fn lowest_free_space_is_reset_when_it_is_taken() {
    let allocator = with_fresh_units(100);
    allocator.take_lowest_free();
    drop(allocator.reserve(70 * UNIT_BYTES, MinExtent::OneBlock).expect("fits"));
    assert_eq!(allocator.take_lowest_free(), 30);
    assert_eq!(allocator.take_lowest_free(), 100);
}
