//! Replies of handlers, and the responses that are made of them.

mod handler_reply;
mod paged_list;
mod response;

pub(crate) use handler_reply::{ChangeRecord, JSON, Reply};
pub(crate) use paged_list::{PAGE_PARTS, continued_list, list_with, paged_list};
pub(crate) use response::{error_body, respond};
