//! Answers to requests that may take long: when the result is not there within seconds, the head of a 200 goes out first, and
//! then white space until the result follows, so that no client, proxy or load balancer gives the connection up.
//!
//! Source: API Reference, CopyObject: a request that fails after its 200 has begun has the error in the body. The XML
//! declaration goes in front of the white space, for nothing may stand in front of it.

use crate::audit::RequestTrail;
use crate::call::Call;
use crate::errors::{S3Error, S3Result};
use crate::reply::{self, AnswerIds, Asked, Reply};
use crate::target::Target;
use crate::xml::writer::DECLARATION;
use cairn_http1::{ResponseHead, StatusCode};
use cairn_net::{BodySource, Chunk, ResponseBody, within};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::time::Duration;

/// How long the result is waited for before the head goes out: with the result its status can still be told. Clients wait a
/// minute by default, proxies half of one.
const HEAD_AFTER: Duration = Duration::from_secs(5);
/// How often white space is sent.
const SPACE_EVERY: Duration = Duration::from_secs(5);

/// What makes the reply, independent of the call, which may be over before it has.
pub(crate) type Work = Pin<Box<dyn Future<Output = S3Result<Reply>>>>;

/// Waits for `work`, or answers before it has ended. `headers` adds to the early head what is known by then. What `work` has
/// begun is dropped when the client goes.
///
/// # Errors
/// Those of `work`, if it ends in time.
pub(crate) async fn answer(
    call: &Call<'_>,
    mut work: Work,
    headers: impl FnOnce(&mut ResponseHead),
) -> S3Result<Reply> {
    // A client of HTTP/1.0 could not tell a cut from the end.
    if !call.head.is_version_1_1() {
        return work.await;
    }
    if let Some(result) = within(HEAD_AFTER, &mut work).await {
        return result;
    }
    let mut head = ResponseHead::new(StatusCode::OK);
    head.header("content-type", "application/xml");
    headers(&mut head);
    let asked = AskedFor {
        path: call.head.path().to_owned(),
        target: call.target.clone(),
        request_id: call.request.id.clone(),
        host_id: call.engine.store().id().to_hex(),
        trail: call.trail(),
    };
    let source = LateBody { state: State::Begun(work), space_every: SPACE_EVERY, asked };
    Ok(Reply { head, body: ResponseBody::Chunked { source: Box::new(source) } })
}

/// What of the request an error in the body names.
struct AskedFor {
    path: String,
    target: Target,
    request_id: String,
    host_id: String,
    trail: RequestTrail,
}

struct LateBody {
    state: State,
    space_every: Duration,
    asked: AskedFor,
}

enum State {
    /// Nothing was sent.
    Begun(Work),
    /// The declaration was sent, and white space.
    Waiting(Work),
    /// All was sent.
    Done,
}

impl LateBody {
    async fn piece(&mut self) -> Option<Vec<u8>> {
        match std::mem::replace(&mut self.state, State::Done) {
            State::Begun(work) => {
                self.state = State::Waiting(work);
                Some(DECLARATION.as_bytes().to_vec())
            }
            State::Waiting(mut work) => match within(self.space_every, &mut work).await {
                None => {
                    self.state = State::Waiting(work);
                    Some(b" ".to_vec())
                }
                Some(result) => {
                    let document = self.asked.document(result);
                    Some(document.strip_prefix(DECLARATION.as_bytes()).unwrap_or(&document).to_vec())
                }
            },
            State::Done => None,
        }
    }
}

impl BodySource for LateBody {
    fn next<'a>(&'a mut self) -> Pin<Box<dyn Future<Output = io::Result<Option<Chunk>>> + 'a>> {
        Box::pin(async { Ok(self.piece().await.map(|piece| Box::new(piece) as Chunk)) })
    }
}

impl AskedFor {
    /// The document of a result: its own, or that of its error.
    fn document(&self, result: S3Result<Reply>) -> Vec<u8> {
        let error = match result {
            Ok(Reply { body: ResponseBody::Full(document), .. }) => return document,
            Ok(_) => S3Error::internal("a late answer has no document"),
            Err(error) => error,
        };
        if let Some(cause) = error.failure_cause() {
            // The request log has the 200 that had been sent; this is what an operator finds under the request's id.
            tracing::error!(target: "service::s3", request_id = self.request_id, code = error.code(), cause, "a request failed");
            if error.is_internal() {
                self.trail.failed(cause);
            }
        }
        let asked =
            Asked { method: None, path: &self.path, target: Some(&self.target), route: "", operation: "" };
        let ids = AnswerIds { request: &self.request_id, host: &self.host_id };
        reply::error_document(&error, asked, ids)
    }
}

#[cfg(test)]
mod tests {
    use super::{AskedFor, LateBody, State, Work};
    use crate::audit::RequestTrail;
    use crate::errors::{ErrorCode, S3Result};
    use crate::reply::Reply;
    use crate::target::Target;
    use crate::xml::reader::{Element, parse};
    use crate::xml::writer::XmlWriter;
    use cairn_http1::{HeadLimits, HeadParser};
    use cairn_model::SystemClock;
    use cairn_net::Request;
    use cairn_observe::{AuditLog, AuditOptions};
    use std::cell::Cell;
    use std::future::poll_fn;
    use std::rc::Rc;
    use std::sync::{Arc, Mutex};
    use std::task::Poll;
    use std::time::Duration;

    fn asked(folder: &std::path::Path) -> AskedFor {
        // The mark of a trail that is still to be made.
        std::fs::File::create_new(folder.join("unmade")).expect("a file");
        let log = AuditLog::open(AuditOptions {
            folder: folder.to_owned(),
            store: [0; 16],
            age_max: Duration::from_secs(60),
            records_max: 10,
            clock: Arc::new(SystemClock),
        });
        let head = b"PUT /photos/a HTTP/1.1\r\nhost: h\r\n\r\n";
        let (head, _) = HeadParser::new(HeadLimits::default()).parse(head).expect("reads").expect("whole");
        let address: std::net::SocketAddr = "127.0.0.1:1".parse().expect("an address");
        let started = std::time::Instant::now();
        let request = Request {
            head,
            peer: address,
            client: address.ip(),
            local: address,
            is_secure: false,
            started,
            id: "REQ".to_owned(),
        };
        let target = Target::parse("/photos/a").expect("parses");
        let trail = RequestTrail::new(&log.expect("opens"), &request, Some(&target), None, "CopyObject");
        let (request_id, host_id) = (request.id, "HOST".to_owned());
        AskedFor { path: "/photos/a".to_owned(), target, request_id, host_id, trail }
    }

    /// The pieces of a body whose work ends, with `result`, after white space was sent twice.
    fn pieces(result: fn() -> S3Result<Reply>) -> Vec<String> {
        let collected = Arc::new(Mutex::new(Vec::new()));
        let theirs = Arc::clone(&collected);
        let running = cairn_net::start(1, move |_| {
            let collected = Arc::clone(&theirs);
            async move {
                let folder = tempfile::tempdir().expect("a folder");
                let is_done = Rc::new(Cell::new(false));
                let seen = Rc::clone(&is_done);
                let work: Work = Box::pin(async move {
                    poll_fn(|context| {
                        context.waker().wake_by_ref();
                        if seen.get() { Poll::Ready(()) } else { Poll::Pending }
                    })
                    .await;
                    result()
                });
                let space_every = Duration::from_millis(5);
                let mut body =
                    LateBody { state: State::Begun(work), space_every, asked: asked(folder.path()) };
                while let Some(piece) = body.piece().await {
                    let mut collected = collected.lock().expect("unpoisoned");
                    collected.push(String::from_utf8(piece).expect("UTF-8"));
                    is_done.set(collected.len() == 3);
                }
            }
        });
        running.expect("starts").join().expect("ends");
        std::mem::take(&mut *collected.lock().expect("unpoisoned"))
    }

    #[test]
    fn white_space_is_sent_between_the_declaration_and_the_document() {
        let pieces = pieces(|| {
            let mut xml = XmlWriter::with_capacity(0);
            xml.text("CopyObjectResult", "x");
            Ok(Reply::xml(xml))
        });
        assert!(pieces[0].starts_with("<?xml "), "{pieces:?}");
        assert_eq!(pieces[1..], [" ", " ", "<CopyObjectResult>x</CopyObjectResult>"]);
        assert_eq!(parse(pieces.concat().as_bytes()).expect("well-formed").text(), "x");
    }

    #[test]
    fn a_failure_after_the_head_is_an_error_document_in_the_body() {
        let pieces = pieces(|| Err(ErrorCode::QuotaExceeded.into()));
        assert_eq!(pieces.len(), 4);
        let root = parse(pieces.concat().as_bytes()).expect("well-formed");
        assert_eq!(root.name(), "Error");
        for (name, text) in
            [("Code", "QuotaExceeded"), ("RequestId", "REQ"), ("HostId", "HOST"), ("Key", "a")]
        {
            assert_eq!(root.child(name).map(Element::text), Some(text));
        }
    }
}
