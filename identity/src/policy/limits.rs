//! Limits on the size of a policy, with the reasons.

/// Longest name in characters, all of them ASCII. Names are written to logs and audit records, whose fields are bounded.
pub const NAME_CHARACTERS_MAX: usize = 128;
/// Longest description in characters: a paragraph for people.
pub const DESCRIPTION_CHARACTERS_MAX: usize = 1024;
/// Most statements of a policy. More can be put into a second policy.
pub const STATEMENTS_MAX: usize = 100;
/// Most resources of a statement. A policy with all statements full and the longest keys takes several megabytes of memory,
/// but the request body limit of 1 MiB is reached first.
pub const STATEMENT_RESOURCES_MAX: usize = 100;
/// Most networks of a statement's `source_ip`. A decision compares the client's address with all of them.
pub const STATEMENT_NETWORKS_MAX: usize = 64;
