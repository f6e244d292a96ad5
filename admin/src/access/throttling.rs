//! Delays the responses to wrong credentials.

use std::future::pending;
use std::net::IpAddr;
use std::time::Instant;

use cairn_identity::{CredentialThrottle, FailedCredential};
use cairn_net::timeout;

use crate::error::AdminError;

/// Counts a wrong credential, and waits until the response may be sent.
///
/// # Errors
/// `TOO_MANY_REQUESTS`, without a wait, when too many responses are being delayed.
pub(crate) async fn delay_failure(
    throttle: &CredentialThrottle,
    client: IpAddr,
    failed: FailedCredential,
) -> Result<(), AdminError> {
    let Some(delayed) = throttle.record_failure(client, failed, Instant::now()) else {
        return Err(AdminError::TooManyRequests(
            "too many wrong credentials are being answered; try again later",
        ));
    };
    let _: Option<()> = timeout(delayed.delay(), pending()).await;
    Ok(())
}
