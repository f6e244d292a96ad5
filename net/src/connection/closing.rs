//! The end of a connection: discarding unread bytes so that the client reads the whole response.

use std::future::poll_fn;
use std::net::Shutdown;

use cairn_model::{u64_of, usize_of};

use crate::connection::context::PortContext;
use crate::limits::{HEAD_READ_BYTES, LINGER, LINGER_BYTES_MAX};
use crate::service::interface::Service;
use crate::transport::timeouts::{TransferTimeout, WaitKind};
use crate::transport::wire::Wire;

/// The way in which a connection is closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Close {
    /// After lingering, so that the client can read the response.
    Linger,
    /// At once: every response has been read, or none was sent.
    Silent,
    /// At once and without a TLS `close_notify`: the client is gone, or must see that the response is truncated.
    Cut,
}

/// Discards `remaining` bytes of a body, so that the next request begins at the right byte. Returns whether it could.
pub(crate) async fn discard_body<S: Service>(
    context: &PortContext<S>,
    wire: &mut Wire,
    mut remaining: u64,
) -> bool {
    if remaining == 0 {
        return true;
    }
    let mut timeout = TransferTimeout::new(context.limits.body_stall_timeout, context.limits.rate_min);
    let mut discarded = vec![0; HEAD_READ_BYTES];
    while remaining > 0 {
        let wanted = usize_of(remaining).min(discarded.len());
        match wire.read(&mut discarded[..wanted], &mut timeout).await {
            Ok(count) if count > 0 => {
                assert!(count <= wanted, "a read never passes the end of the body");
                remaining -= u64_of(count);
            }
            _ => return false,
        }
    }
    true
}

/// Closes the sending side and discards what the client still sends until it closes too, within limits. Closing with
/// unread bytes would reset the connection, and the client could lose the response.
pub(crate) async fn linger<S: Service>(context: &PortContext<S>, wire: &mut Wire) {
    wire.prepare_close_notify();
    wire.shut_down(Shutdown::Write);
    wire.consume(wire.buffered().len());
    let mut discarded = 0_u64;
    wire.timeout().arm(WaitKind::Client, context.read_clock() + LINGER);
    while discarded < LINGER_BYTES_MAX {
        let polled = poll_fn(|task| {
            let mut buffer = context.head_read_buffer.borrow_mut();
            wire.poll_read(task, &mut buffer)
        })
        .await;
        match polled {
            Ok(count) if count > 0 => discarded += u64_of(count),
            _ => return,
        }
    }
}
