//! The loader thread: reads due deliveries, and starts delivery threads.

use super::context::Context;
use super::lanes::Load;
use super::worker;
use crate::limits::{FAILURE_WAIT, LANE_DELIVERIES_MAX};
use crate::store::Waiting;
use std::sync::Arc;

/// Loads deliveries until the lanes are closed.
pub(super) fn run(context: &Arc<Context>) {
    while let Some(loads) = context.lanes.next_loads() {
        for load in loads {
            read(context, &load);
            worker::start_if_needed(context);
        }
        worker::start_if_needed(context);
    }
}

/// Reads the deliveries of a lane that are due.
fn read(context: &Context, load: &Load) {
    let &Load { webhook, begun, .. } = load;
    let dropped_until = context.shared().webhook(webhook).map(|found| found.health.dropped_until);
    let now = context.shared().clock.now();
    let (mut found, mut next_due, mut is_cut) = (Vec::<Waiting>::new(), None, false);
    let visited = context.shared().store.for_each_pending(webhook, begun, |waiting| {
        let is_in_memory = load.taken.contains(&waiting.id);
        // The others do not count: a load that finds nothing else would be repeated at once.
        let is_wanted = !is_in_memory && dropped_until.is_none_or(|until| waiting.queued_at > until);
        if waiting.due > now {
            next_due = Some(waiting.due);
        } else if is_wanted && found.len() < LANE_DELIVERIES_MAX {
            found.push(waiting);
        } else {
            is_cut = is_wanted;
        }
        next_due.is_none() && !is_cut
    });
    if let Err(error) = visited {
        tracing::error!(target: "service::webhooks", %error, "waiting deliveries could not be read");
        next_due = Some(context.after(FAILURE_WAIT));
    }
    context.lanes.loaded(load, found, next_due, is_cut);
}
