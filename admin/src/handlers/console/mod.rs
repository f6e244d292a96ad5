//! Routes of the console's listener alone: its session, several reads at once, and uploads from browsers.

mod batch;
mod session;
mod sign_in;
mod upload_id;
mod uploads;

pub(crate) use batch::batch;
pub(crate) use session::{begin, current, end, end_by_id, end_own, list};
pub(crate) use sign_in::{begin_sign_in, end_of_provider, finish_sign_in, members, sign_in};
pub(crate) use uploads::{abort, complete, create, parts, put_part};
