//! `cairn doctor`: what settings a client needs for a server, and whether everything works with some credentials.
//!
//! The doctor sees the server as S3 clients do. It needs the management plane for nothing, but asks it, if there is a
//! token, for the mode and for what would help after a refusal.

mod check;
mod clients;
mod connection;
mod examination;
mod failed;
mod profile;
mod profile_checks;
mod removal;
mod trip;

pub(crate) use check::{Verdict, as_json, count, lines};
pub(crate) use clients::{Application, Client as S3Client, Facts, Mode, REGION};
pub(crate) use examination::{Examination, Options};
pub(crate) use profile::Profile;
