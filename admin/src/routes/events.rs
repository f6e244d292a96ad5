//! Routes of storage events.

use cairn_api::*;

use super::Route;
use super::row::*;
use crate::handlers::{events, objects};

pub(super) static ROUTES: &[Route] = &[
    get("/api/v1/events", ALL, "list_events")
        .summary("Returns storage events, the oldest or the latest first. Can wait for the next one.")
        .query(&[
            optional::<Time>("since"),
            optional::<Time>("until"),
            repeated::<EventTypes>("type"),
            optional::<String>("bucket"),
            optional::<String>("prefix"),
            optional::<String>("principal"),
            optional::<ContainedText>("contains"),
            optional::<EventOrder>("order"),
            optional::<Time>("after_time"),
            optional::<Id>("after_id"),
            optional::<Time>("before_time"),
            optional::<Id>("before_id"),
            optional::<PageLimit>("limit"),
            optional::<WaitSeconds>("wait_seconds"),
        ])
        .answers(&[ok::<EventPage>()], &[(400, "INVALID_EVENT_CURSOR")])
        .handler(boxed!(events::list)),
    get("/api/v1/events/changes", ALL, "count_all_changes")
        .summary(
            "Counts the changes of objects of all buckets between two times, and names the largest \
             deletions.",
        )
        .query(&[required::<Time>("since"), optional::<Time>("until"), optional::<ChangeSteps>("steps")])
        .answers(&[ok::<Changes>()], &[])
        .handler(boxed!(objects::changes::of_store)),
];
