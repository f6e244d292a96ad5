//! `cairn share` and `cairn embed`: manage links, the URLs that give access to one object.

mod embed;
mod list;
mod members;
mod password;
mod share;

pub(crate) use embed::Embed;
pub(crate) use password::with_password_prompt;
pub(crate) use share::Share;
