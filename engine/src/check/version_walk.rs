//! Walks over versions of a bucket or store in pages.
//!
//! Each page has its own snapshot.
//!
//! A walk holds no snapshot between pages. It tolerates keys that are out of order because of a flipped bit.

use crate::api::engine::Engine;
use crate::error::EngineError;
use crate::format::scrub_record::VerifyPosition;
use crate::limits::WALK_PAGE_RECORDS;
use crate::slice::Slice;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

/// A version that a walk found.
pub(crate) struct WalkedVersion {
    pub(crate) slice: Arc<Slice>,
    pub(crate) encoded: Vec<u8>,
    /// Whether a lookup finds the key. It does not if keys are out of order because of a flipped bit.
    pub(crate) is_found: bool,
}

/// Yields the encoded keys of all versions that begin with a prefix, slice by slice.
pub(crate) struct VersionWalk {
    engine: Rc<Engine>,
    prefix: Vec<u8>,
    position: VerifyPosition,
    page: VecDeque<PageEntry>,
    /// Whether the position has moved since the last page was read. Otherwise there are no more keys.
    moved: bool,
}

impl VersionWalk {
    pub(crate) const fn new(engine: Rc<Engine>, prefix: Vec<u8>, from: VerifyPosition) -> Self {
        Self { engine, prefix, position: from, page: VecDeque::new(), moved: true }
    }

    /// The position after the last version that was returned.
    pub(crate) const fn position(&self) -> &VerifyPosition {
        &self.position
    }

    /// Returns the next version; `None` after the last slice.
    pub(crate) fn next(&mut self) -> Result<Option<WalkedVersion>, EngineError> {
        loop {
            let slices = &self.engine.store().slices;
            let Some(slice) = slices.get(usize::from(self.position.slice)) else { return Ok(None) };
            if let Some(PageEntry { encoded, is_found }) = self.page.pop_front() {
                // A damaged key that is out of order must move the position neither back nor past other keys.
                if encoded > self.position.after
                    && self.page.front().is_none_or(|next| encoded < next.encoded)
                {
                    self.position.after.clone_from(&encoded);
                    self.moved = true;
                }
                return Ok(Some(WalkedVersion { slice: Arc::clone(slice), encoded, is_found }));
            }
            if std::mem::take(&mut self.moved) {
                self.page = next_keys(slice, &self.prefix, &self.position.after)?;
            }
            if self.page.is_empty() {
                self.position = VerifyPosition { slice: self.position.slice + 1, after: Vec::new() };
                self.moved = true;
            }
        }
    }
}

/// An entry of a page; see [`WalkedVersion`].
struct PageEntry {
    encoded: Vec<u8>,
    is_found: bool,
}

/// Reads the next keys of a slice after `after` that begin with `prefix`.
///
/// A flipped bit in a key must not lead the walk past other keys. Therefore the last returned key is in order with its
/// neighbours, and a single key without the prefix among keys with it is returned too.
fn next_keys(slice: &Slice, prefix: &[u8], after: &[u8]) -> Result<VecDeque<PageEntry>, EngineError> {
    // The smallest key that is greater than `after`.
    let successor = [after, &[0][..]].concat();
    let from = if after.is_empty() { prefix } else { successor.as_slice() };
    let txn = slice.environment.read()?;
    let mut page = VecDeque::new();
    let mut stray = None;
    for key in txn.keys(slice.tables.objects, from)?.take(WALK_PAGE_RECORDS + 1) {
        let key = key?.to_vec();
        if key.starts_with(prefix) {
            page.extend(stray.take());
            page.push_back(key);
        } else if stray.replace(key).is_some() {
            break;
        }
    }
    if page.len() > WALK_PAGE_RECORDS {
        trim_to_order(&mut page);
    }
    // Looked up in the same snapshot: a version that was removed since is not damage.
    let is_found = |key: &[u8]| !matches!(txn.get(slice.tables.objects, key), Ok(None));
    Ok(page.into_iter().map(|encoded| PageEntry { is_found: is_found(&encoded), encoded }).collect())
}

/// Removes keys from the end until the last one is in order with its neighbours. At least one key is left.
fn trim_to_order(page: &mut VecDeque<Vec<u8>>) {
    let mut following = page.pop_back();
    while let (Some(last), Some(before)) = (page.back(), page.iter().rev().nth(1)) {
        if before < last && following.as_ref().is_none_or(|following| last < following) {
            return;
        }
        following = page.pop_back();
    }
}

#[cfg(test)]
mod tests {
    use super::trim_to_order;

    #[test]
    fn a_page_does_not_end_with_a_key_that_is_out_of_order() {
        let ended = |keys: &[u8]| {
            let mut page = keys.iter().map(|key| vec![*key]).collect();
            trim_to_order(&mut page);
            page.iter().map(|key| key[0]).collect::<Vec<_>>()
        };
        assert_eq!(ended(&[1, 2, 3, 4]), [1, 2, 3], "the one ahead is for the next page");
        assert_eq!(ended(&[1, 2, 3, 200, 5]), [1, 2, 3], "too large: what follows would be passed over");
        assert_eq!(ended(&[1, 2, 3, 0, 5]), [1, 2], "too small: the walk would go back");
        assert_eq!(ended(&[9, 8, 7]), [9]);
    }
}
