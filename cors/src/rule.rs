//! One CORS rule, as the bucket's record contains it.

use serde::{Deserialize, Serialize};

/// One rule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// A name, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The origins of pages: each exactly, or `*` for all.
    pub origins: Vec<String>,
    /// The methods that pages may use.
    pub methods: Vec<String>,
    /// Patterns of the request headers that pages may send, with at most one `*` each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_headers: Vec<String>,
    /// The response headers that pages may read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expose_headers: Vec<String>,
    /// The time for which browsers may remember the answer to a preflight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_age_seconds: Option<u32>,
}
