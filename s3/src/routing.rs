//! Which operation a request asks for: the rows of `operations.rs` applied to method, resource, query and headers.
//!
//! Query parameters that no row names (`x-id`, `metadata`, …) do not route. One that some row names does, on
//! every method and resource: either it finds its row, or the request is refused.

use crate::errors::{ErrorCode, S3Error};
use crate::fields::Fields;
use crate::operations::{Handling, OPERATIONS, OTHER_SUBRESOURCE, Operation, Selector};
use crate::query::Query;
use crate::target::Resource;
use crate::version::VERSION_ID;
use cairn_http1::Method;

/// Where a request goes.
#[derive(Debug)]
pub(crate) enum Route {
    /// To the operation of this row.
    Operation(&'static Operation),
    /// Nowhere: a known subresource without a row for this method and resource.
    UnknownSubresource,
    /// Nowhere: the subresource of this name is one of another resource.
    OtherResource { name: &'static str, resource: Resource },
    /// Nowhere: the method goes with one of these subresources and not with the others.
    Conflicting(Vec<&'static str>),
    /// Nowhere: the operation means no version.
    NoVersion,
    /// Nowhere: the resource, or its subresource, does not have the method. The ones that it has are given.
    MethodNotAllowed { allow: String },
}

/// Finds the route of a request.
pub(crate) fn route(method: &Method, resource: Resource, query: &Query<'_>, fields: Fields<'_>) -> Route {
    match operation(method, resource, query, fields) {
        Route::Operation(Operation { handling: Handling::Built(handler, _), .. })
            if query.has(VERSION_ID) && !handler.takes_version() =>
        {
            Route::NoVersion
        }
        route => route,
    }
}

fn operation(method: &Method, resource: Resource, query: &Query<'_>, fields: Fields<'_>) -> Route {
    let fits = |row: &Operation| row.method == *method && row.resource == resource;
    let find = |wanted: &dyn Fn(&Operation) -> bool| OPERATIONS.iter().find(|row| fits(row) && wanted(row));

    // A preflight asks about the request that is to follow, whose query this is.
    let subresources: Vec<&'static str> = match *method {
        Method::OPTIONS => Vec::new(),
        _ => query.iter().filter_map(|(name, _)| known_subresource(name)).collect(),
    };
    if !subresources.is_empty() {
        let named = |row: &Operation| match row.selector {
            Selector::Query(name) => subresources.contains(&name),
            Selector::QueryBeside(name, beside) => subresources.contains(&name) && query.has(beside),
            Selector::QueryAndHeader(name, header) => {
                subresources.contains(&name) && fields.amz(header).is_some()
            }
            Selector::Plain | Selector::QueryValue(..) | Selector::Header(_) => false,
        };
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
        return match of_other_resource(method, resource, &subresources) {
            Some(name) => Route::OtherResource { name, resource },
            None if find(&named).is_some() => Route::Conflicting(subresources),
            None => method_not_allowed(|row| row.resource == resource && named(row)),
        };
    }
    let selected = |row: &Operation| match row.selector {
        Selector::Plain | Selector::Query(_) | Selector::QueryBeside(..) | Selector::QueryAndHeader(..) => {
            false
        }
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

/// The first of these subresources that this resource does not have, or has for other methods while another resource has
/// it for this one.
fn of_other_resource(
    method: &Method,
    resource: Resource,
    subresources: &[&'static str],
) -> Option<&'static str> {
    let has = |name: &'static str, wanted: &dyn Fn(&Operation) -> bool| {
        OPERATIONS.iter().any(|row| row.selector == Selector::Query(name) && wanted(row))
    };
    subresources.iter().copied().find(|name| {
        let here = has(name, &|row| row.resource == resource);
        let here_with_method = has(name, &|row| row.resource == resource && row.method == *method);
        let elsewhere = has(name, &|row| row.resource != resource && row.method == *method);
        !here || (elsewhere && !here_with_method)
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
            Self::UnknownSubresource
            | Self::OtherResource { .. }
            | Self::Conflicting(_)
            | Self::NoVersion
            | Self::MethodNotAllowed { .. } => "unknown",
        }
    }

    /// The operation as metrics name it: those that are not built share one word, so that no client can make a series for each.
    pub(crate) fn counted_operation(&self) -> &'static str {
        match self {
            Self::Operation(row) if row.is_built() => row.name,
            _ => "not_built",
        }
    }

    /// The error of a route that leads to nothing that is built; `None` for one that does.
    pub(crate) fn refusal(&self, method: &Method) -> Option<S3Error> {
        match self {
            Self::Operation(row) => match row.handling {
                Handling::Built(..) | Handling::Preflight => None,
                Handling::NotBuilt(message) => {
                    Some(S3Error::not_implemented(message).element("Operation", row.name))
                }
            },
            Self::UnknownSubresource => Some(S3Error::not_implemented(OTHER_SUBRESOURCE)),
            Self::OtherResource { name, resource } => {
                let message = format!("There is no such thing as the ?{name} sub-resource for {resource}");
                Some(S3Error::with_message(ErrorCode::InvalidRequest, message))
            }
            Self::Conflicting(names) => {
                let names = names.join(", ");
                let message = format!("Conflicting query string parameters: {names}");
                Some(S3Error::invalid_argument("ResourceType", &names, message))
            }
            Self::NoVersion => {
                let message = "This operation does not accept a version-id.";
                Some(
                    S3Error::with_message(ErrorCode::InvalidArgument, message)
                        .element("ArgumentName", VERSION_ID),
                )
            }
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
        "delete",
        "encryption",
        "intelligent-tiering",
        "inventory",
        "lifecycle",
        "logging",
        "metadataConfiguration",
        "metadataInventoryTable",
        "metadataJournalTable",
        "metadataTable",
        "metrics",
        "notification",
        "ownershipControls",
        "policy",
        "policyStatus",
        "publicAccessBlock",
        "renameObject",
        "replication",
        "requestPayment",
        "restore",
        "select",
        "session",
        "tagging",
        "torrent",
        "website",
    ];

    const METHODS: &[Method] =
        &[Method::GET, Method::HEAD, Method::PUT, Method::POST, Method::DELETE, Method::PATCH];

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
                Handling::Built(handler, _) => Some(handler),
                Handling::Preflight | Handling::NotBuilt(_) => None,
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
        for query in ["partNumber=1", "uploadId=u", "partNumber=1&uploadId=u", "uploadId=u&partNumber"] {
            assert_eq!(handler(&Method::PUT, Object, query), Some(Handler::UploadPart), "{query}");
        }
        for method in [Method::DELETE, Method::POST] {
            assert_eq!(status(&method, Object, "partNumber=1"), Some(405), "{method}");
            // It was a 405 that allowed the method.
            assert_eq!(status(&method, Object, "partNumber=1&uploadId=u"), Some(400), "{method}");
        }
        assert_eq!(handler(&Method::GET, Object, "partNumber=1&uploadId=u"), Some(Handler::ListParts));
    }

    #[test]
    fn the_subresources_of_uploads_select_their_operations() {
        for (method, resource, query, expected) in [
            (Method::POST, Object, "uploads", Handler::CreateMultipartUpload),
            (Method::POST, Object, "uploads=&x-id=CreateMultipartUpload", Handler::CreateMultipartUpload),
            (Method::POST, Object, "uploadId=u", Handler::CompleteMultipartUpload),
            (Method::DELETE, Object, "uploadId=u", Handler::AbortMultipartUpload),
            (Method::GET, Object, "uploadId=u", Handler::ListParts),
            (Method::GET, Bucket, "uploads&prefix=a", Handler::ListMultipartUploads),
        ] {
            assert_eq!(handler(&method, resource, query), Some(expected), "{method} ?{query}");
        }
        for (method, resource, query) in [
            (Method::GET, Object, "uploads"),
            (Method::POST, Bucket, "uploads"),
            (Method::PUT, Bucket, "uploadId=u"),
        ] {
            let refused = routed(&method, resource, query, &[]).refusal(&method).expect("refused");
            assert_eq!((refused.status(), refused.code()), (400, "InvalidRequest"), "{method} ?{query}");
        }
        assert_eq!(status(&Method::HEAD, Object, "uploadId=u"), Some(405));
    }

    #[test]
    fn methods_that_a_resource_does_not_have_are_405_with_allow() {
        for (method, resource, query, expected) in [
            (Method::PUT, Service, "", "GET, OPTIONS"),
            (Method::HEAD, Service, "", "GET, OPTIONS"),
            (Method::PATCH, Bucket, "", "PUT, HEAD, DELETE, OPTIONS"),
            (Method::POST, Object, "", "PUT, GET, HEAD, DELETE, OPTIONS"),
            (Method::PATCH, Object, "", "PUT, GET, HEAD, DELETE, OPTIONS"),
            (Method::PUT, Bucket, "location", "GET"),
            (Method::DELETE, Bucket, "versioning", "GET, PUT"),
            (Method::PUT, Bucket, "versions", "GET"),
            (Method::DELETE, Object, "retention", "GET, PUT"),
        ] {
            match routed(&method, resource, query, &[]) {
                Route::MethodNotAllowed { allow } => assert_eq!(allow, expected),
                other => panic!("{method} {resource:?} ?{query}: {other:?}"),
            }
        }
    }

    #[test]
    fn copies_and_appends_never_become_plain_puts() {
        let put = |query: &str, headers: &[(&str, &[u8])]| match routed(&Method::PUT, Object, query, headers)
        {
            Route::Operation(row) => row.name,
            other => panic!("{other:?}"),
        };
        for (header, parameter, operation) in [
            ("x-amz-copy-source", "X-Amz-Copy-Source=v", "CopyObject"),
            ("x-amz-write-offset-bytes", "X-AMZ-WRITE-OFFSET-BYTES=v", "AppendObject"),
        ] {
            assert_eq!(put("", &[(header, b"v")]), operation);
            assert_eq!(put(parameter, &[]), operation);
        }
        assert_eq!(put("partNumber=1&uploadId=u", &[("x-amz-copy-source", b"v")]), "UploadPartCopy");
    }

    #[test]
    fn forms_and_tokens_are_refused() {
        assert_eq!(status(&Method::POST, Bucket, ""), Some(501));
        assert_eq!(status(&Method::POST, Service, ""), Some(501));
    }

    #[test]
    fn a_preflight_is_one_whatever_the_request_that_follows_asks_for() {
        for query in ["", "acl", "uploadId=u&partNumber=1", "versionId=null&x-id=GetObject", "location"] {
            for resource in [Service, Bucket, Object] {
                match routed(&Method::OPTIONS, resource, query, &[]) {
                    Route::Operation(row) => assert_eq!(row.handling, Handling::Preflight),
                    other => panic!("{resource:?} ?{query}: {other:?}"),
                }
            }
        }
    }

    /// `GET /bucket/key?versions` must never become GetObject, nor be told that versions are not implemented.
    #[test]
    fn a_subresource_of_another_resource_is_an_invalid_request() {
        for (method, resource, query) in [
            (Method::GET, Object, "versions"),
            (Method::PUT, Object, "versions"),
            (Method::GET, Object, "versioning"),
            (Method::DELETE, Object, "cors"),
            (Method::GET, Object, "location&versionId=null"),
            (Method::PUT, Bucket, "retention"),
            (Method::GET, Service, "versions"),
        ] {
            let refused = routed(&method, resource, query, &[]).refusal(&method).expect(query);
            assert_eq!((refused.status(), refused.code()), (400, "InvalidRequest"), "{method} ?{query}");
        }
    }

    #[test]
    fn a_version_id_goes_to_operations_that_mean_a_version_and_to_no_other() {
        for (method, query, expected) in [
            (Method::GET, "versionId=v", Handler::GetObject),
            (Method::GET, "versionId=v&partNumber=1", Handler::GetObject),
            (Method::HEAD, "versionId", Handler::HeadObject),
            (Method::DELETE, "versionId=", Handler::DeleteObject),
            (Method::PUT, "retention&versionId=v", Handler::PutObjectRetention),
            (Method::GET, "partNumber=1&versionId=v&legal-hold", Handler::GetObjectLegalHold),
        ] {
            assert_eq!(handler(&method, Object, query), Some(expected), "{method} ?{query}");
        }
        for (method, resource) in [(Method::PUT, Object), (Method::PUT, Bucket), (Method::DELETE, Bucket)] {
            let refused = routed(&method, resource, "versionId=null", &[]).refusal(&method).expect("refused");
            assert_eq!((refused.status(), refused.code()), (400, "InvalidArgument"), "{method} {resource:?}");
        }
        assert_eq!(status(&Method::PUT, Object, "tagging&versionId=null"), Some(501));
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
