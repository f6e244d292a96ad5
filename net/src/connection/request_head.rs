//! Reads the next request head of a connection, within its timeouts.

use std::future::poll_fn;
use std::task::{Poll, ready};
use std::time::Duration;

use cairn_http1::{HeadParser, RequestHead};

use crate::connection::context::PortContext;
use crate::metrics::TimeoutPhase;
use crate::service::interface::{Rejection, Service};
use crate::transport::timeouts::WaitKind;
use crate::transport::wire::{Wire, WireError};

/// The reason why there is no further request.
pub(crate) enum HeadFailure {
    /// The client disconnected or was idle for too long, or the process stops. The connection is closed without a
    /// response.
    Silent,
    /// The connection is closed after this response.
    Reject(Rejection),
}

/// Reads to the end of the next head, whose first byte must arrive within `idle_timeout`. Bytes after the head stay
/// buffered in the wire.
pub(crate) async fn read_head<S: Service>(
    context: &PortContext<S>,
    wire: &mut Wire,
    idle_timeout: Duration,
) -> Result<RequestHead, HeadFailure> {
    let mut parser = HeadParser::new(context.limits.head);
    let mut head_deadline = None;
    loop {
        if !wire.buffered().is_empty() {
            match parser.parse(wire.buffered()) {
                Ok(Some((head, length))) => {
                    wire.consume(length);
                    wire.timeout().begin_request();
                    return Ok(head);
                }
                Ok(None) => {}
                Err(error) => return Err(HeadFailure::Reject(Rejection::Head(error))),
            }
            let deadline =
                *head_deadline.get_or_insert_with(|| context.cached_now() + context.limits.head_timeout);
            wire.timeout().arm(WaitKind::Client, deadline);
        } else if context.drain.is_begun() {
            return Err(HeadFailure::Silent);
        } else {
            let now = context.cached_now();
            wire.timeout().arm_idle(now, now + idle_timeout);
        }
        match read_more(context, wire).await {
            Ok(count) if count > 0 => {}
            Err(WireError::TimedOut) if head_deadline.is_some() => {
                context.metrics.record_timeout(TimeoutPhase::Head);
                return Err(HeadFailure::Reject(Rejection::HeadTimeout));
            }
            // A drain and an eviction end idle waits too, and that is not a timeout of the client.
            Err(WireError::TimedOut) if !context.drain.is_begun() && !wire.timeout().is_evicted() => {
                context.metrics.record_timeout(TimeoutPhase::Idle);
                return Err(HeadFailure::Silent);
            }
            _ => return Err(HeadFailure::Silent),
        }
    }
}

/// Reads bytes into the executor's shared buffer and appends them to the wire's buffer. Returns 0 at the client's end.
async fn read_more<S: Service>(context: &PortContext<S>, wire: &mut Wire) -> Result<usize, WireError> {
    poll_fn(|task| {
        let mut buffer = context.head_read_buffer.borrow_mut();
        let count = ready!(wire.poll_read(task, &mut buffer))?;
        wire.buffer(&buffer[..count]);
        Poll::Ready(Ok(count))
    })
    .await
}
