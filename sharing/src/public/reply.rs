//! Responses to visitors.

use cairn_http1::ResponseHead;
use cairn_net::ResponseBody;

/// A response, before it gets the facts for the log.
pub(super) struct Reply {
    pub(super) head: ResponseHead,
    pub(super) body: ResponseBody,
}
