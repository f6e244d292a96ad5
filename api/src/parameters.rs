//! Parameters of queries that are not texts. Only their schemas are used.

use schemars::JsonSchema;

use crate::events::EventType;

/// Most entries of a page.
#[derive(JsonSchema)]
#[schemars(inline)]
pub struct PageLimit(#[schemars(range(min = 1, max = 1000))] pub u32);

/// Most entries that an inspection examines.
#[derive(JsonSchema)]
#[schemars(inline)]
pub struct MaximumEntries(#[schemars(range(min = 1, max = 1_000_000_000))] pub u32);

/// How long a request waits for an event.
#[derive(JsonSchema)]
#[schemars(inline)]
pub struct WaitSeconds(#[schemars(range(max = 30))] pub u32);

/// The types of events that are returned.
#[derive(JsonSchema)]
#[schemars(inline)]
pub struct EventTypes(#[schemars(length(min = 1, max = 8))] pub Vec<EventType>);
