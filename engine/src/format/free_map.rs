//! The free map: one bit for each unit of the volumes, in the slice's metadata. A set bit means that a record owns the unit.
//!
//! One record holds a chunk: the bits of 8192 units (32 MiB). A chunk without a record is free as a whole.
//! ```text
//! key     8 bytes     volume (u32, big-endian), number of the chunk (u32, big-endian)
//! body    1024 bytes  bit n of byte m is for unit 8192 * chunk + 8 * m + n
//! ```
//! The key is big-endian so that chunks are in the order of their units. A chunk of 1 KiB is small enough to be rewritten by
//! every transaction that touches it, and large enough that a volume of 1 TiB has only 32768 of them.
//!
//! Bits change in the transaction of the record that takes or frees the units. A change that would mark an owned unit as
//! owned, or a free one as free, is refused: the map and the records would contradict each other.

use crate::error::EngineError;
use crate::format::extent::Extent;
use cairn_lmdb::{ReadTxn, Table, WriteTxn};
use std::collections::BTreeMap;

/// Version byte of the records.
const VERSION: u8 = 1;
/// Units in a chunk.
pub(crate) const CHUNK_UNITS: u32 = 8192;
/// Bytes of a chunk's bits.
pub(crate) const CHUNK_BYTES: usize = CHUNK_UNITS as usize / 8;

pub(crate) type Bits = [u8; CHUNK_BYTES];

/// Volume and number of a chunk.
pub(crate) type ChunkPosition = (u32, u32);

/// The changes of one transaction to the free map. Each chunk is read and written once.
#[derive(Default)]
pub(crate) struct FreeMapEdit {
    chunks: BTreeMap<ChunkPosition, Box<Bits>>,
}

/// The state to which units are changed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Owned,
    Free,
}

fn key(volume: u32, chunk: u32) -> [u8; 8] {
    let mut key = [0; 8];
    key[..4].copy_from_slice(&volume.to_be_bytes());
    key[4..].copy_from_slice(&chunk.to_be_bytes());
    key
}

fn decode_key(key: &[u8]) -> Option<ChunkPosition> {
    let ([volume, chunk], []) = key.as_chunks::<4>() else { return None };
    Some((u32::from_be_bytes(*volume), u32::from_be_bytes(*chunk)))
}

fn bits_of(version: u8, body: &[u8]) -> Result<&Bits, EngineError> {
    let bits: Option<&Bits> = (version == VERSION).then_some(body).and_then(|body| body.try_into().ok());
    bits.ok_or_else(|| EngineError::Corrupt("the form of a free map record is unknown".to_owned()))
}

impl FreeMapEdit {
    /// Marks free units as owned.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`], with nothing changed, if a unit is owned already.
    pub(crate) fn mark_owned(
        &mut self,
        txn: &WriteTxn<'_>,
        table: Table,
        extents: &[Extent],
    ) -> Result<(), EngineError> {
        self.mark(txn, table, extents, Mark::Owned)
    }

    /// Marks owned units as free.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`], with nothing changed, if a unit is free already.
    pub(crate) fn mark_free(
        &mut self,
        txn: &WriteTxn<'_>,
        table: Table,
        extents: &[Extent],
    ) -> Result<(), EngineError> {
        self.mark(txn, table, extents, Mark::Free)
    }

    fn mark(
        &mut self,
        txn: &WriteTxn<'_>,
        table: Table,
        extents: &[Extent],
        to: Mark,
    ) -> Result<(), EngineError> {
        for extent in extents {
            self.each_byte(txn, table, extent, &mut |byte, mask| {
                *byte & mask == if to == Mark::Owned { 0 } else { mask }
            })?;
        }
        for extent in extents {
            self.each_byte(txn, table, extent, &mut |byte, mask| {
                *byte ^= mask;
                true
            })?;
        }
        Ok(())
    }

    /// Calls `visit` with every byte that holds bits of `extent`, and with a mask of these bits. Fails if it returns `false`.
    fn each_byte(
        &mut self,
        txn: &WriteTxn<'_>,
        table: Table,
        extent: &Extent,
        visit: &mut dyn FnMut(&mut u8, u8) -> bool,
    ) -> Result<(), EngineError> {
        let end = extent.start.saturating_add(extent.units);
        let mut unit = extent.start;
        while unit < end {
            let chunk = unit / CHUNK_UNITS;
            let bits = self.chunk(txn, table, extent.volume, chunk)?;
            let chunk_end = end.min((chunk + 1).saturating_mul(CHUNK_UNITS));
            while unit < chunk_end {
                let (byte, bit) = (unit % CHUNK_UNITS / 8, unit % 8);
                let count = (8 - bit).min(chunk_end - unit);
                let mask = (0xFF_u8 >> (8 - count)) << bit;
                if !visit(&mut bits[byte as usize], mask) {
                    let what = format!("unit {unit} of volume {} is owned or freed twice", extent.volume);
                    return Err(EngineError::Corrupt(what));
                }
                unit += count;
            }
        }
        Ok(())
    }

    fn chunk(
        &mut self,
        txn: &WriteTxn<'_>,
        table: Table,
        volume: u32,
        chunk: u32,
    ) -> Result<&mut Bits, EngineError> {
        use std::collections::btree_map::Entry;
        match self.chunks.entry((volume, chunk)) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => {
                let bits = match txn.get(table, &key(volume, chunk))? {
                    Some(record) => Box::new(*bits_of(record.version, record.body)?),
                    None => Box::new([0; CHUNK_BYTES]),
                };
                Ok(entry.insert(bits))
            }
        }
    }

    /// Writes all chunks that were read for changes. Chunks that are free as a whole are removed.
    ///
    /// # Errors
    /// Any error of the transaction, which must then be dropped.
    pub(crate) fn write(self, txn: &mut WriteTxn<'_>, table: Table) -> Result<(), EngineError> {
        for ((volume, chunk), bits) in self.chunks {
            if bits.iter().all(|byte| *byte == 0) {
                txn.remove(table, &key(volume, chunk))?;
            } else {
                txn.put(table, &key(volume, chunk), VERSION, &bits[..], &[])?;
            }
        }
        Ok(())
    }
}

/// Decodes a record of the table. Returns `None` if it is invalid.
pub(crate) fn decode_chunk<'t>(key: &[u8], version: u8, body: &'t [u8]) -> Option<(ChunkPosition, &'t Bits)> {
    let (volume, chunk) = decode_key(key)?;
    let bits = bits_of(version, body).ok()?;
    chunk.checked_add(1)?.checked_mul(CHUNK_UNITS)?;
    Some(((volume, chunk), bits))
}

/// Calls `found` with every maximal run of owned units, in order of volume and unit.
pub(crate) fn owned_runs(
    txn: &ReadTxn<'_>,
    table: Table,
    mut found: impl FnMut(Extent),
) -> Result<(), EngineError> {
    let mut run = None;
    for item in txn.scan(table, &[])? {
        let (key, record) = item?;
        let bits = bits_of(record.version, record.body)?;
        let position = decode_key(key)
            .ok_or_else(|| EngineError::Corrupt("the length of a free map key is wrong".to_owned()))?;
        runs_of_chunk(&mut run, position, bits, &mut found)?;
    }
    run.into_iter().for_each(found);
    Ok(())
}

/// Continues `run`, the last run so far, through one more chunk. Calls `found` with those that have ended.
fn runs_of_chunk(
    run: &mut Option<Extent>,
    (volume, chunk): ChunkPosition,
    bits: &Bits,
    found: &mut impl FnMut(Extent),
) -> Result<(), EngineError> {
    // The very last chunk is refused: the end of a run in it would not fit its number.
    let end = chunk.checked_add(1).and_then(|next| next.checked_mul(CHUNK_UNITS));
    let end = end.ok_or_else(|| EngineError::Corrupt("a free map chunk is beyond all volumes".to_owned()))?;
    for (byte, first) in bits.iter().zip((end - CHUNK_UNITS..).step_by(8)) {
        if *byte == 0 {
            continue;
        }
        for bit in (0..8).filter(|bit| byte & (1 << bit) != 0) {
            let unit = Extent { volume, start: first + bit, units: 1 };
            match run {
                Some(run) if run.end_address() == unit.address() => run.units += 1,
                _ => run.replace(unit).into_iter().for_each(&mut *found),
            }
        }
    }
    Ok(())
}

/// Returns the runs of a single record of the map.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn runs_of_record(
    version: u8,
    position: ChunkPosition,
    body: &[u8],
) -> Result<Vec<Extent>, EngineError> {
    let (mut run, mut runs) = (None, Vec::new());
    runs_of_chunk(&mut run, position, bits_of(version, body)?, &mut |ended| runs.push(ended))?;
    runs.extend(run);
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use super::{CHUNK_UNITS, FreeMapEdit, owned_runs};
    use crate::format::extent::Extent;
    use cairn_lmdb::{Environment, EnvironmentOptions};

    #[test]
    fn runs_continue_across_chunks_and_no_unit_is_marked_twice() {
        let folder = tempfile::tempdir().expect("a folder");
        let options = EnvironmentOptions { map_bytes: 1 << 30, tables_max: 2 };
        let env = Environment::open(folder.path(), options).expect("opens");
        let table = env.table("free_map").expect("a table");
        let wide = Extent { volume: 2, start: CHUNK_UNITS - 3, units: 10 };
        let lone = Extent { volume: 0, start: 7, units: 1 };
        let mut txn = env.write().expect("writes");
        let mut edit = FreeMapEdit::default();
        edit.mark_owned(&txn, table, &[wide, lone]).expect("free before");
        let inside = Extent { volume: 2, start: CHUNK_UNITS + 1, units: 1 };
        assert!(edit.mark_owned(&txn, table, &[inside]).is_err());
        let beside = Extent { volume: 2, start: CHUNK_UNITS + 7, units: 1 };
        assert!(edit.mark_free(&txn, table, &[beside]).is_err());
        edit.write(&mut txn, table).expect("writes");
        txn.commit().expect("commits");
        let mut runs = Vec::new();
        owned_runs(&env.read().expect("reads"), table, |run| runs.push(run)).expect("reads");
        assert_eq!(runs, [lone, wide]);

        let mut txn = env.write().expect("writes");
        let mut edit = FreeMapEdit::default();
        edit.mark_free(&txn, table, &[wide, lone]).expect("owned before");
        edit.write(&mut txn, table).expect("writes");
        txn.commit().expect("commits");
        assert!(env.read().expect("reads").first_at_or_after(table, &[0]).expect("reads").is_none());
    }
}
