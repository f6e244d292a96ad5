//! Reads what can be read of a damaged environment. Nothing is written, mapped or locked.
//!
//! LMDB is not asked: it takes a page for what its parent says, and would end the process with a signal. The trees are walked
//! from the roots of the checkpoint, or of the newer meta page. Each page must have its own number, nodes without gaps, and
//! keys between those of its parent; each record must have the right check. Where that fails, the keys in between are a
//! [`LostRange`]. If a table has such ranges, all pages of the file that no tree uses are searched for records with keys in
//! them: damaged pages, and earlier copies of pages, which LMDB leaves behind. The changes in the commit log count more than
//! both.

mod log;
mod ranges;
#[cfg(test)]
mod tests;
mod walk;

use crate::data_file::{DataFile, Page, PageKind, Pages, ValuePlace, record_of};
use crate::generation::DATA_FILE;
use crate::log::checkpoint_slot::{Checkpoint, SLOT_AT, SLOT_BYTES};
use crate::meta_page::{META_FIELD_BYTES, MetaFields};
use crate::record::Record;
use crate::table::TOTALS_TABLE;
use crate::totals::Totals;
use log::{Changes, LoggedTables};
pub use ranges::{LostRange, LostRanges};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use walk::Walk;

/// The page sizes that LMDB may have chosen. The first is that of almost every host.
const PAGE_BYTES: [u64; 5] = [4096, 8192, 16_384, 32_768, 65_536];
/// The offset of the fields in a meta page.
const FIELDS_AT: u64 = 16;

/// A damaged environment.
pub struct SalvagedEnvironment {
    file: Option<DataFile>,
    roots: HashMap<String, Option<u64>>,
    /// Whether tables may exist that are not among the roots, or whose roots may be old.
    roots_are_lost: bool,
    logged: LoggedTables,
    faults: Vec<String>,
    used: Pages,
    broken: Vec<u64>,
}

/// A record that was found.
pub struct Salvaged<'s> {
    /// The key.
    pub key: &'s [u8],
    /// The record without its tail.
    pub record: Record<'s>,
    /// Whether it was found by a search: it may have been removed or changed since.
    pub is_searched: bool,
    source: Source<'s>,
}

enum Source<'s> {
    File(&'s DataFile, ValuePlace),
    Log(&'s [u8]),
}

impl Salvaged<'_> {
    /// Reads the tail, at most `length` bytes. `None` if it cannot be read.
    #[must_use]
    pub fn tail(&self, length: usize) -> Option<Vec<u8>> {
        let begin = crate::record::RECORD_HEAD_BYTES + self.record.body.len();
        let end = begin.checked_add(length)?;
        match &self.source {
            Source::Log(value) => value.get(begin..end).map(<[u8]>::to_vec),
            Source::File(file, place) if place.length() >= end => {
                file.value(*place, end)?.get(begin..).map(<[u8]>::to_vec)
            }
            Source::File(..) => None,
        }
    }
}

/// A table of a damaged environment.
pub struct SalvagedTable {
    name: String,
    root: Option<u64>,
    /// The records that a search has found.
    searched: BTreeMap<Vec<u8>, ValuePlace>,
    /// Ranges whose records may be lost, except for those that were found.
    pub lost: LostRanges,
    /// Keys of records with a wrong check, as they are stored.
    pub damaged: Vec<Vec<u8>>,
}

impl SalvagedEnvironment {
    /// Reads the roots and the commit log of the environment in a folder.
    #[must_use]
    pub fn open(folder: &Path) -> Self {
        let mut faults = Vec::new();
        let opened = File::open(folder.join(DATA_FILE)).and_then(|file| {
            let roots = Roots::read(&file);
            Ok((DataFile::new(file, roots.page_bytes)?, roots))
        });
        let (file, found) = match opened {
            Ok((file, roots)) => (Some(file), roots),
            Err(error) => {
                faults.push(format!("{DATA_FILE} cannot be read: {error}"));
                (None, Roots::default())
            }
        };
        if file.is_some() && found.is_doubtful {
            faults.push("the roots in the meta pages are damaged".to_owned());
        }
        let logged = log::read(folder, found.checkpoint.as_ref());
        faults.extend(logged.faults.iter().cloned());
        let used = file.as_ref().map_or_else(Pages::none, Pages::of);
        let mut environment = Self {
            file,
            roots: HashMap::new(),
            roots_are_lost: found.is_doubtful,
            logged,
            faults,
            used,
            broken: Vec::new(),
        };
        environment.find_tables(found.main);
        environment.compare_totals();
        environment
    }

    /// Returns what is wrong with the environment as a whole.
    #[must_use]
    pub fn faults(&self) -> &[String] {
        &self.faults
    }

    fn changes(&self, table: &str) -> Option<&Changes> {
        self.logged.tables.get(table)
    }

    fn find_tables(&mut self, main: Option<u64>) {
        let Some((file, main)) = self.file.as_ref().zip(main) else {
            self.roots_are_lost = true;
            return;
        };
        let (mut lost, roots) = (LostRanges::default(), &mut self.roots);
        let mut found = |key: &[u8], place: Option<ValuePlace>| {
            let root = place.and_then(|place| file.root_at(place));
            if let (Ok(name), Some(root)) = (std::str::from_utf8(key), root) {
                roots.insert(name.to_owned(), root);
            }
        };
        Walk::new(file, &mut self.used, &mut self.broken, &mut lost, &mut found).start(main);
        if !lost.all().is_empty() {
            self.roots_are_lost = true;
            self.faults.push("the list of tables is damaged".to_owned());
        }
    }

    /// Compares all records with the totals. A wrong page number may lead to an earlier copy of a page, which is whole, and
    /// only the totals show it. If records are missing anyway, they show nothing.
    fn compare_totals(&mut self) {
        let Some(file) = &self.file else { return };
        let (mut totals, mut stored, mut lost) = (Totals::default(), None, LostRanges::default());
        for (name, root) in self.roots.iter().filter_map(|(name, root)| Some((name, (*root)?))) {
            let mut found = |key: &[u8], place: Option<ValuePlace>| {
                let Some(covered) = place.and_then(|place| file.checked(key, place)) else { return };
                if name == TOTALS_TABLE {
                    stored = Totals::decode(record_of(&covered).body).ok();
                } else {
                    totals.add(&covered);
                }
            };
            let (mut used, mut broken) = (Pages::none(), Vec::new());
            Walk::new(file, &mut used, &mut broken, &mut lost, &mut found).start(root);
        }
        if lost.all().is_empty() && !self.roots_are_lost && stored != Some(totals) {
            self.roots_are_lost = true;
            self.faults.push("the records do not match their totals: some may be old or missing".to_owned());
        }
    }

    /// Reads the keys of a table. `is_record` says whether a record that a search finds is one of this table.
    pub fn table(&mut self, name: &str, is_record: &dyn Fn(&[u8], &Record<'_>) -> bool) -> SalvagedTable {
        let root = self.roots.get(name).copied();
        let (mut lost, mut damaged) = (LostRanges::default(), Vec::new());
        if root.is_none() || self.roots_are_lost {
            lost.push(LostRange::all());
        }
        if let Some((file, root)) = self.file.as_ref().zip(root.flatten()) {
            let mut in_tree = LostRanges::default();
            let mut found = |key: &[u8], place: Option<ValuePlace>| {
                if place.is_none() {
                    damaged.push(key.to_vec());
                }
            };
            Walk::new(file, &mut self.used, &mut self.broken, &mut in_tree, &mut found).start(root);
            in_tree.all().iter().for_each(|range| lost.push(range.clone()));
        }
        let searched = if lost.all().is_empty() { BTreeMap::new() } else { self.search(&lost, is_record) };
        SalvagedTable { name: name.to_owned(), root: root.flatten(), searched, lost, damaged }
    }

    /// Returns what the tree and the log have of a table, without a search.
    #[must_use]
    pub fn known_table(&self, name: &str) -> SalvagedTable {
        let root = self.roots.get(name).copied().flatten();
        let (searched, lost, damaged) = (BTreeMap::new(), LostRanges::default(), Vec::new());
        SalvagedTable { name: name.to_owned(), root, searched, lost, damaged }
    }

    /// Finds records with keys in lost ranges, in all pages that no tree uses.
    fn search(
        &self,
        lost: &LostRanges,
        is_record: &dyn Fn(&[u8], &Record<'_>) -> bool,
    ) -> BTreeMap<Vec<u8>, ValuePlace> {
        let Some(file) = &self.file else { return BTreeMap::new() };
        let mut searched = BTreeMap::new();
        let mut examine = |page: &Page, nodes: &mut dyn Iterator<Item = usize>| {
            for node in nodes.filter_map(|node| page.leaf_node(node)) {
                if node.is_table || !lost.contains(node.key) {
                    continue;
                }
                if let Some(covered) = file.checked(node.key, node.place)
                    && is_record(node.key, &record_of(&covered))
                {
                    searched.insert(node.key.to_vec(), node.place);
                }
            }
        };
        // Whole leaves count more than what is found in damaged pages, and those of the damaged tree count most.
        let unused =
            || (2..file.pages).filter(|page| !self.used.has(*page)).filter_map(|page| file.page(page));
        for page in unused().filter(|page| page.kind().is_none() && !page.is_empty()) {
            examine(&page, &mut page.possible_nodes());
        }
        for page in unused().filter(|page| page.kind() == Some(PageKind::Leaf)) {
            examine(&page, &mut page.nodes().into_iter());
        }
        for page in self.broken.iter().filter_map(|page| file.page(*page)) {
            examine(&page, &mut page.possible_nodes());
            examine(&page, &mut page.nodes().into_iter());
        }
        searched
    }
}

impl SalvagedTable {
    /// Calls `found` with every record, in the order of keys.
    pub fn each(&self, of: &SalvagedEnvironment, found: &mut dyn FnMut(&Salvaged<'_>)) {
        let nothing = Changes::new();
        let mut changes = of.changes(&self.name).unwrap_or(&nothing).iter().peekable();
        let mut searched = self.searched.iter().peekable();
        let mut before = |next: Option<&[u8]>, found: &mut dyn FnMut(&Salvaged<'_>)| {
            let is_due = |key: &[u8]| next.is_none_or(|next| key < next);
            loop {
                let change = changes.peek().filter(|(key, _)| is_due(key)).map(|(key, _)| key.as_slice());
                let other = searched.peek().filter(|(key, _)| is_due(key)).map(|(key, _)| key.as_slice());
                match (change, other) {
                    (None, None) => break,
                    (Some(change), other) if other.is_none_or(|other| change <= other) => {
                        if other == Some(change) {
                            searched.next();
                        }
                        if let Some((key, Some(value))) = changes.next() {
                            give_logged(key, value, found);
                        }
                    }
                    _ => {
                        if let (Some((key, place)), Some(file)) = (searched.next(), &of.file) {
                            give_stored(file, key, *place, true, found);
                        }
                    }
                }
            }
            // What a search has found of the next key is in the tree, or the same change replaces it.
            if next.is_some_and(|next| searched.peek().is_some_and(|(key, _)| **key == *next)) {
                searched.next();
            }
            // A change of the next key replaces its record.
            let is_changed = next.is_some_and(|next| changes.peek().is_some_and(|(key, _)| **key == *next));
            if is_changed && let Some((key, Some(value))) = changes.next() {
                give_logged(key, value, found);
            }
            is_changed
        };
        if let Some((file, root)) = of.file.as_ref().zip(self.root) {
            let (mut used, mut broken, mut lost) = (Pages::of(file), Vec::new(), LostRanges::default());
            let mut of_tree = |key: &[u8], place: Option<ValuePlace>| {
                if let Some(place) = place
                    && !before(Some(key), found)
                {
                    give_stored(file, key, place, false, found);
                }
            };
            Walk::new(file, &mut used, &mut broken, &mut lost, &mut of_tree).start(root);
        }
        before(None, found);
    }

    /// Calls `found` with every record whose key has this prefix. They are in no order.
    pub fn with_prefix(&self, of: &SalvagedEnvironment, prefix: &[u8], found: &mut dyn FnMut(&Salvaged<'_>)) {
        let nothing = Changes::new();
        let changes = of.changes(&self.name).unwrap_or(&nothing);
        let from = || prefix.to_vec()..;
        for (key, value) in changes.range(from()).take_while(|(key, _)| key.starts_with(prefix)) {
            if let Some(value) = value {
                give_logged(key, value, found);
            }
        }
        let Some(file) = &of.file else { return };
        for (key, place) in self.searched.range(from()).take_while(|(key, _)| key.starts_with(prefix)) {
            if !changes.contains_key(key) {
                give_stored(file, key, *place, true, found);
            }
        }
        let Some(root) = self.root else { return };
        let mut of_tree = |key: &[u8], place: Option<ValuePlace>| {
            if let Some(place) = place.filter(|_| key.starts_with(prefix) && !changes.contains_key(key)) {
                give_stored(file, key, place, false, found);
            }
        };
        let (mut used, mut broken, mut lost) = (Pages::none(), Vec::new(), LostRanges::default());
        Walk::new(file, &mut used, &mut broken, &mut lost, &mut of_tree).only(prefix).start(root);
    }
}

fn give_logged(key: &[u8], value: &[u8], found: &mut dyn FnMut(&Salvaged<'_>)) {
    if let Ok(Record { version, body, .. }) = crate::record::decode(key, value) {
        let record = Record { version, body, tail: &[] };
        found(&Salvaged { key, record, is_searched: false, source: Source::Log(value) });
    }
}

fn give_stored(
    file: &DataFile,
    key: &[u8],
    place: ValuePlace,
    is_searched: bool,
    found: &mut dyn FnMut(&Salvaged<'_>),
) {
    if let Some(covered) = file.checked(key, place) {
        let record = record_of(&covered);
        found(&Salvaged { key, record, is_searched, source: Source::File(file, place) });
    }
}

/// The roots of the trees.
#[derive(Default)]
struct Roots {
    page_bytes: usize,
    checkpoint: Option<Checkpoint>,
    main: Option<u64>,
    /// Whether the roots may be those of an earlier transaction.
    is_doubtful: bool,
}

impl Roots {
    fn read(file: &File) -> Self {
        let checkpoint = PAGE_BYTES.into_iter().find_map(|page_bytes| checkpoint_in(file, page_bytes));
        if let Some(checkpoint) = checkpoint.filter(|checkpoint| checkpoint.is_active) {
            let page_bytes = usize::try_from(checkpoint.meta.page_bytes()).unwrap_or(4096);
            let main = checkpoint.meta.main_root();
            return Self { page_bytes, checkpoint: Some(checkpoint), main, is_doubtful: main.is_none() };
        }
        let (mut page_bytes, mut metas) = (PAGE_BYTES[0], Vec::new());
        for size in PAGE_BYTES {
            let found = metas_in(file, size);
            if found.len() > metas.len() {
                (page_bytes, metas) = (size, found);
            }
        }
        let transactions: Vec<_> = metas.iter().map(MetaFields::transaction).collect();
        let is_sound = matches!(transactions[..], [first, second] if first.abs_diff(second) <= 1);
        let newest = metas.into_iter().max_by_key(MetaFields::transaction);
        Self {
            page_bytes: usize::try_from(page_bytes).unwrap_or(4096),
            checkpoint: None,
            main: newest.and_then(|meta| meta.main_root()),
            is_doubtful: !is_sound,
        }
    }
}

fn checkpoint_in(file: &File, page_bytes: u64) -> Option<Checkpoint> {
    let copies = [0, 1].into_iter().filter_map(|page| {
        let mut slot = [0; SLOT_BYTES];
        file.read_exact_at(&mut slot, page * page_bytes + SLOT_AT).ok()?;
        Checkpoint::decode(&slot)
    });
    copies.filter(|copy| copy.meta.page_bytes() == page_bytes).max_by_key(|checkpoint| checkpoint.number)
}

/// Returns the valid meta pages of a file.
fn metas_in(file: &File, page_bytes: u64) -> Vec<MetaFields> {
    let found = [0, 1].into_iter().filter_map(|page| {
        let mut fields = [0; META_FIELD_BYTES];
        file.read_exact_at(&mut fields, page * page_bytes + FIELDS_AT).ok()?;
        Some(MetaFields(fields))
    });
    found.filter(|meta| meta.is_whole(page_bytes)).collect()
}
