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
        let asked = Asked { method: None, path: &self.path, target: Some(&self.target), route: "" };
        let ids = AnswerIds { request: &self.request_id, host: &self.host_id };
        reply::error_document(&error, asked, ids)
    }
}
