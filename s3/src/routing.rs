//! Which operation a request asks for: the rows of `operations.rs` applied to method, resource, query and headers.
//!
//! Query parameters that no row names (`x-id`, `metadata`, …) do not route. One that some row names does, on
//! every method and resource: either it finds its row, or the request is refused.

use crate::errors::{ErrorCode, S3Error};
use crate::fields::Fields;
use crate::operations::{Handling, OPERATIONS, OTHER_SUBRESOURCE, Operation, Selector};
use crate::query::Query;
use crate::target::Resource;
use cairn_http1::Method;

/// Where a request goes.
#[derive(Debug)]
pub(crate) enum Route {
    /// To the operation of this row.
    Operation(&'static Operation),
    /// Nowhere: a known subresource without a row for this method and resource.
    UnknownSubresource,
    /// Nowhere: the resource, or its subresource, does not have the method. The ones that it has are given.
    MethodNotAllowed { allow: String },
}

/// Finds the route of a request.
pub(crate) fn route(method: &Method, resource: Resource, query: &Query<'_>, fields: Fields<'_>) -> Route {
    let fits = |row: &Operation| row.method == *method && row.resource == resource;
    let find = |wanted: &dyn Fn(&Operation) -> bool| OPERATIONS.iter().find(|row| fits(row) && wanted(row));

    let subresources: Vec<&'static str> =
        query.iter().filter_map(|(name, _)| known_subresource(name)).collect();
    if !subresources.is_empty() {
        let named = |row: &Operation| subresources.iter().any(|name| row.selector == Selector::Query(name));
        // A request that names one that is not built beside one that is, gets the refusal.
        if let Some(row) = find(&|row| !row.is_built() && named(row)) {
            return Route::Operation(row);
        }
        let all_built = subresources
            .iter()
            .all(|name| find(&|row| row.is_built() && row.selector == Selector::Query(name)).is_some());
        if let (true, Some(row)) = (all_built, find(&named)) {
            return Route::Operation(row);
        }
        if OPERATIONS.iter().any(|row| !row.is_built() && named(row)) {
            return Route::UnknownSubresource;
        }
        return method_not_allowed(|row| row.resource == resource && named(row));
    }
    let selected = |row: &Operation| match row.selector {
        Selector::Plain | Selector::Query(_) => false,
        Selector::QueryValue(name, value) => query.get(name) == Some(value),
        Selector::Header(name) => fields.amz(name).is_some(),
    };
    match find(&selected).or_else(|| find(&|row| row.selector == Selector::Plain)) {
        Some(row) => Route::Operation(row),
        None => method_not_allowed(|row| row.resource == resource && row.selector == Selector::Plain),
    }
}

/// The name as the table has it, if some row is selected by it.
fn known_subresource(name: &str) -> Option<&'static str> {
    // The parameters of a presigned URL are the usual ones, and no subresource begins so.
    if name.starts_with("X-Amz-") {
        return None;
    }
    OPERATIONS.iter().find_map(|row| match row.selector {
        Selector::Query(known) if known == name => Some(known),
        _ => None,
    })
}

fn method_not_allowed(has: impl Fn(&Operation) -> bool) -> Route {
    let mut allow: Vec<&str> = Vec::new();
    for row in OPERATIONS.iter().filter(|row| row.is_built() && has(row)) {
        if !allow.contains(&row.method.as_str()) {
            allow.push(row.method.as_str());
        }
    }
    Route::MethodNotAllowed { allow: allow.join(", ") }
}

impl Route {
    /// The name of the operation that is asked for, as far as there is one.
    pub(crate) const fn operation_name(&self) -> &'static str {
        match self {
            Self::Operation(row) => row.name,
            Self::UnknownSubresource | Self::MethodNotAllowed { .. } => "unknown",
        }
    }

    /// The error of a route that leads to nothing that is built; `None` for one that does.
    pub(crate) fn refusal(&self, method: &Method) -> Option<S3Error> {
        match self {
            Self::Operation(row) => match row.handling {
                Handling::Built(_) => None,
                Handling::NotBuilt(message) => {
                    Some(S3Error::not_implemented(message).element("Operation", row.name))
                }
            },
            Self::UnknownSubresource => Some(S3Error::not_implemented(OTHER_SUBRESOURCE)),
            Self::MethodNotAllowed { allow } => Some(
                S3Error::new(ErrorCode::MethodNotAllowed)
                    .element("Method", method.as_str())
                    .header("allow", allow.clone()),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Route, route};
    use crate::fields::Fields;
    use crate::operations::{Handler, Handling, OPERATIONS, Selector};
    use crate::query::Query;
    use crate::target::Resource::{self, Bucket, Object, Service};
    use cairn_http1::Method;

    /// Every subresource of the S3 API Reference, beside those of operations that are built.
    const SUBRESOURCES: &[&str] = &[
        "abac",
        "accelerate",
        "acl",
        "analytics",
        "attributes",
        "cors",
        "delete",
        "encryption",
        "intelligent-tiering",
        "inventory",
        "legal-hold",
        "lifecycle",
        "logging",
        "metadataConfiguration",
        "metadataInventoryTable",
        "metadataJournalTable",
        "metadataTable",
        "metrics",
        "notification",
        "object-lock",
        "ownershipControls",
        "policy",
        "policyStatus",
        "publicAccessBlock",
        "renameObject",
        "replication",
        "requestPayment",
        "restore",
        "retention",
        "select",
        "session",
        "tagging",
        "torrent",
        "uploadId",
        "uploads",
        "versionId",
        "versioning",
        "versions",
        "website",
    ];

    const METHODS: &[Method] = &[
        Method::GET,
        Method::HEAD,
        Method::PUT,
        Method::POST,
        Method::DELETE,
        Method::OPTIONS,
        Method::PATCH,
    ];

    fn routed(method: &Method, resource: Resource, query: &str, headers: &[(&str, &[u8])]) -> Route {
        let query = Query::parse(Some(query)).expect("parses");
        route(method, resource, &query, Fields::new(headers, &query))
    }

    fn status(method: &Method, resource: Resource, query: &str) -> Option<u16> {
        routed(method, resource, query, &[]).refusal(method).map(|error| error.status())
    }

    fn handler(method: &Method, resource: Resource, query: &str) -> Option<Handler> {
        match routed(method, resource, query, &[]) {
            Route::Operation(row) => match row.handling {
                Handling::Built(handler) => Some(handler),
                Handling::NotBuilt(_) => None,
            },
            _ => None,
        }
    }

    #[test]
    fn a_known_subresource_is_refused_on_every_method_and_resource() {
        for name in SUBRESOURCES {
            for method in METHODS {
                for resource in [Service, Bucket, Object] {
                    for query in [
                        (*name).to_owned(),
                        format!("{name}="),
                        format!("{name}=x&x-id=GetObject"),
                        format!("list-type=2&prefix=a&{name}"),
                        format!("partNumber=1&{name}=1"),
                        format!("location&{name}"),
                    ] {
                        let found = status(method, resource, &query);
                        assert_eq!(found, Some(501), "{method} {resource:?} ?{query}");
                    }
                }
            }
        }
    }

    #[test]
    fn plain_requests_and_unknown_parameters_reach_the_built_operations() {
        for query in ["", "x-id=GetObject", "metadata=1", "prefix=a&X-Amz-Date=1"] {
            assert_eq!(handler(&Method::GET, Service, query), Some(Handler::ListBuckets));
            assert_eq!(handler(&Method::PUT, Bucket, query), Some(Handler::CreateBucket));
            assert_eq!(handler(&Method::HEAD, Bucket, query), Some(Handler::HeadBucket));
            assert_eq!(handler(&Method::DELETE, Bucket, query), Some(Handler::DeleteBucket));
            assert_eq!(handler(&Method::PUT, Object, query), Some(Handler::PutObject));
            assert_eq!(handler(&Method::GET, Object, query), Some(Handler::GetObject));
            assert_eq!(handler(&Method::HEAD, Object, query), Some(Handler::HeadObject));
            assert_eq!(handler(&Method::DELETE, Object, query), Some(Handler::DeleteObject));
        }
        assert_eq!(handler(&Method::GET, Bucket, "location"), Some(Handler::GetBucketLocation));
        assert_eq!(handler(&Method::GET, Bucket, "prefix=a&list-type=2"), Some(Handler::ListObjectsV2));
    }

    #[test]
    fn a_list_without_list_type_2_is_refused() {
        for query in ["", "list-type=1", "list-type=", "list-type", "prefix=a&max-keys=1", "list-type=3"] {
            assert_eq!(status(&Method::GET, Bucket, query), Some(501), "{query}");
        }
    }

    #[test]
    fn a_part_number_reads_a_part_and_never_writes_an_object() {
        assert_eq!(handler(&Method::GET, Object, "partNumber=1"), Some(Handler::GetObject));
        assert_eq!(handler(&Method::HEAD, Object, "partNumber=1"), Some(Handler::HeadObject));
        for method in [Method::PUT, Method::DELETE, Method::POST] {
            assert_eq!(status(&method, Object, "partNumber=1"), Some(501), "{method}");
            assert_eq!(status(&method, Object, "partNumber=1&uploadId=u"), Some(501), "{method}");
        }
        assert_eq!(status(&Method::GET, Object, "partNumber=1&uploadId=u"), Some(501));
    }

    #[test]
    fn methods_that_a_resource_does_not_have_are_405_with_allow() {
        for (method, resource, query, expected) in [
            (Method::PUT, Service, "", "GET"),
            (Method::HEAD, Service, "", "GET"),
            (Method::PATCH, Bucket, "", "PUT, HEAD, DELETE"),
            (Method::POST, Object, "", "PUT, GET, HEAD, DELETE"),
            (Method::PATCH, Object, "", "PUT, GET, HEAD, DELETE"),
            (Method::PUT, Bucket, "location", "GET"),
        ] {
            match routed(&method, resource, query, &[]) {
                Route::MethodNotAllowed { allow } => assert_eq!(allow, expected),
                other => panic!("{method} {resource:?} ?{query}: {other:?}"),
            }
        }
    }

    #[test]
    fn copies_and_appends_never_become_plain_puts() {
        for name in ["x-amz-copy-source", "x-amz-write-offset-bytes"] {
            let by_header = routed(&Method::PUT, Object, "", &[(name, b"v")]);
            assert_eq!(by_header.refusal(&Method::PUT).map(|error| error.status()), Some(501), "{name}");
            let hoisted = format!("{}=v", name.to_ascii_uppercase());
            assert_eq!(status(&Method::PUT, Object, &hoisted), Some(501), "{name}");
        }
    }

    #[test]
    fn forms_tokens_and_preflights_are_refused() {
        assert_eq!(status(&Method::POST, Bucket, ""), Some(501));
        assert_eq!(status(&Method::POST, Service, ""), Some(501));
        for resource in [Service, Bucket, Object] {
            assert_eq!(status(&Method::OPTIONS, resource, ""), Some(501));
        }
    }

    #[test]
    fn every_refusal_says_what_works_instead() {
        for row in OPERATIONS {
            if let Handling::NotBuilt(message) = row.handling {
                assert!(message.contains(": ") && message.ends_with('.'), "{}", row.name);
                assert!(!message.contains("  "), "{}", row.name);
            }
        }
    }

    #[test]
    fn no_two_rows_ask_for_the_same_request() {
        for (at, row) in OPERATIONS.iter().enumerate() {
            let same = |other: &&crate::operations::Operation| {
                (&other.method, other.resource, other.selector) == (&row.method, row.resource, row.selector)
            };
            assert!(!OPERATIONS[..at].iter().any(|other| same(&other)), "{} {:?}", row.name, row.selector);
        }
        assert!(OPERATIONS.iter().any(|row| row.selector == Selector::Plain));
    }
}
