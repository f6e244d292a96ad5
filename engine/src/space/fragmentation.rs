//! Test of fragmentation: do extents stay long over months of overwrites and deletions?
//!
//! The test runs on the allocator alone, with payloads of mixed sizes and several fill levels. The volumes have a fixed
//! size, which is the hard case: nothing can grow. A month writes as many bytes as the store holds. The curve is printed:
//! `cargo test --release -p cairn-engine --lib fragmentation -- --nocapture`. `CAIRN_FRAGMENTATION_MONTHS` sets the length.

use crate::device::file_map::FreeKind;
use crate::format::extent::Extent;
use crate::format::payload_id::PayloadId;
use crate::limits::{EXTENT_UNITS_MAX, LONG_PIECE_UNITS, UNIT_BYTES};
use crate::space::allocator::{Allocator, MinExtent, RemovedPayload};
use crate::space::reservation::Reservation;
use cairn_model::{u64_of, usize_of};
use std::sync::Arc;

/// Units of the volumes (32 GiB).
const UNITS: u64 = (32 << 30) / UNIT_BYTES;
const SEED: u64 = 0x5EED;

/// A small seeded generator, so that the curve is reproducible.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }

    /// Returns a payload size. Of a hundred payloads 50 have 20 to 128 KiB, 25 up to 1 MiB, 20 up to 16 MiB, and 5 up to
    /// 256 MiB. Within each class every doubling of the size is equally frequent.
    fn bytes(&mut self) -> u64 {
        const KIB: u64 = 1024;
        let (from, doublings) = match self.below(100) {
            0..50 => (20 * KIB, 3),
            50..75 => (128 * KIB, 3),
            75..95 => (1024 * KIB, 4),
            _ => (16 * 1024 * KIB, 4),
        };
        let least = from << self.below(doublings);
        least + self.below(least)
    }
}

struct Object {
    id: PayloadId,
    units: u64,
    extents: Vec<Extent>,
}

struct Store {
    allocator: Arc<Allocator>,
    random: Random,
    objects: Vec<Object>,
    used: u64,
    ids: u64,
}

/// Fragmentation at the end of a month.
#[derive(Debug)]
struct Fragmentation {
    /// Objects of 1 MiB or more that have one extent for each 64 MiB reserved at once, in thousandths.
    whole: u64,
    /// Mean number of extents of an object of 1 MiB or more, in thousandths.
    extents: u64,
    /// Bytes of these objects in extents of 1 MiB or more, in thousandths.
    long_bytes: u64,
    /// Free space in runs of 1 MiB or more, in thousandths.
    free_long: u64,
    free_runs: usize,
}

impl Store {
    fn new() -> Self {
        let allocator = Arc::new(Allocator::default());
        allocator.add(Extent::at(1, UNITS - 1), FreeKind::Written);
        Self { allocator, random: Random(SEED), objects: Vec::new(), used: 0, ids: 0 }
    }

    /// Reserves as a writer does: large payloads in several reservations, each with long extents if possible.
    fn write(&mut self, bytes: u64) -> Option<Object> {
        let mut reservation: Option<Reservation> = None;
        let mut rest = bytes;
        while rest > 0 {
            let now = rest.min(EXTENT_UNITS_MAX * UNIT_BYTES);
            let long = self.allocator.reserve(now, MinExtent::Long);
            let more = long.or_else(|| self.allocator.reserve(now, MinExtent::OneBlock))?;
            match &mut reservation {
                Some(all) => all.append(more),
                None => reservation = Some(more),
            }
            rest -= now;
        }
        let reservation = reservation?;
        let extents = reservation.extents().to_vec();
        reservation.commit();
        self.ids += 1;
        let mut id = [0; 16];
        id[..8].copy_from_slice(&self.ids.to_le_bytes());
        let units = extents.iter().map(|extent| u64::from(extent.units)).sum();
        self.used += units;
        Some(Object { id: PayloadId(id), units, extents })
    }

    fn remove(&mut self, index: usize) {
        let object = self.objects.swap_remove(index);
        self.used -= object.units;
        self.allocator.free_removed(vec![RemovedPayload { id: object.id, extents: object.extents }]);
    }

    fn any(&mut self) -> usize {
        usize_of(self.random.below(u64_of(self.objects.len())))
    }

    /// Writes `units` units. Half of the objects replace another one, which is removed afterwards, as in an overwrite.
    fn churn(&mut self, units: u64, fill: u64) {
        let limit = UNITS * fill / 100;
        let mut written = 0;
        while written < units {
            let bytes = self.random.bytes();
            while self.used + bytes.div_ceil(UNIT_BYTES) > limit {
                let gone = self.any();
                self.remove(gone);
            }
            let object = self.write(bytes).expect("there is space below the limit");
            written += object.units;
            if !self.objects.is_empty() && self.random.below(2) == 0 {
                let replaced = self.any();
                self.remove(replaced);
            }
            self.objects.push(object);
        }
    }

    fn fragmentation(&self) -> Fragmentation {
        let (mut large, mut whole, mut extents, mut units, mut long_units) = (0, 0, 0, 0, 0);
        for object in self.objects.iter().filter(|object| object.units >= LONG_PIECE_UNITS) {
            large += 1;
            whole += u64::from(object.extents.len() as u64 <= object.units.div_ceil(EXTENT_UNITS_MAX));
            extents += object.extents.len() as u64;
            units += object.units;
            let long = object.extents.iter().map(|extent| u64::from(extent.units));
            long_units += long.filter(|units| *units >= LONG_PIECE_UNITS).sum::<u64>();
        }
        let runs = self.allocator.free_runs();
        let free: u64 = runs.iter().sum();
        let free_long: u64 = runs.iter().filter(|units| **units >= LONG_PIECE_UNITS).sum();
        Fragmentation {
            whole: whole * 1000 / large,
            extents: extents * 1000 / large,
            long_bytes: long_units * 1000 / units,
            free_long: free_long * 1000 / free,
            free_runs: runs.len(),
        }
    }
}

fn months() -> u32 {
    std::env::var("CAIRN_FRAGMENTATION_MONTHS").ok().and_then(|months| months.parse().ok()).unwrap_or(24)
}

/// A careless allocator makes extents shorter every month, without end.
#[test]
fn fragmentation_stays_bounded_over_months_of_churn() {
    let months = months();
    println!(
        "fill  month  fewest extents  extents/object  in extents >= 1 MiB  free in runs >= 1 MiB  free runs"
    );
    for (fill, whole_min, extents_max) in [(50, 990, 1300), (70, 990, 1300), (85, 990, 1300), (95, 800, 1800)]
    {
        let mut store = Store::new();
        let mut curve = Vec::new();
        for month in 0..=months {
            store.churn(UNITS * fill / 100, fill);
            let now = store.fragmentation();
            if month < 3 || month % 6 == 0 {
                println!(
                    "{fill:3}%  {month:5}  {:13.1}%  {:14.3}  {:18.1}%  {:20.1}%  {:9}",
                    tenths(now.whole),
                    thousandths(now.extents),
                    tenths(now.long_bytes),
                    tenths(now.free_long),
                    now.free_runs
                );
            }
            let bounded = now.whole >= whole_min && now.extents <= extents_max && now.long_bytes >= 990;
            assert!(bounded, "{fill} %, month {month}: {now:?}");
            curve.push(now.extents);
        }
        // Fragmentation is stable: the last quarter of the time is no worse than the one before, except for noise.
        let quarter = curve.len() / 4;
        let mean = |part: &[u64]| part.iter().sum::<u64>() / part.len() as u64;
        let (last, before) = (mean(&curve[3 * quarter..]), mean(&curve[2 * quarter..3 * quarter]));
        assert!(last <= before + before / 10, "{fill} %: {before} thousandths of extents, then {last}");
    }
}

fn tenths(value: u64) -> f64 {
    f64::from(u32::try_from(value).unwrap_or(u32::MAX)) / 10.0
}

fn thousandths(value: u64) -> f64 {
    f64::from(u32::try_from(value).unwrap_or(u32::MAX)) / 1000.0
}
