//! The sizes that a policy limits itself to, with the reason.

/// Longest name in characters, all of them ASCII: names stand in logs and audit records, whose fields are bounded.
pub const NAME_CHARACTERS_MAX: usize = 128;
/// Longest description in characters: a paragraph for people.
pub const DESCRIPTION_CHARACTERS_MAX: usize = 1024;
/// Most statements of a policy. More belong into a second one.
pub const STATEMENTS_MAX: usize = 100;
/// Most resources of a statement. With all statements full, a policy takes some megabytes of memory at the longest keys;
/// a request body of 1 MiB is the nearer limit.
pub const STATEMENT_RESOURCES_MAX: usize = 100;
