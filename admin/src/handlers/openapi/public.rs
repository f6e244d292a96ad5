//! The operations of visitors of shares, which the crate `sharing` answers. They are only described here.
//!
//! Embeds are on the data plane, which this document is not about.

use http::Method;

use crate::operation::{Access, Operation};

const fn public(name: &'static str, method: Method, path: &'static str) -> Operation {
    Operation { name, method, path, access: Access::Public, recorded_as: None }
}

/// Every such operation. The token in the path is the whole authorization.
pub(crate) static PUBLIC_OPERATIONS: &[Operation] = &[
    public("get_share_descriptor", Method::GET, "/s/{token}"),
    public("unlock_share", Method::POST, "/s/{token}/unlock"),
    public("get_share_content", Method::GET, "/s/{token}/content"),
];
