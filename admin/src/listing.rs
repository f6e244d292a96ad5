//! Lists of tens of thousands of entries as one JSON answer, made and sent page by page: between two pages the executor serves
//! others, and however large a list is, one page of it is in memory.

use cairn_net::{BodySource, Chunk};
use futures_lite::future::yield_now;
use http::StatusCode;
use serde::Serialize;
use std::future::Future;
use std::io;
use std::pin::Pin;

use crate::reply::{Reply, ReplyBody};

/// Parts, which are entries and what they hold, that are looked up under the directory's lock and written without a pause: about
/// a millisecond. One entry that has more makes a page of its own.
pub(crate) const PAGE_PARTS: usize = 512;

/// `{member: [entries]}` of all entries. `page_behind` gives those that follow one, or the first ones, and none at the end.
pub(crate) fn list<T: 'static, B: Serialize>(
    member: &'static str,
    page_behind: impl Fn(Option<&T>) -> Vec<T> + 'static,
    body: impl Fn(&T) -> B + 'static,
) -> Reply {
    let pages = Pages { member, page_behind, body, place: Place::Begin };
    let mut reply = Reply::bytes(StatusCode::OK, "application/json", Vec::new());
    reply.body = ReplyBody::Chunked { source: Box::new(pages) };
    reply
}

/// How far a list was made.
enum Place<T> {
    Begin,
    /// Behind this entry.
    Behind(T),
    End,
}

struct Pages<T, P, W> {
    member: &'static str,
    page_behind: P,
    body: W,
    place: Place<T>,
}

impl<T, P: Fn(Option<&T>) -> Vec<T>, B: Serialize, W: Fn(&T) -> B> Pages<T, P, W> {
    /// The text of the next page; `None` when all was given.
    fn page(&mut self) -> io::Result<Option<Vec<u8>>> {
        let (last, mut text) = match std::mem::replace(&mut self.place, Place::End) {
            Place::Begin => (None, format!("{{\"{}\":[", self.member).into_bytes()),
            Place::Behind(last) => (Some(last), Vec::new()),
            Place::End => return Ok(None),
        };
        let mut page = (self.page_behind)(last.as_ref());
        for (number, entry) in page.iter().enumerate() {
            if last.is_some() || number > 0 {
                text.push(b',');
            }
            serde_json::to_writer(&mut text, &(self.body)(entry)).inspect_err(|error| {
                tracing::error!(target: "service", %error, "an answer could not be written as JSON");
            })?;
        }
        match page.pop() {
            Some(end) => self.place = Place::Behind(end),
            None => text.extend_from_slice(b"]}"),
        }
        Ok(Some(text))
    }
}

impl<T, P: Fn(Option<&T>) -> Vec<T>, B: Serialize, W: Fn(&T) -> B> BodySource for Pages<T, P, W> {
    fn next<'a>(&'a mut self) -> Pin<Box<dyn Future<Output = io::Result<Option<Chunk>>> + 'a>> {
        Box::pin(async {
            // A client that takes all at once must not keep others waiting.
            yield_now().await;
            Ok(self.page()?.map(|page| Box::new(page) as Chunk))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::list;
    use crate::reply::ReplyBody;
    use futures_lite::future::block_on;

    #[test]
    fn pages_make_one_list_without_gaps_and_an_empty_one_is_a_list_too() {
        for count in [0u32, 1, 2, 3, 7] {
            let page = move |last: Option<&u32>| {
                let next = last.map_or(0, |last| last + 1);
                (next..count).take(2).collect()
            };
            let ReplyBody::Chunked { mut source } = list("numbers", page, |number| *number).body else {
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
}
