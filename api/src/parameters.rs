//! Parameters of queries that are not texts. Only their schemas are used.

use schemars::JsonSchema;

use crate::events::EventType;

/// Most entries of a page.
#[derive(JsonSchema)]
#[schemars(inline)]
pub struct PageLimit(#[schemars(range(min = 1, max = 1000))] pub u32);

/// Most keys that a count examines.
#[derive(JsonSchema)]
#[schemars(inline)]
pub struct MaxKeys(#[schemars(range(min = 1, max = 10_000_000))] pub u32);

/// Most entries that an inspection examines.
#[derive(JsonSchema)]
#[schemars(inline)]
pub struct MaximumEntries(#[schemars(range(min = 1, max = 1_000_000_000))] pub u32);

/// The number of seconds that a request waits for an event.
#[derive(JsonSchema)]
#[schemars(inline)]
pub struct WaitSeconds(#[schemars(range(max = 30))] pub u32);

/// The types of events that are returned.
#[derive(JsonSchema)]
#[schemars(inline)]
pub struct EventTypes(#[schemars(length(min = 1, max = 8))] pub Vec<EventType>);

/// A text or a pattern that keys are compared with.
#[derive(JsonSchema)]
#[schemars(inline)]
pub struct KeyText(#[schemars(length(min = 1, max = 1024))] pub String);

/// The operations whose records are returned.
#[derive(JsonSchema)]
#[schemars(inline)]
pub struct OperationNames(#[schemars(length(min = 1, max = 50))] pub Vec<String>);

/// A text that entries contain.
#[derive(JsonSchema)]
#[schemars(inline)]
pub struct ContainedText(#[schemars(length(min = 1, max = 256))] pub String);

/// A size in bytes.
#[derive(JsonSchema)]
#[schemars(inline)]
pub struct Bytes(#[schemars(range(max = 1_000_000_000_000_000_i64))] pub u64);

/// A content type, or a pattern such as image/*.
#[derive(JsonSchema)]
#[schemars(inline)]
pub struct ContentType(#[schemars(length(min = 1, max = 255))] pub String);

/// A text that keys begin with.
#[derive(JsonSchema)]
#[schemars(inline)]
pub struct Prefix(#[schemars(length(max = 1024))] pub String);

/// The number of intervals that are counted.
#[derive(JsonSchema)]
#[schemars(inline)]
pub struct ChangeSteps(#[schemars(range(min = 1, max = 168))] pub u32);
