//! Slows down guesses of credentials: delayed responses, and root credentials that are refused unchecked.

use std::future::pending;
use std::net::IpAddr;
use std::time::Instant;

use cairn_identity::{CredentialThrottle, FailedCredential, RootAttempts};
use cairn_net::timeout;

use crate::error::AdminError;

/// Checks that the root credential of a request may be looked at.
///
/// # Errors
/// `TOO_MANY_REQUESTS` while it is being guessed from the same address.
pub(crate) fn check_root_attempts(throttle: &CredentialThrottle, client: IpAddr) -> Result<(), AdminError> {
    match throttle.root_attempts(client, Instant::now()) {
        RootAttempts::Checked => Ok(()),
        RootAttempts::Refused => Err(AdminError::TooManyRequests(
            "too many wrong credentials came from this address; try again later".into(),
        )),
    }
}

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
            "too many wrong credentials are being answered; try again later".into(),
        ));
    };
    let _: Option<()> = timeout(delayed.delay(), pending()).await;
    Ok(())
}
