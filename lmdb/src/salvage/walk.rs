//! Walks a damaged tree in the order of its keys.

use super::ranges::{LostRange, LostRanges};
use crate::data_file::{DataFile, LeafNode, Page, PageKind, Pages, ValuePlace};

/// LMDB's trees are lower than this.
const DEPTH_MAX: usize = 32;

/// A walk through the tree of one table.
pub(super) struct Walk<'w> {
    pub(super) file: &'w DataFile,
    /// The pages of whole nodes: nothing else is in them.
    pub(super) used: &'w mut Pages,
    /// Pages that should belong to the tree, but cannot be followed. Records may still be in them.
    pub(super) broken: &'w mut Vec<u64>,
    pub(super) lost: &'w mut LostRanges,
    /// Gets key and place of each whole record, in order, and keys of records with a wrong check.
    pub(super) found: &'w mut dyn FnMut(&[u8], Option<ValuePlace>),
    /// Without it, only the depth is limited.
    seen: Option<Pages>,
    /// Only keys with this prefix are of interest.
    only: Option<&'w [u8]>,
}

/// The keys that a page may have.
struct Within {
    from: Vec<u8>,
    to: Option<Vec<u8>>,
}

impl Within {
    fn lost(&self) -> LostRange {
        LostRange { from: self.from.clone(), to: self.to.clone() }
    }

    fn may_have(&self, prefix: &[u8]) -> bool {
        let (begins_before, ends_after) = (
            *self.from <= *prefix || self.from.starts_with(prefix),
            self.to.as_ref().is_none_or(|to| prefix < &**to),
        );
        begins_before && ends_after
    }

    fn allows(&self, key: &[u8]) -> bool {
        *self.from <= *key && self.to.as_ref().is_none_or(|to| key < &**to)
    }
}

impl<'w> Walk<'w> {
    pub(super) fn new(
        file: &'w DataFile,
        used: &'w mut Pages,
        broken: &'w mut Vec<u64>,
        lost: &'w mut LostRanges,
        found: &'w mut dyn FnMut(&[u8], Option<ValuePlace>),
    ) -> Self {
        Self { seen: Some(Pages::of(file)), file, used, broken, lost, found, only: None }
    }

    /// Leaves out what cannot have keys with this prefix.
    pub(super) fn only(self, prefix: &'w [u8]) -> Self {
        Self { only: Some(prefix), seen: None, ..self }
    }

    /// Walks the tree below a page.
    pub(super) fn start(&mut self, root: u64) {
        self.below(root, &Within { from: Vec::new(), to: None }, DEPTH_MAX);
    }

    fn has_seen(&self, page: u64) -> bool {
        self.seen.as_ref().is_some_and(|seen| seen.has(page))
    }

    fn below(&mut self, number: u64, within: &Within, depth: usize) {
        // A damaged page number may lead back to a page above.
        let page = self.file.page(number).filter(|_| depth > 0 && !self.has_seen(number));
        let known = page.and_then(|page| page.kind().map(|kind| (page, kind)));
        let Some((page, kind)) = known else {
            self.broken.push(number);
            self.lost.push(within.lost());
            return;
        };
        if let Some(seen) = &mut self.seen {
            seen.add(number);
        }
        match kind {
            PageKind::Branch => self.children(&page, within, depth),
            PageKind::Leaf => self.records(&page, within),
        }
    }

    fn children(&mut self, page: &Page, within: &Within, depth: usize) {
        // The first key of a branch is empty: it stands for everything before the second.
        let mut children: Vec<(Vec<u8>, Option<u64>)> = Vec::new();
        for (at, node) in page.nodes().into_iter().enumerate() {
            let first = within.from.clone();
            match page.child(node) {
                Some((_, child)) if at == 0 => children.push((first, Some(child))),
                Some((key, child))
                    if within.allows(key) && children.last().is_none_or(|(last, _)| **last < *key) =>
                {
                    children.push((key.to_vec(), Some(child)));
                }
                // This key or the one before it is wrong, so the keys of both and of the child before them are lost.
                _ => {
                    children.truncate(children.len().saturating_sub(1).max(1));
                    match children.last_mut() {
                        Some((_, child)) => *child = None,
                        None => children.push((first, None)),
                    }
                }
            }
        }
        let keys = page.nodes().into_iter().skip(1).filter_map(|node| page.child(node));
        if self.is_misplaced(page.number, within, keys.map(|(key, _)| key)) || children.is_empty() {
            self.lost.push(within.lost());
            return;
        }
        self.used.add(page.number);
        for at in 0..children.len() {
            let to = children.get(at + 1).map(|(next, _)| next.clone()).or_else(|| within.to.clone());
            let (from, child) = &children[at];
            let within = Within { from: from.clone(), to };
            if self.only.is_some_and(|prefix| !within.may_have(prefix)) {
                continue;
            }
            match child {
                Some(child) => self.below(*child, &within, depth - 1),
                None => self.lost.push(within.lost()),
            }
        }
    }

    /// Returns whether a page has keys that its parent does not say. Then a key of the parent is wrong, or the page is another
    /// one than it was. The range of what may be lost is that of both.
    fn is_misplaced<'k>(&mut self, page: u64, within: &Within, keys: impl Iterator<Item = &'k [u8]>) -> bool {
        let mut is_misplaced = false;
        for key in keys.filter(|key| !within.allows(key)) {
            is_misplaced = true;
            let from = within.from.as_slice().min(key).to_vec();
            let to = within.to.as_ref().map(|to| to.clone().max([key, &[0]].concat()));
            self.lost.push(LostRange { from, to });
        }
        if is_misplaced {
            self.broken.push(page);
        }
        is_misplaced
    }

    fn records(&mut self, page: &Page, within: &Within) {
        let nodes = page.nodes().into_iter().filter_map(|node| page.leaf_node(node));
        let outside = nodes.filter(|node| !within.allows(node.key));
        let is_whole =
            |node: &LeafNode<'_>| node.is_table || self.file.checked(node.key, node.place).is_some();
        let outside: Vec<_> = outside.filter(is_whole).map(|node| node.key).collect();
        if self.is_misplaced(page.number, within, outside.into_iter()) {
            self.lost.push(within.lost());
            return;
        }
        // Keys after `from` are lost until a whole record ends the gap.
        let mut from = within.from.clone();
        let (mut has_gap, mut had_gap) = (false, false);
        for node in page.nodes() {
            let in_order = |key: &[u8]| within.allows(key) && *from <= *key;
            let node = page.leaf_node(node).filter(|node| in_order(node.key));
            let Some(node) = node else {
                (has_gap, had_gap) = (true, true);
                continue;
            };
            if !node.is_table && self.file.checked(node.key, node.place).is_none() {
                (has_gap, had_gap) = (true, true);
                (self.found)(node.key, None);
                continue;
            }
            if has_gap {
                self.lost.push(LostRange { from: from.clone(), to: Some(node.key.to_vec()) });
                has_gap = false;
            }
            if let Some((first, count)) = self.file.pages_of(node.place) {
                (first..first.saturating_add(count)).for_each(|page| self.used.add(page));
            }
            (self.found)(node.key, Some(node.place));
            from = [node.key, &[0]].concat();
        }
        if has_gap {
            self.lost.push(LostRange { from, to: within.to.clone() });
        }
        if had_gap {
            self.broken.push(page.number);
        } else {
            self.used.add(page.number);
        }
    }
}
