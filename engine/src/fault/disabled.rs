//! The fault hooks of a build without the feature `simulation`: they do nothing and take no space.
//!
//! The types of simulated files are enums without variants. A variant that holds one cannot exist, so the compiler drops it
//! from the layout of the enum and from every `match`.

use super::flaw::Flaw;
use std::future::Ready;
use std::io;
use std::path::{Path, PathBuf};

/// The faults of a store: none.
#[derive(Clone, Debug)]
pub(crate) struct Faults;

const _: () = assert!(size_of::<Faults>() == 0, "without the feature the hooks take no space");

impl Faults {
    /// Returns the faults of a store in the service.
    #[inline]
    pub(crate) const fn none() -> Self {
        Self
    }

    #[inline]
    pub(crate) const fn has(&self, _flaw: Flaw) -> bool {
        false
    }

    #[inline]
    pub(crate) const fn files(&self) -> Option<SimulatedFiles> {
        None
    }

    #[inline]
    pub(crate) const fn committer_is_idle(&self, _slice: u16) {}

    #[inline]
    pub(crate) const fn maintainer_is_idle(&self, _slice: u16) {}

    #[inline]
    pub(crate) const fn before_commit(&self) {}

    #[inline]
    pub(crate) const fn after_commit(&self) {}

    #[inline]
    pub(crate) const fn release_threads(&self) {}
}

/// The folder tree of a simulated disk. It has no values.
#[derive(Clone, Debug)]
pub(crate) enum SimulatedFiles {}

impl SimulatedFiles {
    pub(crate) fn list(&self, _folder: &Path) -> Vec<PathBuf> {
        match *self {}
    }

    pub(crate) fn create(&self, _path: &Path) -> io::Result<SimulatedFile> {
        match *self {}
    }

    pub(crate) fn open(&self, _path: &Path) -> io::Result<SimulatedFile> {
        match *self {}
    }

    pub(crate) fn rename(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn remove(&self, _path: &Path) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn sync_folder(&self, _folder: &Path) -> io::Result<()> {
        match *self {}
    }
}

/// A file on a simulated disk. It has no values.
#[derive(Clone, Debug)]
pub(crate) enum SimulatedFile {}

impl SimulatedFile {
    pub(crate) fn length(&self) -> u64 {
        match *self {}
    }

    pub(crate) fn read_exact_at(&self, _bytes: &mut [u8], _offset: u64) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn write_all_at(&self, _bytes: &[u8], _offset: u64) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn punch(&self, _offset: u64, _bytes: u64) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn allocate(&self, _to: u64) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn set_length(&self, _bytes: u64) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn touch(&self) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn sync(&self) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn buffer<T>(&self, _bytes: usize, _wrap: impl FnOnce(SimulatedBuffer) -> T) -> T {
        match *self {}
    }

    pub(crate) fn read(&self, _offset: u64, _bytes: usize) -> Ready<io::Result<SimulatedBuffer>> {
        match *self {}
    }

    pub(crate) fn write(&self, _buffer: &SimulatedBuffer, _offset: u64) -> Ready<io::Result<usize>> {
        match *self {}
    }
}

/// A buffer for a file on a simulated disk. It has no values.
#[derive(Clone, Debug)]
pub(crate) enum SimulatedBuffer {}

impl SimulatedBuffer {
    pub(crate) fn bytes(&self) -> &[u8] {
        match *self {}
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        match *self {}
    }

    pub(crate) fn is_shared(&self) -> bool {
        match *self {}
    }
}
