//! The source of a console session: address, user agent, and session at the OpenID provider.

use std::net::IpAddr;

use cairn_http1::RequestHead;

use crate::limits::USER_AGENT_BYTES_MAX;

/// The client that a session was begun by.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SessionSource {
    pub(super) address: IpAddr,
    /// The beginning of `User-Agent`; empty if the client did not send one.
    pub(super) user_agent: String,
    /// The session at the OpenID provider, if it has named one.
    pub(super) at_provider: Option<String>,
}

impl SessionSource {
    /// Describes the client of a request.
    pub(crate) fn of(address: IpAddr, head: &RequestHead) -> Self {
        let sent = head.header("user-agent").unwrap_or_default();
        let sent = &sent[..sent.len().min(USER_AGENT_BYTES_MAX)];
        let mut user_agent = String::from_utf8_lossy(sent).into_owned();
        user_agent.truncate(user_agent.floor_char_boundary(USER_AGENT_BYTES_MAX));
        Self { address, user_agent, at_provider: None }
    }

    /// Adds the session at the OpenID provider.
    pub(crate) fn at_provider(self, session: Option<String>) -> Self {
        Self { at_provider: session, ..self }
    }
}
