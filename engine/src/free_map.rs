//! The free map: which units of the volumes records own, as bits in the slice's metadata.
//!
//! One record holds the bits of 8192 units (32 MiB): key `volume (u32, big-endian) · chunk (u32, big-endian)`, body
//! 1024 bytes, bit n of byte m for unit 8192·chunk + 8·m + n; 1 means owned. A chunk without a record is free. Bits
//! change in the transaction of the record that takes or gives up the space, and a change that changes nothing (a unit
//! taken twice, or freed twice) stops that change: the map and the records would not agree any more.

use crate::error::EngineError;
use crate::extent::Extent;
use cairn_lmdb::{ReadTxn, Table, WriteTxn};
use std::collections::BTreeMap;

/// Version byte of the records.
const VERSION: u8 = 1;
/// Units in a chunk.
pub(crate) const CHUNK_UNITS: u32 = 8192;
/// Bytes of a chunk's bits.
pub(crate) const CHUNK_BYTES: usize = CHUNK_UNITS as usize / 8;

pub(crate) type Bits = [u8; CHUNK_BYTES];

/// Changes to the free map that one transaction collects; each chunk is read and written once.
#[derive(Default)]
pub(crate) struct FreeMapEdit {
    chunks: BTreeMap<(u32, u32), Box<Bits>>,
}

fn key(volume: u32, chunk: u32) -> [u8; 8] {
    let mut key = [0; 8];
    key[..4].copy_from_slice(&volume.to_be_bytes());
    key[4..].copy_from_slice(&chunk.to_be_bytes());
    key
}

fn bits_of(version: u8, body: &[u8]) -> Result<&Bits, EngineError> {
    let bits: Option<&Bits> = (version == VERSION).then_some(body).and_then(|body| body.try_into().ok());
    bits.ok_or_else(|| EngineError::Corrupt("a free map record of an unknown form".to_owned()))
}

impl FreeMapEdit {
    /// Checks that all units of `extents` are in the state opposite to `owned`, then sets them to it.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`], with nothing changed, when a unit has the state already.
    pub(crate) fn mark(
        &mut self,
        txn: &WriteTxn<'_>,
        table: Table,
        extents: &[Extent],
        owned: bool,
    ) -> Result<(), EngineError> {
        for extent in extents {
            self.each_byte(txn, table, extent, &mut |byte, mask| {
                *byte & mask == if owned { 0 } else { mask }
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

    /// Visits every byte that holds bits of `extent`, with a mask of these bits.
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
                let Some(byte) = bits.get_mut(byte as usize) else { break };
                if !visit(byte, mask) {
                    let what = format!("unit {unit} of volume {} is taken or free twice", extent.volume);
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

    /// Writes all changed chunks.
    ///
    /// # Errors
    /// What the metadata store answers; the transaction must then be dropped.
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

/// Volume, chunk and bits of a record of the table; `None` when it is none.
pub(crate) fn decode_chunk<'t>(key: &[u8], version: u8, body: &'t [u8]) -> Option<((u32, u32), &'t Bits)> {
    let ([volume, chunk], []) = key.as_chunks::<4>() else { return None };
    let (volume, chunk) = (u32::from_be_bytes(*volume), u32::from_be_bytes(*chunk));
    let bits = bits_of(version, body).ok()?;
    chunk.checked_add(1)?.checked_mul(CHUNK_UNITS)?;
    Some(((volume, chunk), bits))
}

/// Calls `found` with every maximal run of owned units of every volume, in order: `(volume, first unit, units)`.
pub(crate) fn owned_runs(
    txn: &ReadTxn<'_>,
    table: Table,
    mut found: impl FnMut(u32, u32, u32),
) -> Result<(), EngineError> {
    let mut run: Option<(u32, u32, u32)> = None;
    for item in txn.scan(table, &[])? {
        let (key, record) = item?;
        let bits = bits_of(record.version, record.body)?;
        let (volume, chunk) = match key.as_chunks::<4>() {
            ([volume, chunk], []) => (u32::from_be_bytes(*volume), u32::from_be_bytes(*chunk)),
            _ => return Err(EngineError::Corrupt("a free map key of a wrong length".to_owned())),
        };
        runs_of_chunk(&mut run, volume, chunk, bits, &mut found)?;
    }
    if let Some((volume, start, units)) = run {
        found(volume, start, units);
    }
    Ok(())
}

/// Goes on with the run so far through one more chunk; gives those that have ended to `found`.
fn runs_of_chunk(
    run: &mut Option<(u32, u32, u32)>,
    volume: u32,
    chunk: u32,
    bits: &Bits,
    found: &mut impl FnMut(u32, u32, u32),
) -> Result<(), EngineError> {
    // The last chunk is left out: with it the end of a run would not fit its number.
    let first =
        chunk.checked_add(1).and_then(|next| next.checked_mul(CHUNK_UNITS)).map(|end| end - CHUNK_UNITS);
    let first =
        first.ok_or_else(|| EngineError::Corrupt("a free map chunk behind all volumes".to_owned()))?;
    for (byte, unit) in bits.iter().zip((first..).step_by(8)) {
        if *byte == 0 {
            continue;
        }
        for bit in (0..8).filter(|bit| byte & (1 << bit) != 0) {
            match run {
                Some((v, start, units)) if *v == volume && *start + *units == unit + bit => *units += 1,
                _ => {
                    if let Some((v, start, units)) = run.replace((volume, unit + bit, 1)) {
                        found(v, start, units);
                    }
                }
            }
        }
    }
    Ok(())
}

/// The runs of a single record of the map.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn runs_of_record(
    version: u8,
    volume: u32,
    chunk: u32,
    body: &[u8],
) -> Result<Vec<Extent>, EngineError> {
    let (mut run, mut runs) = (None, Vec::new());
    let mut found = |volume, start, units| runs.push(Extent { volume, start, units });
    runs_of_chunk(&mut run, volume, chunk, bits_of(version, body)?, &mut found)?;
    if let Some((volume, start, units)) = run {
        found(volume, start, units);
    }
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use super::{CHUNK_UNITS, FreeMapEdit, owned_runs};
    use crate::extent::Extent;
    use cairn_lmdb::{Environment, EnvironmentOptions};

    #[test]
    fn runs_survive_across_chunks_and_nothing_is_taken_twice() {
        let folder = tempfile::tempdir().expect("a folder");
        let options = EnvironmentOptions { map_bytes: 1 << 30, tables_max: 2 };
        let env = Environment::open(folder.path(), options).expect("opens");
        let table = env.table("free_map").expect("a table");
        let wide = Extent { volume: 2, start: CHUNK_UNITS - 3, units: 10 };
        let lone = Extent { volume: 0, start: 7, units: 1 };
        let mut txn = env.write().expect("writes");
        let mut edit = FreeMapEdit::default();
        edit.mark(&txn, table, &[wide, lone], true).expect("free before");
        let inside = Extent { volume: 2, start: CHUNK_UNITS + 1, units: 1 };
        assert!(edit.mark(&txn, table, &[inside], true).is_err());
        let beside = Extent { volume: 2, start: CHUNK_UNITS + 7, units: 1 };
        assert!(edit.mark(&txn, table, &[beside], false).is_err());
        edit.write(&mut txn, table).expect("writes");
        txn.commit().expect("commits");
        let mut runs = Vec::new();
        owned_runs(&env.read().expect("reads"), table, |v, s, n| runs.push((v, s, n))).expect("reads");
        assert_eq!(runs, [(0, 7, 1), (2, CHUNK_UNITS - 3, 10)]);

        let mut txn = env.write().expect("writes");
        let mut edit = FreeMapEdit::default();
        edit.mark(&txn, table, &[wide, lone], false).expect("owned before");
        edit.write(&mut txn, table).expect("writes");
        txn.commit().expect("commits");
        assert!(env.read().expect("reads").first_at_or_after(table, &[0]).expect("reads").is_none());
    }
}
