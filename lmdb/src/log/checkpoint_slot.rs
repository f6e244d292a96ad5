//! The checkpoint of an environment: a durable snapshot, and where the log goes on from it.
//!
//! It is stored in both meta pages of the data file, after LMDB's fields, which LMDB neither reads nor writes there. So it
//! belongs to its data file, also when a compaction gives the name of the file to another one. Both copies are the same, except
//! while one of them is written. A copy takes one sector, and the one with the greater number counts.
//!
//! ```text
//! offset  size  content (integers little-endian), from byte 2048 of the page
//! 0       8     "CAIRNCKP"
//! 8       4     format version, 1
//! 12      4     1 while the log counts; 0 after it was given up: then LMDB's own meta pages count
//! 16      8     number of the checkpoint
//! 24      16    id of the log
//! 40      8     sequence of the next record in the log
//! 48      8     offset of the next record in the log, in bytes
//! 56      136   LMDB's meta fields of the snapshot
//! 192     8     CRC-64/NVME of bytes 0 to 191
//! 200     312   zero
//! ```

use crate::log_position::{LogId, Position};
use crate::meta_page::{META_FIELD_BYTES, MetaFields};
use crc_fast::{CrcAlgorithm, checksum};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

const MAGIC: &[u8; 8] = b"CAIRNCKP";
const VERSION: u32 = 1;
/// The offset of a copy in its page. It does not share a sector with LMDB's fields.
pub(crate) const SLOT_AT: u64 = 2048;
pub(crate) const SLOT_BYTES: usize = 512;
const FIELDS_AT: usize = 56;
const CHECK_AT: usize = FIELDS_AT + META_FIELD_BYTES;
/// The smallest page that has room for both.
pub(crate) const PAGE_BYTES_MIN: u64 = SLOT_AT + SLOT_BYTES as u64;

/// A checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Checkpoint {
    /// Whether the log counts. If not, the rest has no meaning.
    pub(crate) is_active: bool,
    /// Counts the checkpoints of an environment.
    pub(crate) number: u64,
    pub(crate) log: LogId,
    /// The first record whose changes the snapshot does not contain.
    pub(crate) next: Position,
    pub(crate) meta: MetaFields,
}

impl Checkpoint {
    fn encode(&self) -> [u8; SLOT_BYTES] {
        let mut slot = [0; SLOT_BYTES];
        slot[..8].copy_from_slice(MAGIC);
        slot[8..12].copy_from_slice(&VERSION.to_le_bytes());
        slot[12..16].copy_from_slice(&u32::from(self.is_active).to_le_bytes());
        slot[16..24].copy_from_slice(&self.number.to_le_bytes());
        slot[24..40].copy_from_slice(&self.log.0);
        slot[40..48].copy_from_slice(&self.next.sequence.to_le_bytes());
        slot[48..56].copy_from_slice(&self.next.offset.to_le_bytes());
        slot[FIELDS_AT..CHECK_AT].copy_from_slice(&self.meta.0);
        let check = checksum(CrcAlgorithm::Crc64Nvme, &slot[..CHECK_AT]);
        slot[CHECK_AT..CHECK_AT + 8].copy_from_slice(&check.to_le_bytes());
        slot
    }

    /// Decodes a copy. Returns `None` if the slot is empty or torn.
    pub(crate) fn decode(slot: &[u8; SLOT_BYTES]) -> Option<Self> {
        let number = |at: usize| slot[at..].first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes));
        let is_valid = slot.starts_with(MAGIC)
            && slot[8..12] == VERSION.to_le_bytes()
            && number(CHECK_AT)? == checksum(CrcAlgorithm::Crc64Nvme, &slot[..CHECK_AT]);
        if !is_valid {
            return None;
        }
        Some(Self {
            is_active: slot[12] == 1,
            number: number(16)?,
            log: LogId(*slot[24..].first_chunk()?),
            next: Position { sequence: number(40)?, offset: number(48)? },
            meta: MetaFields(*slot[FIELDS_AT..].first_chunk()?),
        })
    }

    /// Reads the checkpoint of a data file. `None` if it has none.
    pub(crate) fn read(file: &File) -> io::Result<Option<Self>> {
        let page_bytes = MetaFields::page_bytes_of(file)?;
        if page_bytes < PAGE_BYTES_MIN {
            return Ok(None);
        }
        let mut copies = [None; 2];
        for (page, copy) in (0..).zip(&mut copies) {
            let mut slot = [0; SLOT_BYTES];
            file.read_exact_at(&mut slot, page * page_bytes + SLOT_AT)?;
            *copy = Self::decode(&slot);
        }
        Ok(copies.into_iter().flatten().max_by_key(|checkpoint: &Self| checkpoint.number))
    }

    /// Writes one of the two copies. The caller flushes the file.
    pub(crate) fn write(&self, file: &File, page: u64) -> io::Result<()> {
        write_slot(file, page, self.meta.page_bytes(), &self.encode())
    }

    /// Gives the log up, durably. The file must be flushed, and its newest meta page must be that of this checkpoint: a power
    /// cut may leave one copy with and one without the log.
    pub(crate) fn give_up(&self, file: &File) -> io::Result<()> {
        for is_active in [true, false] {
            let number = self.number + u64::from(!is_active);
            let copy = Self { is_active, number, ..*self };
            [0, 1].into_iter().try_for_each(|page| copy.write(file, page))?;
            file.sync_data()?;
        }
        Ok(())
    }
}

fn write_slot(file: &File, page: u64, page_bytes: u64, slot: &[u8; SLOT_BYTES]) -> io::Result<()> {
    assert!(page < 2 && page_bytes >= PAGE_BYTES_MIN, "a copy is within a meta page");
    file.write_all_at(slot, page * page_bytes + SLOT_AT)
}

#[cfg(test)]
mod tests {
    use super::Checkpoint;
    use crate::log_position::{LogId, Position};
    use crate::meta_page::MetaFields;

    #[test]
    fn a_copy_with_any_flipped_bit_is_refused() {
        let next = Position { sequence: 5, offset: 8192 };
        let meta = MetaFields([7; 136]);
        let checkpoint = Checkpoint { is_active: false, number: 3, log: LogId([9; 16]), next, meta };
        let slot = checkpoint.encode();
        assert_eq!(Checkpoint::decode(&slot), Some(checkpoint));
        for bit in 0..200 * 8 {
            let mut torn = slot;
            torn[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Checkpoint::decode(&torn), None, "bit {bit}");
        }
        assert_eq!(Checkpoint::decode(&[0; 512]), None);
    }

    /// Golden bytes: a change here changes the on-disk format.
    #[test]
    fn the_format_of_a_checkpoint_does_not_change() {
        let next = Position { sequence: 2, offset: 4096 };
        let meta = MetaFields([4; 136]);
        let checkpoint = Checkpoint { is_active: true, number: 1, log: LogId([3; 16]), next, meta };
        let slot = checkpoint.encode();
        assert_eq!(&slot[..16], b"CAIRNCKP\x01\0\0\0\x01\0\0\0");
        assert_eq!(
            &slot[16..56],
            [&[1, 0, 0, 0, 0, 0, 0, 0][..], &[3; 16], &[2, 0, 0, 0, 0, 0, 0, 0], &[0, 16, 0, 0, 0, 0, 0, 0]]
                .concat()
        );
        assert_eq!(&slot[56..192], [4; 136]);
        assert_eq!(slot[200..], [0; 312]);
    }
}
