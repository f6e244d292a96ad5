//! The configuration of a run.

use std::sync::Arc;
use std::time::Duration;

use super::shutdown::Shutdown;
use crate::budget::Budget;
use crate::config::Settings;
use crate::load::Mode;

/// The configuration of a run.
pub(super) struct Plan {
    pub(super) settings: Arc<Settings>,
    pub(super) budget: Budget,
    pub(super) mode: Mode,
    /// The limit of the service manager's watchdog, if it has one.
    pub(super) watchdog: Option<Duration>,
    pub(super) shutdown: Shutdown,
}
