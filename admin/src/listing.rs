//! Lists of tens of thousands of entries as one JSON answer, made page by page: between two pages the executor serves others.

use futures_lite::future::yield_now;
use http::StatusCode;
use serde::Serialize;

use crate::error::AdminError;
use crate::reply::Reply;

/// Entries that are looked up and written without a pause: well below a millisecond.
pub(crate) const PAGE_ENTRIES: usize = 128;

/// `{member: [entries]}` of all entries. `page_behind` gives those that follow one, or the first ones, and none at the end.
pub(crate) async fn list<T, B: Serialize>(
    member: &str,
    page_behind: impl Fn(Option<&T>) -> Vec<T>,
    body: impl Fn(&T) -> B,
) -> Result<Reply, AdminError> {
    let mut text = format!("{{\"{member}\":[").into_bytes();
    let mut last = None;
    loop {
        let mut page = page_behind(last.as_ref());
        for (number, entry) in page.iter().enumerate() {
            if last.is_some() || number > 0 {
                text.push(b',');
            }
            serde_json::to_writer(&mut text, &body(entry)).map_err(|error| {
                tracing::error!(target: "service", %error, "an answer could not be written as JSON");
                AdminError::Internal
            })?;
        }
        let Some(end) = page.pop() else { break };
        last = Some(end);
        yield_now().await;
    }
    text.extend_from_slice(b"]}");
    Ok(Reply::bytes(StatusCode::OK, "application/json", text))
}

#[cfg(test)]
mod tests {
    use super::list;
    use crate::reply::ReplyBody;
    use futures_lite::future::block_on;

    #[test]
    fn pages_make_one_list_without_gaps_and_an_empty_one_is_a_list_too() {
        for count in [0u32, 1, 2, 3, 7] {
            let page = |last: Option<&u32>| {
                let next = last.map_or(0, |last| last + 1);
                (next..count).take(2).collect()
            };
            let reply = block_on(list("numbers", page, |number| *number)).expect("a list");
            let ReplyBody::Full(text) = reply.body else { panic!("a body") };
            let read: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
            assert_eq!(read, serde_json::json!({"numbers": (0..count).collect::<Vec<_>>()}));
        }
    }
}
