//! Reads lists of the management plane page by page.

use cairn_http1::encode_strict;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::client::{Client, Query, Request, query, read, rows, with_query};
use crate::failure::{Failure, Outcome};
use crate::output::print_error;
use crate::output::table::Column;
use crate::terminal::word;

/// Maximum number of pages of which one list is made: a page may be empty without being the last.
const PAGES_MAX: usize = 10_000;
/// Entries after which a list ends for which no limit was given, which bounds memory and time.
pub(crate) const ENTRIES_MAX: usize = 100_000;
/// Entries in a page when all are read: the maximum that the server allows.
pub(crate) const PAGE_ENTRIES_MAX: u64 = 1000;

/// The parameters of the next page of a list, each with the member of a page that contains its value.
type Cursor = &'static [(&'static str, &'static str)];

/// A list of the management plane.
#[derive(Clone, Copy)]
pub(crate) struct PagedList {
    /// The route, or the last part of it for a list of a bucket.
    pub(crate) path: &'static str,
    /// The member of a response that contains it.
    pub(crate) member: &'static str,
    cursor: Cursor,
}

impl PagedList {
    /// A list whose pages continue after a token.
    pub(crate) const fn by_token(path: &'static str, member: &'static str) -> Self {
        Self { path, member, cursor: &[("continuation_token", "next_continuation_token")] }
    }

    /// A list in order of time, whose pages continue after the time and the id of an entry.
    pub(crate) const fn by_time(path: &'static str, member: &'static str) -> Self {
        Self { path, member, cursor: &[("after_time", "next_time"), ("after_id", "next_id")] }
    }

    /// Takes the entries out of a response, in which [`rows`] has found them.
    pub(crate) fn take(&self, body: &mut Value) -> Vec<Value> {
        match body[self.member].take() {
            Value::Array(entries) => entries,
            other => unreachable!("the list is no list any more: {other}"),
        }
    }

    /// Returns the position at which the page after this one begins; empty after the last one.
    pub(super) fn next(&self, body: &Value) -> Query {
        query(self.cursor.iter().map(|(parameter, member)| (*parameter, body[member].as_str())))
    }
}

/// Returns the position that options give, to continue after it.
pub(crate) fn position(after_time: Option<&str>, after_id: Option<&str>) -> Result<Query, Failure> {
    if after_time.is_some() != after_id.is_some() {
        return Err(Failure::WrongUsage("--after-time and --after-id must be given together".to_owned()));
    }
    Ok(query([("after_time", after_time), ("after_id", after_id)]))
}

/// The current objects of a bucket.
pub(crate) const OBJECTS: PagedList = PagedList::by_token("objects", "objects");
/// All versions and delete markers of a bucket.
pub(crate) const VERSIONS: PagedList = PagedList {
    path: "object-versions",
    member: "versions",
    cursor: &[("key_marker", "next_key_marker"), ("version_id_marker", "next_version_id_marker")],
};
/// All unfinished multipart uploads of a bucket.
pub(crate) const UPLOADS: PagedList = PagedList {
    path: "multipart-uploads",
    member: "multipart_uploads",
    cursor: &[("key_marker", "next_key_marker"), ("upload_id_marker", "next_upload_id_marker")],
};

/// The pages of a list, in order.
pub(crate) struct Pages<'c> {
    client: &'c Client,
    list: PagedList,
    path: String,
    /// The parameters that all pages have.
    parameters: Query,
    /// The start of the next page; `None` after the last one.
    next: Option<Query>,
}

impl<'c> Pages<'c> {
    /// Begins with the first page.
    pub(crate) fn new(client: &'c Client, list: PagedList, parameters: Query) -> Self {
        Self { client, list, path: list.path.to_owned(), parameters, next: Some(Query::new()) }
    }

    /// Begins with the first page of a list of a bucket: the keys that begin with a prefix. Keys with a delimiter after the
    /// prefix are grouped.
    pub(crate) fn of_bucket(
        client: &'c Client,
        list: PagedList,
        bucket: &str,
        prefix: &str,
        delimiter: Option<&str>,
    ) -> Self {
        let path = format!("/api/v1/buckets/{}/{}", encode_strict(bucket), list.path);
        let parameters = query([("prefix", Some(prefix)), ("delimiter", delimiter)]);
        Self { client, list, path, parameters, next: Some(Query::new()) }
    }

    /// Adds a parameter to all pages, if it has a value.
    pub(crate) fn with(mut self, name: &'static str, value: Option<&str>) -> Self {
        self.parameters.extend(query([(name, value)]));
        self
    }

    /// Begins with the page after a position.
    pub(crate) fn after(mut self, position: Query) -> Self {
        self.next = Some(position);
        self
    }

    /// Returns the next page: the whole response. `None` after the last page.
    pub(crate) fn next_page(&mut self) -> Result<Option<Value>, Failure> {
        let client = self.client;
        self.next_page_by(|request| client.call(request))
    }

    /// Like [`Self::next_page`], but sends the request with `call`.
    pub(crate) fn next_page_by<E: From<Failure>>(
        &mut self,
        call: impl FnOnce(&Request) -> Result<Value, E>,
    ) -> Result<Option<Value>, E> {
        let Some(position) = self.next.take() else { return Ok(None) };
        let path = with_query(&self.path, self.parameters.iter().chain(&position));
        let body = call(&Request::get(path))?;
        rows(&body, self.list.member)?;
        let next = self.list.next(&body);
        if next == position && !next.is_empty() {
            return Err(Failure::from("the server returned the same page twice").into());
        }
        self.next = Some(next).filter(|next| !next.is_empty());
        Ok(Some(body))
    }

    /// Like [`Self::next_page`], but returns only the entries of the page.
    pub(crate) fn next_entries<T: DeserializeOwned>(&mut self) -> Result<Option<Vec<T>>, Failure> {
        self.next_page()?.map(|body| read(&body[self.list.member])).transpose()
    }

    /// Returns whether the last page was read.
    pub(crate) const fn is_over(&self) -> bool {
        self.next.is_none()
    }

    /// Reads pages until there are enough entries. Returns the last response, with the entries of all of them.
    pub(crate) fn collect(&mut self, enough: usize) -> Result<Value, Failure> {
        let (mut last, mut all) = (Value::Null, Vec::new());
        for _ in 0..PAGES_MAX {
            let Some(mut body) = self.next_page()? else { break };
            all.append(&mut self.list.take(&mut body));
            last = body;
            if all.len() >= enough {
                break;
            }
        }
        last[self.list.member] = all.into();
        Ok(last)
    }

    /// Prints one page of a list in order of time, or with `is_all` all pages, and how to continue after it. `what` names the
    /// entries, and `or_all` the option that reads all of them.
    pub(crate) fn print<T: DeserializeOwned>(
        &mut self,
        is_all: bool,
        columns: &[Column<T>],
        what: &str,
        or_all: &str,
    ) -> Outcome {
        let body = self.collect(if is_all { ENTRIES_MAX } else { 0 })?;
        self.client.print_list(&body, self.list.member, columns)?;
        if !self.is_over() && !self.client.is_json {
            let [time, id] = ["next_time", "next_id"].map(|name| word(&body[name]));
            print_error(&format!(
                "there may be more {what}: continue with --after-time {time} --after-id {id}{or_all}\n"
            ));
        }
        Ok(())
    }
}
