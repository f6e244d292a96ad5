//! State that all connections of a run share.

use std::sync::atomic::AtomicU64;
use std::sync::{Barrier, OnceLock};

use super::arrivals::Arrivals;
use crate::http::request::PreparedHeads;
use crate::measure::statistics::{Live, Window};
use crate::objects::content::Content;
use crate::plan::Plan;

/// State that all connections of a run share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) plan: Plan,
    pub(crate) content: Content,
    pub(crate) prepared: Option<PreparedHeads>,
    /// The next key number of the whole run.
    pub(crate) tickets: AtomicU64,
    /// The number of requests of the whole run, for `--requests`.
    pub(crate) requests: AtomicU64,
    /// The times when requests are due, in an open loop.
    pub(crate) arrivals: Option<Arrivals>,
    pub(crate) live: Vec<Live>,
    /// Waited on twice: when all connections are open, and when the window is set.
    pub(crate) barrier: Barrier,
    pub(crate) window: OnceLock<Window>,
}
