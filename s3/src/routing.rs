//! Selects the operation of a request: applies the rows of `operations.rs` to method, resource, query and headers.
//!
//! Query parameters that no row names (`x-id`, `metadata=true`, …) are ignored here. A parameter that any row names always
//! counts, on every method and resource: either it selects a row, or the request is refused. So is a change with another
//! parameter that has no value: S3 gets new subresources, and to ignore one would replace or delete something else. Names
//! that begin with `x-` are for the logs of the client (AWS, "Custom access log information").

use crate::compatibility::Compatibility;
use crate::errors::{ErrorCode, S3Error};
use crate::headers::version::VERSION_ID;
use crate::operations::{Handling, Implementation, Input, OTHER_SUBRESOURCE, Operation, Selector};
use crate::request::fields::Fields;
use crate::request::query::Query;
use crate::request::target::Resource;
use crate::request::unsupported_headers::AcceptedBody;
use cairn_http1::Method;
use cairn_identity::PayloadDigest;

/// The result of routing.
#[derive(Debug)]
pub(crate) enum Route {
    /// The operation of this row.
    Operation(&'static Operation),
    /// Refused: a subresource without a row for this method and resource.
    UnknownSubresource,
    /// Refused: the subresource of this name belongs to another resource.
    OtherResource { name: &'static str, resource: Resource },
    /// Refused: the method is allowed for some of these subresources only.
    Conflicting(Vec<&'static str>),
    /// Refused: the operation does not accept a version.
    NoVersion,
    /// Refused: the resource, or its subresource, does not have the method. `allow` lists the methods that it has, and
    /// `resource_type` is its name in capitals.
    MethodNotAllowed { allow: String, resource_type: String },
}

/// Finds the route of a request in this mode.
pub(crate) fn route(
    mode: Compatibility,
    method: &Method,
    resource: Resource,
    query: &Query<'_>,
    fields: Fields<'_>,
) -> Route {
    match operation(mode.operations(), method, resource, query, fields) {
        Route::Operation(Operation { handling: Handling::Implemented(implementation), .. })
            if query.has(VERSION_ID) && !implementation.accepts(Input::Version) =>
        {
            Route::NoVersion
        }
        route => route,
    }
}

fn operation(
    table: &'static [Operation],
    method: &Method,
    resource: Resource,
    query: &Query<'_>,
    fields: Fields<'_>,
) -> Route {
    let fits = |row: &Operation| row.method == *method && row.resource == resource;
    let find = |wanted: &dyn Fn(&Operation) -> bool| table.iter().find(|row| fits(row) && wanted(row));

    let is_unknown = |name: &str| may_be_subresource(name) && known_subresource(table, name).is_none();
    if is_change(method) && query.iter().any(|(name, value)| value.is_empty() && is_unknown(name)) {
        return Route::UnknownSubresource;
    }
    // The query of a preflight is that of the request that it asks about.
    let subresources: Vec<&'static str> = match *method {
        Method::OPTIONS => Vec::new(),
        _ => query.iter().filter_map(|(name, _)| known_subresource(table, name)).collect(),
    };
    if !subresources.is_empty() {
        let named = |row: &Operation| match row.selector {
            Selector::Query(name) => subresources.contains(&name),
            Selector::QueryBoth(first, second) => subresources.contains(&first) && query.has(second),
            Selector::QueryAndHeader(name, header) => {
                subresources.contains(&name) && fields.amz(header).is_some()
            }
            Selector::Plain | Selector::QueryValue(..) | Selector::Header(_) => false,
        };
        // An operation that is not implemented is preferred, so that the request is refused.
        if let Some(row) = find(&|row| !row.is_implemented() && named(row)) {
            return Route::Operation(row);
        }
        let all_implemented = subresources
            .iter()
            .all(|name| find(&|row| row.is_implemented() && row.selector == Selector::Query(name)).is_some());
        if let (true, Some(row)) = (all_implemented, find(&named)) {
            return Route::Operation(row);
        }
        if table.iter().any(|row| !row.is_implemented() && named(row)) {
            return Route::UnknownSubresource;
        }
        return match of_other_resource(table, method, resource, &subresources) {
            Some(name) => Route::OtherResource { name, resource },
            None if find(&named).is_some() => Route::Conflicting(subresources),
            None => {
                let resource_type = subresources.join(",").trim_end_matches("Id").to_ascii_uppercase();
                method_not_allowed(table, resource, resource_type, named)
            }
        };
    }
    let selected = |row: &Operation| match row.selector {
        Selector::Plain | Selector::Query(_) | Selector::QueryBoth(..) | Selector::QueryAndHeader(..) => {
            false
        }
        Selector::QueryValue(name, value) => query.get(name) == Some(value),
        Selector::Header(name) => fields.amz(name).is_some(),
    };
    match find(&selected).or_else(|| find(&|row| row.selector == Selector::Plain)) {
        Some(row) => Route::Operation(row),
        None => {
            let resource_type = resource.kind().to_owned();
            // Also those that a value or a header selects: the mode `strict` lists objects with `list-type=2` only.
            let is_its_own = |row: &Operation| {
                matches!(row.selector, Selector::Plain | Selector::QueryValue(..) | Selector::Header(_))
            };
            method_not_allowed(table, resource, resource_type, is_its_own)
        }
    }
}

/// Returns whether requests with the method change something.
fn is_change(method: &Method) -> bool {
    matches!(*method, Method::PUT | Method::POST | Method::DELETE)
}

/// Returns whether a parameter without a value may name a subresource: it is no version, and neither replaces a header nor is
/// for the logs of the client.
fn may_be_subresource(name: &str) -> bool {
    name != VERSION_ID && !name.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("x-"))
}

/// Returns the name as the table has it, if it selects any row.
fn known_subresource(table: &[Operation], name: &str) -> Option<&'static str> {
    // The parameters of a presigned URL are the most common ones. No subresource begins like them.
    if name.starts_with("X-Amz-") {
        return None;
    }
    table.iter().find_map(|row| match row.selector {
        Selector::Query(known) if known == name => Some(known),
        _ => None,
    })
}

/// Returns the first of these subresources that this resource does not have, or has for other methods only while
/// another resource has it for this method.
fn of_other_resource(
    table: &[Operation],
    method: &Method,
    resource: Resource,
    subresources: &[&'static str],
) -> Option<&'static str> {
    let has = |name: &'static str, wanted: &dyn Fn(&Operation) -> bool| {
        table.iter().any(|row| row.selector == Selector::Query(name) && wanted(row))
    };
    subresources.iter().copied().find(|name| {
        let here = has(name, &|row| row.resource == resource);
        let here_with_method = has(name, &|row| row.resource == resource && row.method == *method);
        let elsewhere = has(name, &|row| row.resource != resource && row.method == *method);
        !here || (elsewhere && !here_with_method)
    })
}

/// Refuses a method of a resource, or of the subresources that `has` selects. A preflight may ask about any of them.
fn method_not_allowed(
    table: &[Operation],
    resource: Resource,
    resource_type: String,
    has: impl Fn(&Operation) -> bool,
) -> Route {
    let mut allow: Vec<&str> = Vec::new();
    let is_served = |row: &&Operation| row.is_implemented() && row.resource == resource;
    for row in table.iter().filter(is_served).filter(|row| has(row) || row.method == Method::OPTIONS) {
        if !allow.contains(&row.method.as_str()) {
            allow.push(row.method.as_str());
        }
    }
    Route::MethodNotAllowed { allow: allow.join(", "), resource_type }
}

impl Route {
    /// The encodings of the body that the operation accepts, if the signature says that the body has this digest.
    pub(crate) fn accepted_body(&self, payload: PayloadDigest) -> AcceptedBody {
        match (self, payload) {
            (
                Self::Operation(Operation { handling: Handling::Implemented(implementation), .. }),
                PayloadDigest::Chunked(_),
            ) if implementation.accepts(Input::ChunkedBody) => AcceptedBody::AwsChunked,
            _ => AcceptedBody::Plain,
        }
    }

    /// Returns the implementation of the operation, if it has one.
    pub(crate) fn implementation(&self) -> Option<Implementation> {
        match self {
            Self::Operation(Operation { handling: Handling::Implemented(implementation), .. }) => {
                Some(*implementation)
            }
            _ => None,
        }
    }

    /// The name of the operation, or `unknown`.
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

    /// The operation's name for metrics. Operations that are not implemented share one name, so that clients cannot
    /// create a series for each.
    pub(crate) fn counted_operation(&self) -> &'static str {
        match self {
            Self::Operation(row) if row.is_implemented() => row.name,
            _ => "not_built",
        }
    }

    /// Returns the error of a refused route; `None` for an implemented operation.
    pub(crate) fn refusal(&self, method: &Method) -> Option<S3Error> {
        match self {
            Self::Operation(row) => match row.handling {
                Handling::Implemented(_) | Handling::Preflight => None,
                Handling::NotImplemented(message) => {
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
                Some(S3Error::invalid_argument_name(VERSION_ID, message))
            }
            Self::MethodNotAllowed { allow, resource_type } => Some(
                S3Error::new(ErrorCode::MethodNotAllowed)
                    .element("Method", method.as_str())
                    .element("ResourceType", resource_type.as_str())
                    .header("allow", allow.clone()),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Route, route};
    use crate::compatibility::Compatibility::{self, Extended, Strict};
    use crate::operations::{Handler, Handling, Selector};
    use crate::request::fields::Fields;
    use crate::request::query::Query;
    use crate::request::target::Resource::{self, Bucket, Object, Service};
    use cairn_http1::Method;

    /// The names of subresources that no implemented operation has.
    fn unimplemented_subresources(mode: Compatibility) -> Vec<&'static str> {
        let names = |is_implemented| {
            mode.operations().iter().filter(move |row| row.is_implemented() == is_implemented).filter_map(
                |row| match row.selector {
                    Selector::Query(name) => Some(name),
                    _ => None,
                },
            )
        };
        let mut found: Vec<&str> =
            names(false).filter(|name| !names(true).any(|implemented| implemented == *name)).collect();
        found.dedup();
        let least = if mode == Strict { 30 } else { 15 };
        assert!(found.len() > least && found.contains(&"torrent"), "{found:?}");
        found
    }

    const METHODS: &[Method] =
        &[Method::GET, Method::HEAD, Method::PUT, Method::POST, Method::DELETE, Method::PATCH];

    fn routed_in(
        mode: Compatibility,
        method: &Method,
        resource: Resource,
        query: &str,
        headers: &[(&str, &[u8])],
    ) -> Route {
        let query = Query::parse(Some(query)).expect("parses");
        route(mode, method, resource, &query, Fields::new(headers, &query))
    }

    fn routed(method: &Method, resource: Resource, query: &str, headers: &[(&str, &[u8])]) -> Route {
        routed_in(Strict, method, resource, query, headers)
    }

    fn status(method: &Method, resource: Resource, query: &str) -> Option<u16> {
        routed(method, resource, query, &[]).refusal(method).map(|error| error.status())
    }

    fn handler(method: &Method, resource: Resource, query: &str) -> Option<Handler> {
        handler_in(Strict, method, resource, query)
    }

    fn handler_in(mode: Compatibility, method: &Method, resource: Resource, query: &str) -> Option<Handler> {
        match routed_in(mode, method, resource, query, &[]) {
            Route::Operation(row) => match row.handling {
                Handling::Implemented(implementation) => Some(implementation.handler),
                Handling::Preflight | Handling::NotImplemented(_) => None,
            },
            _ => None,
        }
    }

    #[test]
    fn unimplemented_subresource_is_refused_on_every_method_and_resource() {
        for (mode, name) in Compatibility::ALL
            .iter()
            .flat_map(|&mode| unimplemented_subresources(mode).into_iter().map(move |name| (mode, name)))
        {
            for method in METHODS {
                for resource in [Service, Bucket, Object] {
                    for query in [
                        name.to_owned(),
                        format!("{name}="),
                        format!("{name}=x&x-id=GetObject"),
                        format!("list-type=2&prefix=a&{name}"),
                        format!("partNumber=1&{name}=1"),
                        format!("location&{name}"),
                    ] {
                        let refusal = routed_in(mode, method, resource, &query, &[]).refusal(method);
                        let found = refusal.map(|error| error.status());
                        assert_eq!(found, Some(501), "{mode:?} {method} {resource:?} ?{query}");
                    }
                }
            }
        }
    }

    #[test]
    fn unknown_parameters_do_not_route() {
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
        // A subresource that S3 got later: the object was replaced or deleted.
        for query in [
            "novelty",
            "novelty=",
            "x-id=PutObject&novelty&noveltyName=n",
            "Acl",
            "versionId=v&novelty",
            "novelty=1&tagging&other",
        ] {
            for (method, resource) in [
                (Method::PUT, Object),
                (Method::DELETE, Object),
                (Method::POST, Object),
                (Method::PUT, Bucket),
                (Method::DELETE, Bucket),
                (Method::POST, Bucket),
            ] {
                for mode in Compatibility::ALL {
                    let refusal = routed_in(mode, &method, resource, query, &[]).refusal(&method);
                    assert_eq!(refusal.map(|error| error.status()), Some(501), "{mode:?} {method} ?{query}");
                }
            }
            let is_plain = !query.contains("tagging");
            assert_eq!(handler(&Method::GET, Object, query).is_some(), is_plain, "{query}");
        }
        for query in ["x-id", "X-Amz-Security-Token=&x-id=", "x-team", "X-Trace="] {
            assert_eq!(handler_in(Extended, &Method::PUT, Bucket, query), Some(Handler::CreateBucket));
        }
        assert_eq!(handler(&Method::GET, Bucket, "location"), Some(Handler::GetBucketLocation));
        assert_eq!(handler(&Method::GET, Bucket, "prefix=a&list-type=2"), Some(Handler::ListObjectsV2));
    }

    #[test]
    fn list_without_list_type_2_is_refused() {
        for query in ["", "list-type=1", "list-type=", "list-type", "prefix=a&max-keys=1", "list-type=3"] {
            assert_eq!(status(&Method::GET, Bucket, query), Some(501), "{query}");
            let added = handler_in(Extended, &Method::GET, Bucket, query);
            assert_eq!(added, Some(Handler::ListObjects), "{query}");
        }
        for query in ["list-type=2", "list-type=2&marker=a"] {
            let found = handler_in(Extended, &Method::GET, Bucket, query);
            assert_eq!(found, Some(Handler::ListObjectsV2), "{query}");
        }
    }

    #[test]
    fn part_number_never_writes_an_object() {
        assert_eq!(handler(&Method::GET, Object, "partNumber=1"), Some(Handler::GetObject));
        assert_eq!(handler(&Method::HEAD, Object, "partNumber=1"), Some(Handler::HeadObject));
        for query in ["partNumber=1", "uploadId=u", "partNumber=1&uploadId=u", "uploadId=u&partNumber"] {
            assert_eq!(handler(&Method::PUT, Object, query), Some(Handler::UploadPart), "{query}");
        }
        for method in [Method::DELETE, Method::POST] {
            assert_eq!(status(&method, Object, "partNumber=1"), Some(405), "{method}");
            // This was answered with a 405 whose Allow header named the method.
            assert_eq!(status(&method, Object, "partNumber=1&uploadId=u"), Some(400), "{method}");
        }
        assert_eq!(handler(&Method::GET, Object, "partNumber=1&uploadId=u"), Some(Handler::ListParts));
    }

    /// In the mode `strict`, the methods of a bucket lacked GET, and those of subresources lacked OPTIONS.
    #[test]
    fn a_refused_method_is_answered_with_those_that_are_served() {
        let methods: Vec<Method> = METHODS.iter().cloned().chain([Method::OPTIONS]).collect();
        let mut compared = 0;
        for mode in Compatibility::ALL {
            let named = mode.operations().iter().filter(|row| row.is_implemented());
            let named = named.filter_map(|row| match row.selector {
                Selector::Query(name) => Some(name),
                _ => None,
            });
            for (query, resource) in named
                .chain([""])
                .flat_map(|query| [Service, Bucket, Object].map(|resource| (query, resource)))
            {
                // A list of objects is selected by a value.
                let queries = if query.is_empty() { vec!["", "list-type=2"] } else { vec![query] };
                let is_served = |method: &Method| {
                    queries.iter().any(|query| {
                        let route = routed_in(mode, method, resource, query, &[]);
                        matches!(route, Route::Operation(row) if row.is_implemented())
                    })
                };
                let mut served: Vec<&str> =
                    methods.iter().filter(|method| is_served(method)).map(Method::as_str).collect();
                served.sort_unstable();
                for method in &methods {
                    let route = routed_in(mode, method, resource, query, &[]);
                    let Route::MethodNotAllowed { allow, .. } = route else { continue };
                    let mut listed: Vec<&str> = allow.split(", ").collect();
                    listed.sort_unstable();
                    assert_eq!(listed, served, "{mode:?} {method} {resource:?} ?{query}");
                    compared += 1;
                }
            }
        }
        assert!(compared > 50, "{compared}");
    }

    #[test]
    fn upload_subresources_select_their_operations() {
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
    fn unsupported_method_is_405_with_allow() {
        for (method, resource, query, expected) in [
            (Method::PUT, Service, "", "GET, OPTIONS"),
            (Method::HEAD, Service, "", "GET, OPTIONS"),
            (Method::PATCH, Bucket, "", "PUT, HEAD, DELETE, GET, OPTIONS"),
            (Method::POST, Object, "", "PUT, GET, HEAD, DELETE, OPTIONS"),
            (Method::PATCH, Object, "", "PUT, GET, HEAD, DELETE, OPTIONS"),
            (Method::PUT, Bucket, "location", "GET, OPTIONS"),
            (Method::DELETE, Bucket, "versioning", "GET, PUT, OPTIONS"),
            (Method::PUT, Bucket, "versions", "GET, OPTIONS"),
            (Method::DELETE, Object, "retention", "GET, PUT, OPTIONS"),
        ] {
            match routed(&method, resource, query, &[]) {
                Route::MethodNotAllowed { allow, .. } => assert_eq!(allow, expected),
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
    fn preflight_ignores_the_query() {
        for query in ["", "acl", "uploadId=u&partNumber=1", "versionId=null&x-id=GetObject", "location"] {
            for resource in [Service, Bucket, Object] {
                match routed(&Method::OPTIONS, resource, query, &[]) {
                    Route::Operation(row) => assert_eq!(row.handling, Handling::Preflight),
                    other => panic!("{resource:?} ?{query}: {other:?}"),
                }
            }
        }
    }

    /// `GET /bucket/key?versions` must neither become GetObject nor be answered that versions are not implemented.
    #[test]
    fn subresource_of_another_resource_is_invalid_request() {
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
    fn version_id_is_refused_by_operations_without_versions() {
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
    fn every_refusal_names_an_alternative() {
        for row in Strict.operations() {
            if let Handling::NotImplemented(message) = row.handling {
                assert!(message.contains(": ") && message.ends_with('.'), "{}", row.name);
                assert!(!message.contains("  "), "{}", row.name);
            }
        }
    }

    #[test]
    fn no_two_rows_match_the_same_request() {
        for table in Compatibility::ALL.map(Compatibility::operations) {
            for (at, row) in table.iter().enumerate() {
                let same = |other: &&crate::operations::Operation| {
                    (&other.method, other.resource, other.selector)
                        == (&row.method, row.resource, row.selector)
                };
                assert!(!table[..at].iter().any(|other| same(&other)), "{} {:?}", row.name, row.selector);
            }
            assert!(table.iter().any(|row| row.selector == Selector::Plain));
        }
    }
}
