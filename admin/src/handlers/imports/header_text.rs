//! Reads headers that are text.

use cairn_http1::RequestHead;

use crate::error::AdminError;

/// Returns the value of a header.
///
/// # Errors
/// `INVALID_REQUEST` for one that is not UTF-8.
pub(super) fn text<'h>(head: &'h RequestHead, name: &str) -> Result<Option<&'h str>, AdminError> {
    let value = head.header(name).map(std::str::from_utf8).transpose();
    value.map_err(|_| AdminError::invalid(format!("the header {name} is not UTF-8")))
}
