//! Block checks: CRC-64/NVME for each 64 KiB block, and the table pages that hold many of them.
//!
//! A payload of up to 16 MiB has its checks in its record. A larger one has them in table pages of one unit (4096 bytes)
//! that lie in extents of their own:
//! ```text
//! offset  size   what
//! 0       4088   up to 511 checks (u64, little-endian) of blocks 511·p, 511·p+1, …; unused ones are zero
//! 4088    8      CRC-64/NVME over payload id, page number p (u64, little-endian) and the first 4088 bytes
//! ```
//! A page names its payload and its place through its check, so a page that was lost, torn or left over from another
//! payload is found, and a ranged read of a huge object reads one page, not the whole table.

use crate::extent::Extent;
use crate::limits::UNIT_BYTES;
use crate::record::PayloadId;
use crc_fast::{CrcAlgorithm, Digest};

/// Checks in a table page.
pub(crate) const CHECKS_PER_PAGE: usize = 511;
const PAGE_BYTES: usize = 4096;
const _: () = assert!(PAGE_BYTES as u64 == UNIT_BYTES && CHECKS_PER_PAGE * 8 + 8 == PAGE_BYTES);

/// CRC-64/NVME of `bytes`.
#[must_use]
pub fn block_check(bytes: &[u8]) -> u64 {
    crc_fast::checksum(CrcAlgorithm::Crc64Nvme, bytes)
}

fn page_check(id: PayloadId, page: u64, checks: &[u8]) -> u64 {
    let mut digest = Digest::new(CrcAlgorithm::Crc64Nvme);
    digest.update(&id.0);
    digest.update(&page.to_le_bytes());
    digest.update(checks);
    digest.finalize()
}

/// Pages that the checks of `blocks` blocks take.
pub(crate) const fn table_pages(blocks: u64) -> u64 {
    blocks.div_ceil(CHECKS_PER_PAGE as u64)
}

/// Fills `out`, whole pages, with the table of `checks`.
pub(crate) fn write_table(id: PayloadId, checks: &[u64], out: &mut [u8]) {
    out.fill(0);
    for ((number, page), checks) in
        (0u64..).zip(out.chunks_exact_mut(PAGE_BYTES)).zip(checks.chunks(CHECKS_PER_PAGE))
    {
        for (slot, check) in page.chunks_exact_mut(8).zip(checks) {
            slot.copy_from_slice(&check.to_le_bytes());
        }
        let (body, tail) = page.split_at_mut(PAGE_BYTES - 8);
        tail.copy_from_slice(&page_check(id, number, body).to_le_bytes());
    }
}

/// The checks of table page `number`; `None` when the page is not what was written.
pub(crate) fn read_table_page(id: PayloadId, number: u64, page: &[u8]) -> Option<Vec<u64>> {
    let (body, tail) = page.split_last_chunk::<8>()?;
    if body.len() != PAGE_BYTES - 8 || u64::from_le_bytes(*tail) != page_check(id, number, body) {
        return None;
    }
    Some(body.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect())
}

/// Where unit number `unit` of what lies in `extents` is: volume and byte offset.
pub(crate) fn locate(extents: &[Extent], unit: u64) -> Option<(u32, u64)> {
    let mut before = 0u64;
    for extent in extents {
        let units = u64::from(extent.units);
        if unit < before + units {
            return Some((extent.volume, extent.offset() + (unit - before) * UNIT_BYTES));
        }
        before += units;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{locate, read_table_page, table_pages, write_table};
    use crate::extent::Extent;
    use crate::record::PayloadId;

    #[test]
    fn a_page_of_another_place_or_payload_is_not_taken() {
        let checks: Vec<u64> = (0..1000u64).map(|n| n * 77).collect();
        assert_eq!(table_pages(1000), 2);
        let mut table = vec![0u8; 8192];
        write_table(PayloadId([1; 16]), &checks, &mut table);
        let (first, second) = table.split_at(4096);
        assert_eq!(read_table_page(PayloadId([1; 16]), 0, first).expect("whole"), checks[..511]);
        assert_eq!(read_table_page(PayloadId([1; 16]), 1, second).expect("whole")[..489], checks[511..]);
        assert!(read_table_page(PayloadId([1; 16]), 1, first).is_none());
        assert!(read_table_page(PayloadId([2; 16]), 0, first).is_none());
        for bit in (0..4096 * 8).step_by(97) {
            let mut bad = first.to_vec();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(read_table_page(PayloadId([1; 16]), 0, &bad).is_none());
        }
    }

    #[test]
    fn units_are_found_across_extents() {
        let extents = [Extent { volume: 0, start: 10, units: 2 }, Extent { volume: 3, start: 1, units: 1 }];
        assert_eq!(locate(&extents, 1), Some((0, 11 * 4096)));
        assert_eq!(locate(&extents, 2), Some((3, 4096)));
        assert_eq!(locate(&extents, 3), None);
    }
}
