//! The volumes of a slice, their free space, and requests for growth.

use crate::device::volume::Volume;
use crate::error::EngineError;
use crate::limits::UNIT_BYTES;
use crate::space::allocator::{Allocator, MinExtent};
use crate::space::reservation::Reservation;
use cairn_sync::{Condvar, Mutex, RwLock};
use futures_channel::oneshot;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A request to the maintainer for free space.
pub(crate) struct GrowthRequest {
    /// Bytes of free space that the caller needs.
    pub(crate) bytes: u64,
    pub(crate) reply: oneshot::Sender<Result<(), EngineError>>,
}

/// Requests to the maintainer.
#[derive(Default)]
pub(crate) struct MaintenanceRequests {
    pub(crate) growth: Vec<GrowthRequest>,
    pub(crate) woken: bool,
    pub(crate) stop: bool,
}

/// Space for payloads in one slice.
pub(crate) struct VolumeSpace {
    pub(crate) allocator: Arc<Allocator>,
    /// In order of their numbers, which begin with 0.
    pub(crate) volumes: RwLock<Vec<Arc<Volume>>>,
    pub(crate) maintenance: Mutex<MaintenanceRequests>,
    pub(crate) maintenance_wake: Condvar,
    /// Whether anything was ever written to the slice. Until then it keeps little space ready.
    in_use: AtomicBool,
}

impl VolumeSpace {
    pub(super) fn new(volumes: Vec<Arc<Volume>>) -> Self {
        Self {
            allocator: Arc::new(Allocator::default()),
            volumes: RwLock::new(volumes),
            maintenance: Mutex::default(),
            maintenance_wake: Condvar::new(),
            in_use: AtomicBool::new(false),
        }
    }

    /// Notes that something is written to the slice. Returns whether it is the first time.
    pub(crate) fn note_use(&self) -> bool {
        !self.is_in_use() && !self.in_use.swap(true, Ordering::Relaxed)
    }

    /// Returns whether anything was ever written to the slice.
    pub(crate) fn is_in_use(&self) -> bool {
        self.in_use.load(Ordering::Relaxed)
    }

    /// Returns volume `number`, if it exists.
    pub(crate) fn volume(&self, number: u32) -> Option<Arc<Volume>> {
        let volumes = self.volumes.read();
        volumes.get(number as usize).cloned()
    }

    /// Reserves extents for `bytes` bytes. Waits until the volume has grown, if necessary.
    pub(crate) async fn reserve(&self, bytes: u64) -> Result<Reservation, EngineError> {
        /// Other payloads may take the space that was added for this one. After so many rounds the store counts as full.
        const ROUNDS_MAX: usize = 16;
        let mut shortest = MinExtent::Long;
        for _ in 0..ROUNDS_MAX {
            self.note_use();
            if let Some(reservation) = self.allocator.reserve(bytes, shortest) {
                if self.allocator.needs_maintenance() {
                    self.wake_maintainer();
                }
                return Ok(reservation);
            }
            match self.request_growth(bytes)?.await.map_err(|_| EngineError::ShuttingDown)? {
                Ok(()) => {}
                // The remaining space may suffice in short extents.
                Err(EngineError::StorageFull) if shortest == MinExtent::Long => {
                    shortest = MinExtent::OneBlock;
                }
                Err(EngineError::StorageFull) if self.allocator.give_up_hold() => {}
                Err(error) => return Err(error),
            }
        }
        Err(EngineError::StorageFull)
    }

    fn request_growth(&self, bytes: u64) -> Result<oneshot::Receiver<Result<(), EngineError>>, EngineError> {
        let (reply, grown) = oneshot::channel();
        let mut requests = self.maintenance.lock();
        if requests.stop {
            return Err(EngineError::ShuttingDown);
        }
        requests.growth.push(GrowthRequest { bytes, reply });
        self.maintenance_wake.notify_one();
        Ok(grown)
    }

    /// Wakes the maintainer, so that it checks what there is to do.
    pub(crate) fn wake_maintainer(&self) {
        let mut requests = self.maintenance.lock();
        if !requests.woken {
            requests.woken = true;
            self.maintenance_wake.notify_one();
        }
    }

    /// Returns the units of the volumes that are allocated on the disk.
    pub(crate) fn allocated_units(&self) -> u64 {
        (self.volume_bytes() / UNIT_BYTES).saturating_sub(self.allocator.free_space().hole_units)
    }

    /// Returns the total length of the volumes' files in bytes, including holes.
    pub(crate) fn volume_bytes(&self) -> u64 {
        let volumes = self.volumes.read();
        volumes.iter().map(|volume| u64::from(volume.units()) * UNIT_BYTES).sum()
    }
}
