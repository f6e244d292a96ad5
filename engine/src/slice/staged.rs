//! A staged payload: written to its extents, but not yet part of an object.

use crate::format::codec::Payload;
use crate::space::reservation::Reservation;
use cairn_model::Etag;

/// A payload whose writes have all completed. The committer flushes them before it commits the record.
#[derive(Debug)]
pub struct StagedPayload {
    pub(crate) parts: StagedParts,
}

/// The parts of a staged payload.
#[derive(Debug)]
pub(crate) struct StagedParts {
    pub(crate) size: u64,
    /// `None` if it was not computed.
    pub(crate) md5: Option<[u8; 16]>,
    pub(crate) etag: Etag,
    pub(crate) payload: Payload,
    /// Bytes of an inline payload.
    pub(crate) inline: Vec<u8>,
    pub(crate) reservation: Option<Reservation>,
    /// Failed flushes of the device when the payload began ([`crate::slice::Slice::flush_failures`]).
    pub(crate) flush_failures: u64,
}

impl StagedPayload {
    /// Returns the volumes that must be flushed before the commit. A number may occur more than once.
    pub(crate) fn volumes(&self) -> impl Iterator<Item = u32> + '_ {
        self.parts.payload.owned().map(|extent| extent.volume)
    }

    /// Returns how many flushes of the device had failed when the payload began.
    pub(crate) const fn flush_failures(&self) -> u64 {
        self.parts.flush_failures
    }

    /// Returns the size of the payload in bytes.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.parts.size
    }

    /// Returns the MD5 of the payload, if it was computed: always, unless the store makes opaque entity tags.
    #[must_use]
    pub const fn md5(&self) -> Option<[u8; 16]> {
        self.parts.md5
    }

    /// Returns the entity tag of the payload.
    #[must_use]
    pub const fn etag(&self) -> Etag {
        self.parts.etag
    }

    /// Returns whether the payload is encrypted at rest.
    #[must_use]
    pub const fn is_encrypted(&self) -> bool {
        self.parts.payload.sealed.is_some()
    }

    /// Returns the number of bytes that are stored in the record.
    pub(crate) fn inline_bytes(&self) -> usize {
        self.parts.inline.len()
    }

    pub(crate) fn into_parts(self) -> StagedParts {
        self.parts
    }
}
