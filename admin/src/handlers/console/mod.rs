//! Routes of the console's listener alone: its session, and uploads from browsers.

mod session;
mod upload_id;
mod uploads;

pub(crate) use session::{begin, current, end, end_by_id, list};
pub(crate) use uploads::{abort, complete, create, parts, put_part};
