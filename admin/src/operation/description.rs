//! Parameters, bodies and answers of an operation.

use cairn_api::{JsonSchema, TypeSchema, schema_of};

/// The body of a request or a response.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Content {
    /// JSON of this type.
    Json(TypeSchema),
    /// Plain text.
    Text,
    /// Bytes of any type.
    Bytes,
}

/// The number of times that a query parameter may be given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Occurrence {
    /// At most once.
    Optional,
    /// Once. The handler says what is missing.
    Required,
    /// Any number of times.
    Repeated,
    /// Once for each name that begins with this one. The document does not have it: OpenAPI cannot describe it.
    Family,
}

/// A query parameter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueryParameter {
    pub(crate) name: &'static str,
    pub(crate) schema: TypeSchema,
    pub(crate) occurrence: Occurrence,
}

impl QueryParameter {
    /// Returns whether `name`, as sent, is one of this parameter.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        match self.occurrence {
            Occurrence::Family => name.starts_with(self.name),
            _ => name == self.name,
        }
    }
}

const fn parameter<T: JsonSchema>(name: &'static str, occurrence: Occurrence) -> QueryParameter {
    QueryParameter { name, schema: schema_of::<T>(), occurrence }
}

pub(crate) const fn optional<T: JsonSchema>(name: &'static str) -> QueryParameter {
    parameter::<T>(name, Occurrence::Optional)
}

pub(crate) const fn required<T: JsonSchema>(name: &'static str) -> QueryParameter {
    parameter::<T>(name, Occurrence::Required)
}

pub(crate) const fn repeated<T: JsonSchema>(name: &'static str) -> QueryParameter {
    parameter::<T>(name, Occurrence::Repeated)
}

pub(crate) const fn family<T: JsonSchema>(name: &'static str) -> QueryParameter {
    parameter::<T>(name, Occurrence::Family)
}

/// The body of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestBody {
    pub(crate) content: Content,
    pub(crate) is_required: bool,
}

/// A successful response.
#[derive(Debug)]
pub(crate) struct Success {
    pub(crate) status: u16,
    pub(crate) meaning: &'static str,
    pub(crate) content: Option<Content>,
}

/// Status and code of an error.
pub(crate) type ErrorCode = (u16, &'static str);
