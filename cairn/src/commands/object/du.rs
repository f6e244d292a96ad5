//! `cairn object du`: what the folders of a bucket take up.

use cairn_api::{Bucket, FolderEntry, FolderUsage};
use cairn_model::u64_of;

use super::place::{Place, Selection};
use crate::client::{Client, Request, query, read, with_query};
use crate::commands::macros::command;
use crate::commands::resources::BUCKETS;
use crate::failure::{Failure, Outcome};
use crate::output::print_error;
use crate::output::progress::Progress;
use crate::output::table::{Columns, bytes, table, text};
use crate::quantity::{bytes_text, counted};

command! {
    /// Show how many objects and bytes are in a bucket or a folder of it, and in each folder one level below.
    struct DiskUsage("du") {
        /// a place, as <bucket> or <bucket>/<prefix>
        #[argh(positional)]
        place: Place,
    }
}

/// Keys that one request counts, within a second or two: then the progress moves.
const PAGE_KEYS: &str = "1000000";
/// Folders that are shown: as many as one request returns if it counts all.
const FOLDERS_MAX: usize = 1000;

const COLUMNS: Columns<FolderEntry> = &[
    ("objects", |folder| text(&folder.objects)),
    ("size", |folder| bytes(&folder.bytes)),
    ("folder", |folder| text(&folder.prefix)),
];

impl DiskUsage {
    pub(super) fn run(&self) -> Outcome {
        let client = self.client()?;
        let prefix = match self.place.selection(true)? {
            Selection::One(prefix) | Selection::Many { prefix, pattern: None } => prefix,
            Selection::Many { .. } => {
                return Err(Failure::WrongUsage("give a prefix in place of a pattern".to_owned()));
            }
        };
        let usage = self.count(&client, &prefix)?;
        let body = serde_json::to_value(&usage).map_err(|error| error.to_string())?;
        client.print(&body, || {
            let total = counted(usage.objects, "object");
            let mut shown =
                if usage.folders.is_empty() { String::new() } else { table(COLUMNS, &usage.folders) };
            shown += &format!("{total}, {} in all\n", bytes_text(usage.bytes));
            shown
        })?;
        if !usage.complete && !self.json {
            let left_out = counted(usage.folders_left_out, "smaller folder");
            print_error(&format!("{left_out} not shown: a longer prefix shows the rest\n"));
        }
        Ok(())
    }

    /// Adds up all pages.
    fn count(&self, client: &Client, prefix: &str) -> Result<FolderUsage, Failure> {
        let path = BUCKETS.path_of(&self.place.bucket);
        let progress = Progress::described();
        let is_total_known = prefix.is_empty() && !progress.is_hidden();
        let total = if is_total_known {
            read::<Bucket>(&client.call(&Request::get(path.clone()))?)?.usage.objects
        } else {
            0
        };
        let (mut sum, mut token) = (Sum::default(), None);
        loop {
            let parameters = [
                ("prefix", Some(prefix.to_owned())),
                ("max_keys", Some(PAGE_KEYS.to_owned())),
                ("continuation_token", token.clone()),
            ];
            let route = with_query(&(path.clone() + "/folder-usage"), &query(parameters));
            let page: FolderUsage = read(&client.call(&Request::get(route).long_running())?)?;
            let next = page.next_continuation_token.clone();
            sum.add(page);
            match next {
                None => return Ok(sum.finish()),
                next if next == token => return Err("the server went no further".into()),
                next => token = next,
            }
            let text = format!("{}, {}", counted(sum.objects, "object"), bytes_text(sum.bytes));
            progress.show(sum.objects.min(total), total, text);
        }
    }
}

/// The sum of the pages so far.
#[derive(Default)]
struct Sum {
    /// In the order of their prefixes. The last one may continue in the next page.
    folders: Vec<FolderEntry>,
    left_out: u64,
    objects: u64,
    bytes: u64,
}

impl Sum {
    fn add(&mut self, page: FolderUsage) {
        self.objects += page.objects;
        self.bytes = self.bytes.saturating_add(page.bytes);
        self.left_out += page.folders_left_out;
        for folder in page.folders {
            match self.folders.last_mut() {
                Some(last) if last.prefix == folder.prefix => {
                    last.objects += folder.objects;
                    last.bytes = last.bytes.saturating_add(folder.bytes);
                }
                _ => self.folders.push(folder),
            }
        }
        if let Some(last) = self.folders.pop() {
            self.keep_largest();
            self.folders.push(last);
        }
    }

    fn finish(mut self) -> FolderUsage {
        self.keep_largest();
        FolderUsage {
            folders: self.folders,
            folders_left_out: self.left_out,
            objects: self.objects,
            bytes: self.bytes,
            complete: self.left_out == 0,
            next_continuation_token: None,
        }
    }

    /// Leaves out the smallest folders if there are too many. The order is the server's, also of folders of one size.
    fn keep_largest(&mut self) {
        let excess = self.folders.len().saturating_sub(FOLDERS_MAX);
        if excess == 0 {
            return;
        }
        self.left_out += u64_of(excess);
        self.folders.sort_by(|one, other| {
            (other.bytes, other.objects, &other.prefix).cmp(&(one.bytes, one.objects, &one.prefix))
        });
        self.folders.truncate(FOLDERS_MAX);
        self.folders.sort_by(|one, other| one.prefix.cmp(&other.prefix));
    }
}

#[cfg(test)]
mod tests {
    use super::{FOLDERS_MAX, Sum};
    use cairn_api::{FolderEntry, FolderUsage};
    use proptest::prelude::*;
    use std::ops::Range;

    /// A page of some keys. Each folder has two, and the first of them has no bytes.
    fn page(sizes: &[u64], keys: Range<usize>) -> FolderUsage {
        let mut page =
            FolderUsage { next_continuation_token: Some("a".to_owned()), ..Sum::default().finish() };
        for key in keys {
            let (prefix, bytes) = (format!("{:05}/", key / 2), sizes[key / 2] * (key as u64 % 2));
            page.objects += 1;
            page.bytes += bytes;
            match page.folders.last_mut().filter(|last| last.prefix == prefix) {
                Some(last) => (last.objects, last.bytes) = (2, bytes),
                None => page.folders.push(FolderEntry { prefix, objects: 1, bytes }),
            }
        }
        page
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(30))]
        #[test]
        fn sum_of_pages_is_the_whole(
            sizes in proptest::collection::vec(0..50_u64, 0..FOLDERS_MAX + 50),
            mut cuts in proptest::collection::vec(0..2 * FOLDERS_MAX, 0..5),
        ) {
            cuts.iter_mut().for_each(|cut| *cut = (*cut).min(2 * sizes.len()));
            cuts.extend([0, 2 * sizes.len()]);
            cuts.sort_unstable();
            let mut sum = Sum::default();
            cuts.windows(2).for_each(|ends| sum.add(page(&sizes, ends[0]..ends[1])));
            let usage = sum.finish();
            let mut expected: Vec<(u64, String)> =
                sizes.iter().enumerate().map(|(number, bytes)| (*bytes, format!("{number:05}/"))).collect();
            expected.sort_by(|one, other| other.cmp(one));
            expected.truncate(FOLDERS_MAX);
            expected.sort_by(|one, other| one.1.cmp(&other.1));
            let found: Vec<_> = usage.folders.into_iter().map(|folder| (folder.bytes, folder.prefix)).collect();
            prop_assert_eq!(found, expected);
            prop_assert_eq!((usage.objects, usage.bytes), (2 * sizes.len() as u64, sizes.iter().sum()));
            prop_assert_eq!(usage.complete, sizes.len() <= FOLDERS_MAX);
            prop_assert_eq!(usage.folders_left_out, sizes.len().saturating_sub(FOLDERS_MAX) as u64);
        }
    }
}
