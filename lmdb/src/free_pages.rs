//! The free pages of a snapshot, from LMDB's table of free pages.
//!
//! The table has a record for each transaction that freed pages: the number of the transaction, then the number of pages and
//! their numbers, 8 bytes each. All pages in it are free in its snapshot: no table of the snapshot refers to them. LMDB does
//! not use one before all readers of earlier snapshots have ended.

use crate::data_file::{DataFile, Page, PageKind, Pages};
use crate::meta_page::MetaFields;

/// LMDB's trees are lower than this.
const DEPTH_MAX: usize = 32;

/// Returns the free pages of a snapshot whose pages are pinned. `None` if the table is not what LMDB writes: then every page
/// may be in use.
pub(crate) fn free_pages(file: &DataFile, roots: &MetaFields) -> Option<Pages> {
    let mut free = Pages::of(file);
    if let Some(root) = roots.free_root() {
        add_below(file, root, roots.last_page(), DEPTH_MAX, &mut free)?;
    }
    Some(free)
}

fn add_below(file: &DataFile, number: u64, last: u64, depth: usize, free: &mut Pages) -> Option<()> {
    let page = file.page(number).filter(|_| depth > 0)?;
    match page.kind()? {
        PageKind::Branch => page
            .nodes()
            .into_iter()
            .try_for_each(|node| add_below(file, page.child(node)?.1, last, depth - 1, free)),
        PageKind::Leaf => {
            page.nodes().into_iter().try_for_each(|node| add_record(file, &page, node, last, free))
        }
    }
}

fn add_record(file: &DataFile, page: &Page, node: usize, last: u64, free: &mut Pages) -> Option<()> {
    let place = page.leaf_node(node)?.place;
    let value = file.value(place, place.length())?;
    let (count, numbers) = value.split_first_chunk::<8>()?;
    let numbers = numbers.as_chunks::<8>().0;
    let count = usize::try_from(u64::from_ne_bytes(*count)).ok()?;
    numbers.get(..count)?.iter().try_for_each(|number| {
        let number = u64::from_ne_bytes(*number);
        free.add(number);
        // The first two are the meta pages.
        (2..=last).contains(&number).then_some(())
    })
}
