//! Compares pages of lists with the model.

use super::Random;
use super::reference::Model;
use crate::support::{self, content, name};
use cairn_engine::{
    Engine, ListObjects, ListPosition, ListUploads, ListVersions, UploadPosition, VersionPosition,
};
use cairn_model::{UploadId, usize_of};
use std::collections::BTreeSet;
use std::rc::Rc;

/// The parameters of a list; `max` is the most entries of a page.
#[derive(Clone, Copy, Debug)]
struct ListRequest<'a> {
    prefix: &'a str,
    delimiter: Option<&'a str>,
    max: usize,
}

/// The entries of a list, each as a distinct text, and its common prefixes.
type Listed = (Vec<String>, Vec<String>);

/// Prefixes and delimiters of lists.
const LISTS: [(&str, Option<&str>); 6] =
    [("", None), ("", Some("/")), ("dir", Some("/")), ("a", Some("dir/")), ("dir/", Some("/")), ("b", None)];

/// Returns the entries and common prefixes that a list of these keys must have.
fn expected<'m>(
    request: ListRequest<'_>,
    entries: impl Iterator<Item = (&'m String, Vec<String>)>,
) -> Listed {
    let (mut listed, mut prefixes) = (Vec::new(), BTreeSet::new());
    for (key, entries) in
        entries.filter(|(key, entries)| key.starts_with(request.prefix) && !entries.is_empty())
    {
        let rest = &key[request.prefix.len()..];
        let end = request.delimiter.and_then(|delimiter| rest.find(delimiter).map(|at| at + delimiter.len()));
        match end {
            Some(end) => drop(prefixes.insert(key[..request.prefix.len() + end].to_owned())),
            None => listed.extend(entries),
        }
    }
    (listed, prefixes.into_iter().collect())
}

/// Reads all pages of a list. `page` returns entries, common prefixes and the position of the next page.
fn paged<P>(max: usize, mut page: impl FnMut(Option<P>) -> (Vec<String>, Vec<Vec<u8>>, Option<P>)) -> Listed {
    let (mut listed, mut prefixes, mut after) = (Vec::new(), Vec::new(), None);
    loop {
        let (entries, common, next) = page(after);
        assert!(entries.len() + common.len() <= max, "a page of more than {max}");
        listed.extend(entries);
        prefixes.extend(common.into_iter().map(|prefix| String::from_utf8(prefix).expect("text")));
        match next {
            Some(next) => after = Some(next),
            None => return (listed, prefixes),
        }
    }
}

fn objects(engine: &Rc<Engine>, model: &Model, request: ListRequest<'_>) {
    let bucket = engine.store().bucket(&name(model.name)).expect("there");
    let listed = paged(request.max, |after: Option<ListPosition>| {
        let (prefix, delimiter) = (request.prefix.as_bytes(), request.delimiter.map(str::as_bytes));
        let page = engine.list_objects(&bucket, &ListObjects { prefix, delimiter, after, max: request.max });
        let page = page.expect("lists");
        let entries =
            page.objects.iter().map(|object| format!("{} {} {}", object.key, object.version, object.size));
        (entries.collect(), page.common_prefixes, page.next)
    });
    let entries = model.keys.iter().map(|(key, held)| {
        let entry = held.current().map(|current| format!("{key} {} {}", current.id, current.size()));
        (key, entry.into_iter().collect())
    });
    assert_eq!(listed, expected(request, entries), "objects of {}: {request:?}", model.name);
}

fn versions(engine: &Rc<Engine>, model: &Model, request: ListRequest<'_>) {
    let bucket = engine.store().bucket(&name(model.name)).expect("there");
    let entry = |key: &str, version: &dyn std::fmt::Display, is_latest: bool, is_marker: bool| {
        format!("{key} {version} latest {is_latest} marker {is_marker}")
    };
    let listed = paged(request.max, |after: Option<VersionPosition>| {
        let (prefix, delimiter) = (request.prefix.as_bytes(), request.delimiter.map(str::as_bytes));
        let page =
            engine.list_versions(&bucket, &ListVersions { prefix, delimiter, after, max: request.max });
        let page = page.expect("lists");
        let entries = page
            .versions
            .iter()
            .map(|listed| entry(&listed.object.key, &listed.name, listed.is_latest, listed.is_delete_marker));
        (entries.collect(), page.common_prefixes, page.next)
    });
    let entries = model.keys.iter().map(|(key, held)| {
        let entries = held.versions.iter().enumerate();
        let entries = entries.map(|(at, held)| entry(key, &held.name(), at == 0, held.pieces.is_none()));
        (key, entries.collect())
    });
    assert_eq!(listed, expected(request, entries), "versions of {}: {request:?}", model.name);
}

fn uploads(engine: &Rc<Engine>, model: &Model, request: ListRequest<'_>) {
    let bucket = engine.store().bucket(&name(model.name)).expect("there");
    let listed = paged(request.max, |after: Option<UploadPosition>| {
        let (prefix, delimiter) = (request.prefix.as_bytes(), request.delimiter.map(str::as_bytes));
        let page = engine.list_uploads(&bucket, &ListUploads { prefix, delimiter, after, max: request.max });
        let page = page.expect("lists");
        let entries = page.uploads.iter().map(|upload| format!("{} {}", upload.key, upload.id));
        (entries.collect(), page.common_prefixes, page.next)
    });
    let entries = model
        .keys
        .iter()
        .map(|(key, held)| (key, held.uploads.iter().map(|upload| format!("{key} {}", upload.id)).collect()));
    assert_eq!(listed, expected(request, entries), "uploads of {}: {request:?}", model.name);
}

fn parts(
    engine: &Rc<Engine>,
    model: &Model,
    key: &str,
    upload: UploadId,
    max: usize,
) -> Vec<(u16, [u8; 16])> {
    let bucket = engine.store().bucket(&name(model.name)).expect("there");
    let (mut parts, mut after) = (Vec::new(), 0);
    loop {
        let page = engine.list_parts(&bucket, &support::key(key), upload, after, max).expect("lists");
        assert!(page.parts.len() <= max);
        parts.extend(page.parts.iter().map(|part| (part.number, part.md5)));
        after = parts.last().map_or(0, |(number, _)| *number);
        if !page.is_truncated {
            return parts;
        }
    }
}

/// Compares every list of a bucket with the model.
pub(crate) fn check(engine: &Rc<Engine>, model: &Model, random: &mut Random) {
    for (prefix, delimiter) in LISTS {
        let max = usize_of(1 + random.below(7));
        let request = ListRequest { prefix, delimiter, max };
        objects(engine, model, request);
        versions(engine, model, request);
        uploads(engine, model, request);
    }
    for (key, held) in &model.keys {
        for upload in &held.uploads {
            let expected = upload
                .parts
                .iter()
                .map(|(number, (seed, size))| (*number, cairn_md5::md5_digest(&content(*seed, *size))));
            let max = usize_of(1 + random.below(3));
            assert_eq!(parts(engine, model, key, upload.id, max), expected.collect::<Vec<_>>());
        }
    }
    // A list may start after a key that does not exist.
    let bucket = engine.store().bucket(&name(model.name)).expect("there");
    let start = random.key();
    let after = Some(ListPosition::AfterKey(start.clone().into()));
    let list = ListObjects { prefix: b"", delimiter: None, after, max: 1000 };
    let page = engine.list_objects(&bucket, &list).expect("lists");
    let listed: Vec<_> = page.objects.into_iter().map(|object| object.key).collect();
    let current = model.keys.iter().filter(|(key, held)| **key > start && held.current().is_some());
    assert_eq!(listed, current.map(|(key, _)| key.clone()).collect::<Vec<_>>());
}
