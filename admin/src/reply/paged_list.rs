//! Long lists as one JSON response, made and sent page by page.
//!
//! Lists may have tens of thousands of entries. The executor serves other requests between two pages, and only one page
//! is in memory.

use cairn_net::{BodySource, Chunk, ResponseBody};
use futures_lite::future::yield_now;
use http::StatusCode;
use serde::Serialize;
use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::pin::Pin;

use super::handler_reply::{JSON, Reply};
use crate::error::AdminError;

/// Most parts of a page: entries and what they contain. They are looked up under the directory's lock and serialized
/// without a pause, which takes about a millisecond. An entry with more parts is a page of its own.
pub(crate) const PAGE_PARTS: usize = 512;

/// Returns the reply `{member: [entries]}`. `page_after` returns the entries that follow one, or the first ones; none
/// at the end.
pub(crate) fn paged_list<T: 'static, B: Serialize>(
    member: &'static str,
    page_after: impl Fn(Option<&T>) -> Vec<T> + 'static,
    body: impl Fn(&T) -> B + 'static,
) -> Reply {
    reply_of(Pages { member, page_after, body, tail: Vec::new(), next_page: NextPage::First })
}

/// Returns the reply `{member: [entries], "next_continuation_token": token}` for the entries of one page, which is sent
/// `entries_at_once` at a time.
pub(crate) fn continued_list<T: 'static, B: Serialize>(
    member: &'static str,
    entries: Vec<T>,
    entries_at_once: usize,
    body: impl Fn(&T) -> B + 'static,
    token: Option<&str>,
) -> Result<Reply, AdminError> {
    let token = serde_json::to_string(&token).map_err(|_| AdminError::Internal)?;
    let tail = format!(",\"next_continuation_token\":{token}").into_bytes();
    Ok(list_with(member, entries, entries_at_once, body, tail))
}

/// Returns the reply `{member: [entries]` with further members in `tail`, which begins with a comma, and `}`. The entries are
/// sent `entries_at_once` at a time.
pub(crate) fn list_with<T: 'static, B: Serialize>(
    member: &'static str,
    entries: Vec<T>,
    entries_at_once: usize,
    body: impl Fn(&T) -> B + 'static,
    tail: Vec<u8>,
) -> Reply {
    let remaining = RefCell::new(entries.into_iter());
    let page_after = move |_: Option<&T>| remaining.borrow_mut().by_ref().take(entries_at_once).collect();
    reply_of(Pages { member, page_after, body, tail, next_page: NextPage::First })
}

fn reply_of(pages: impl BodySource + 'static) -> Reply {
    let mut reply = Reply::bytes(StatusCode::OK, JSON, Vec::new());
    reply.body = ResponseBody::Chunked { source: Box::new(pages) };
    reply
}

/// The next page of a list.
enum NextPage<T> {
    First,
    /// Begins after this entry.
    After(T),
    End,
}

struct Pages<T, P, W> {
    member: &'static str,
    page_after: P,
    body: W,
    /// The text after the list, before the closing brace.
    tail: Vec<u8>,
    next_page: NextPage<T>,
}

impl<T, P: Fn(Option<&T>) -> Vec<T>, B: Serialize, W: Fn(&T) -> B> Pages<T, P, W> {
    /// Returns the JSON text of the next page; `None` after the last.
    fn page(&mut self) -> io::Result<Option<Vec<u8>>> {
        let (last, mut text) = match std::mem::replace(&mut self.next_page, NextPage::End) {
            NextPage::First => (None, format!("{{\"{}\":[", self.member).into_bytes()),
            NextPage::After(last) => (Some(last), Vec::new()),
            NextPage::End => return Ok(None),
        };
        let mut page = (self.page_after)(last.as_ref());
        for (number, entry) in page.iter().enumerate() {
            if last.is_some() || number > 0 {
                text.push(b',');
            }
            serde_json::to_writer(&mut text, &(self.body)(entry)).inspect_err(|error| {
                tracing::error!(target: "service", %error, "a response could not be serialized as JSON");
            })?;
        }
        match page.pop() {
            Some(last) => self.next_page = NextPage::After(last),
            None => text.extend_from_slice(&[b"]", &self.tail[..], b"}"].concat()),
        }
        Ok(Some(text))
    }
}

impl<T, P: Fn(Option<&T>) -> Vec<T>, B: Serialize, W: Fn(&T) -> B> BodySource for Pages<T, P, W> {
    fn next<'a>(&'a mut self) -> Pin<Box<dyn Future<Output = io::Result<Option<Chunk>>> + 'a>> {
        Box::pin(async {
            // A client that receives fast must not keep other requests waiting.
            yield_now().await;
            Ok(self.page()?.map(|page| Box::new(page) as Chunk))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{ResponseBody, continued_list, paged_list};
    use futures_lite::future::block_on;

    #[test]
    fn pages_make_one_complete_list() {
        for count in [0u32, 1, 2, 3, 7] {
            let page = move |last: Option<&u32>| {
                let next = last.map_or(0, |last| last + 1);
                (next..count).take(2).collect()
            };
            let ResponseBody::Chunked { mut source } = paged_list("numbers", page, |number| *number).body
            else {
                panic!("pages")
            };
            let (mut text, mut longest) = (Vec::new(), 0);
            while let Some(chunk) = block_on(source.next()).expect("a page") {
                longest = longest.max((*chunk).as_ref().len());
                text.extend_from_slice((*chunk).as_ref());
            }
            let read: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
            assert_eq!(read, serde_json::json!({"numbers": (0..count).collect::<Vec<_>>()}));
            assert!(longest <= "{\"numbers\":[0,1".len(), "a page at a time");
        }
    }

    #[test]
    fn list_with_a_continuation_is_one_object() {
        for (count, token) in [(0u32, None), (5, Some("a \"quoted\" token"))] {
            let reply = continued_list("numbers", (0..count).collect(), 2, |number| *number, token);
            let ResponseBody::Chunked { mut source } = reply.expect("a reply").body else { panic!("pages") };
            let mut text = Vec::new();
            while let Some(chunk) = block_on(source.next()).expect("a page") {
                text.extend_from_slice((*chunk).as_ref());
            }
            let read: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
            let numbers: Vec<_> = (0..count).collect();
            assert_eq!(read, serde_json::json!({"numbers": numbers, "next_continuation_token": token}));
        }
    }
}
