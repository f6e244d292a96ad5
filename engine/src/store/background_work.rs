//! The state of an open store's background work.

use crate::store::activity::Activities;
use crate::store::background::Inspections;
use crate::store::compaction_status::Compactions;
use crate::store::hold_status::Holds;
use crate::store::lifecycle_state::Lifecycle;
use crate::store::pace::Pace;
use crate::store::scrub_status::ScrubStatus;
use std::sync::Arc;

/// The state of each kind of background work.
pub(crate) struct BackgroundWork {
    /// The requests that the work makes room for.
    pub(crate) activities: Arc<Activities>,
    /// The pace of verifications and previews, which clients start.
    pub(crate) on_demand: Pace,
    pub(crate) scrub: ScrubStatus,
    pub(crate) lifecycle: Lifecycle,
    /// The running inspection or repair.
    pub(crate) inspections: Inspections,
    pub(crate) compactions: Compactions,
    pub(crate) holds: Holds,
}
