//! Slow responses: keeps the connection alive with white space until the result is known.
//!
//! If the result is not available after some seconds, the head of a 200 is sent, then white space until the result
//! follows, so that no client, proxy or load balancer times out.
//!
//! Source: API Reference, CopyObject: a request that fails after its 200 was sent has the error in the body. The XML
//! declaration is sent before the white space, because nothing may precede it.

use crate::access::audit::AuditContext;
use crate::access::recording::Begun;
use crate::call::Call;
use crate::errors::{S3Error, S3Result};
use crate::reply::{self, Reply, RequestContext, ResponseIds};
use crate::request::target::Target;
use crate::xml::writer::DECLARATION;
use cairn_http1::{ResponseHead, StatusCode};
use cairn_net::{BodySource, Chunk, ResponseBody, timeout};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::time::Duration;

/// The wait for the result before the head is sent. Until then an error still has its own status. By default clients wait for a
/// minute and proxies for half a minute.
const HEAD_AFTER: Duration = Duration::from_secs(5);
/// The interval at which white space is sent.
const SPACE_EVERY: Duration = Duration::from_secs(5);

/// The future of the reply. It owns what it needs, because it may outlive the call.
pub(crate) type Work = Pin<Box<dyn Future<Output = S3Result<Reply>>>>;

/// Waits for `work`, or responds before it has finished. `headers` adds the headers that are already known to the early
/// head. `work` is dropped when the client disconnects.
///
/// # Errors
/// Those of `work`, if it finishes in time.
pub(crate) async fn respond(
    call: &Call<'_>,
    mut work: Work,
    headers: impl FnOnce(&mut ResponseHead),
) -> S3Result<Reply> {
    // An HTTP/1.0 client could not distinguish a cut connection from the end of the body.
    if !call.head.is_version_1_1() {
        return work.await;
    }
    if let Some(result) = timeout(HEAD_AFTER, &mut work).await {
        return result;
    }
    let mut head = ResponseHead::new(StatusCode::OK);
    head.header("content-type", "application/xml");
    headers(&mut head);
    let context = ErrorContext {
        path: call.target.resource_path(call.head.path()).into_owned(),
        target: call.target.clone(),
        request_id: call.request.id.clone(),
        host_id: call.engine.store().id().to_hex(),
        audit: call.audit_context(),
        begun: call.recording.take(),
    };
    let source = SlowBody { state: State::Begun(work), space_every: SPACE_EVERY, context };
    Ok(Reply { head, body: ResponseBody::Chunked { source: Box::new(source) } })
}

/// The parts of the request that an error in the body names.
struct ErrorContext {
    path: String,
    target: Target,
    request_id: String,
    host_id: String,
    audit: AuditContext,
    /// The audit record, which ends with the work.
    begun: Option<Box<Begun>>,
}

struct SlowBody {
    state: State,
    space_every: Duration,
    context: ErrorContext,
}

enum State {
    /// Nothing has been sent.
    Begun(Work),
    /// The declaration has been sent, and perhaps white space.
    Waiting(Work),
    /// Everything has been sent.
    Done,
}

impl SlowBody {
    async fn piece(&mut self) -> Option<Vec<u8>> {
        match std::mem::replace(&mut self.state, State::Done) {
            State::Begun(work) => {
                self.state = State::Waiting(work);
                Some(DECLARATION.as_bytes().to_vec())
            }
            State::Waiting(mut work) => match timeout(self.space_every, &mut work).await {
                None => {
                    self.state = State::Waiting(work);
                    Some(b" ".to_vec())
                }
                Some(result) => {
                    let is_failure_recorded = match self.context.begun.take() {
                        // Only reads are refused for want of a record. A slow response is that of a change.
                        Some(begun) => {
                            begun.end(result.as_ref().map(|reply| &reply.head)).await.unwrap_or(false)
                        }
                        None => false,
                    };
                    let document = self.context.document(result, is_failure_recorded);
                    let rest = document.strip_prefix(DECLARATION.as_bytes());
                    Some(rest.expect("every document starts with the declaration").to_vec())
                }
            },
            State::Done => None,
        }
    }
}

impl BodySource for SlowBody {
    fn next<'a>(&'a mut self) -> Pin<Box<dyn Future<Output = io::Result<Option<Chunk>>> + 'a>> {
        Box::pin(async { Ok(self.piece().await.map(|piece| Box::new(piece) as Chunk)) })
    }
}

impl ErrorContext {
    /// Returns the document of a result: its own, or that of its error.
    fn document(&self, result: S3Result<Reply>, is_failure_recorded: bool) -> Vec<u8> {
        let error = match result {
            Ok(Reply { body: ResponseBody::Full(document), .. }) => return document,
            Ok(_) => S3Error::internal("a slow response has no document"),
            Err(error) => error,
        };
        if let Some(cause) = error.failure_cause() {
            // The request log has the 200 that was sent. Operators find the cause under the request's id.
            tracing::error!(target: "service::s3", request_id = self.request_id, code = error.code(), cause, "a request failed");
            if error.is_internal() && !is_failure_recorded {
                self.audit.failed(cause);
            }
        }
        if error.denied_because().is_some() && !error.hides_missing() {
            self.audit.refused(&error);
        }
        let request = RequestContext {
            method: None,
            path: &self.path,
            target: Some(&self.target),
            route: "",
            operation: "",
        };
        let ids = ResponseIds { request: &self.request_id, host: &self.host_id };
        reply::error_document(&error, request, ids)
    }
}

#[cfg(test)]
mod tests {
    use super::{ErrorContext, SlowBody, State, Work};
    use crate::access::audit::AuditContext;
    use crate::errors::{ErrorCode, S3Result};
    use crate::reply::Reply;
    use crate::request::target::Target;
    use crate::xml::reader::{Element, parse};
    use crate::xml::writer::XmlWriter;
    use cairn_http1::{HeadLimits, HeadParser};
    use cairn_model::{AgeLimit, SystemClock};
    use cairn_net::Request;
    use cairn_observe::{AuditLog, AuditOptions, DataEvents};
    use cairn_sync::Mutex;
    use std::cell::Cell;
    use std::future::poll_fn;
    use std::rc::Rc;
    use std::sync::Arc;
    use std::task::Poll;
    use std::time::Duration;

    fn context(folder: &std::path::Path) -> ErrorContext {
        // The audit log creates its database if this file exists.
        std::fs::File::create_new(folder.join("unmade")).expect("a file");
        let log = AuditLog::open(AuditOptions {
            folder: folder.to_owned(),
            store: [0; 16],
            age: AgeLimit { age_max: Duration::from_secs(60), clock: Arc::new(SystemClock) },
            records_max: 10,
            data_events: DataEvents::default(),
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
        let audit = AuditContext::new(&log.expect("opens"), &request, Some(&target), None, "CopyObject");
        let (request_id, host_id) = (request.id, "HOST".to_owned());
        ErrorContext { path: "/photos/a".to_owned(), target, request_id, host_id, audit, begun: None }
    }

    /// Returns the pieces of a body whose work ends with `result` after white space was sent twice.
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
                    SlowBody { state: State::Begun(work), space_every, context: context(folder.path()) };
                while let Some(piece) = body.piece().await {
                    let mut collected = collected.lock();
                    collected.push(String::from_utf8(piece).expect("UTF-8"));
                    is_done.set(collected.len() == 3);
                }
            }
        });
        running.expect("starts").join().expect("ends");
        std::mem::take(&mut *collected.lock())
    }

    #[test]
    fn white_space_is_sent_before_the_document() {
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
    fn failure_after_the_head_is_in_the_body() {
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
