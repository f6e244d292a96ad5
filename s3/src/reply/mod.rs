//! Responses: what operations return, errors as XML, and the headers that every response has.

pub(crate) mod slow_response;

use crate::errors::S3Error;
use crate::request::target::Target;
use crate::xml::writer::XmlWriter;
use cairn_http1::{Method, ResponseHead, StatusCode};
use cairn_net::{Response, ResponseBody};

/// The value of `Server`.
const SERVER: &str = "Cairn";
const XML_CONTENT_TYPE: &str = "application/xml";

/// The result of a successful operation.
pub(crate) struct Reply {
    pub(crate) head: ResponseHead,
    pub(crate) body: ResponseBody,
}

impl Reply {
    /// Creates a reply without a body.
    pub(crate) fn empty(status: StatusCode) -> Self {
        Self { head: ResponseHead::new(status), body: ResponseBody::Empty }
    }

    /// Creates a 200 with an XML document.
    pub(crate) fn xml(document: XmlWriter) -> Self {
        let mut head = ResponseHead::new(StatusCode::OK);
        head.header("content-type", XML_CONTENT_TYPE);
        Self { head, body: ResponseBody::Full(document.finish()) }
    }
}

/// The ids of one response.
#[derive(Clone, Copy)]
pub(crate) struct ResponseIds<'a> {
    /// `x-amz-request-id` and `RequestId`.
    pub(crate) request: &'a str,
    /// `x-amz-id-2` and `HostId`.
    pub(crate) host: &'a str,
}

/// The facts about a request that its response needs.
#[derive(Clone, Copy)]
pub(crate) struct RequestContext<'a> {
    /// `None` if the head could not be read.
    pub(crate) method: Option<&'a Method>,
    /// The raw path in path style, for the element `Resource`.
    pub(crate) path: &'a str,
    /// The decoded path, if it could be decoded.
    pub(crate) target: Option<&'a Target>,
    /// The route's pattern, for the log.
    pub(crate) route: &'static str,
    /// The operation, for the metrics.
    pub(crate) operation: &'static str,
}

/// Builds the response of a successful request.
pub(crate) fn success(reply: Reply, request: RequestContext<'_>, ids: ResponseIds<'_>) -> Response {
    let Reply { mut head, body } = reply;
    write_common(&mut head, ids);
    Response::new(head, body, ids.request).of(request.route, request.operation)
}

/// Builds the response of a failed request: XML, or no body for HEAD.
pub(crate) fn failure(error: &S3Error, request: RequestContext<'_>, ids: ResponseIds<'_>) -> Response {
    let status = StatusCode::from_u16(error.status()).expect("the statuses of errors are valid");
    let mut head = ResponseHead::new(status);
    write_common(&mut head, ids);
    for (name, value) in error.headers() {
        head.header(name, value);
    }
    let body = if request.method == Some(&Method::HEAD) {
        ResponseBody::Omitted { length: None }
    } else {
        head.header("content-type", XML_CONTENT_TYPE);
        ResponseBody::Full(error_document(error, request, ids))
    };
    let response = Response::new(head, body, ids.request).of(request.route, request.operation);
    Response { close: error.closes(), ..response.with_error(Some(error.code())) }
}

/// Writes the headers that every response of the data plane has.
pub(crate) fn write_common(head: &mut ResponseHead, ids: ResponseIds<'_>) {
    head.header("x-amz-request-id", ids.request);
    head.header("x-amz-id-2", ids.host);
    head.header("server", SERVER);
}

/// Writes the XML of an error (AWS: "Error responses", REST error responses).
pub(crate) fn error_document(error: &S3Error, request: RequestContext<'_>, ids: ResponseIds<'_>) -> Vec<u8> {
    let mut xml = XmlWriter::with_capacity(512);
    xml.open("Error");
    xml.text("Code", error.code());
    xml.text("Message", error.message());
    // An error that names a resource itself is about that one, not about the request's.
    let is_named = |name: &str| error.elements().iter().any(|(named, _)| *named == name);
    if let Some(target) = request.target {
        for (name, value) in [("BucketName", target.bucket_text()), ("Key", target.key_text())] {
            if !value.is_empty() && !is_named(name) {
                xml.text(name, value);
            }
        }
    }
    for (name, value) in error.elements() {
        xml.text(name, value);
    }
    if !is_named("Resource") {
        xml.text("Resource", request.path);
    }
    xml.text("RequestId", ids.request);
    xml.text("HostId", ids.host);
    xml.close("Error");
    xml.finish()
}

#[cfg(test)]
mod tests {
    use super::{RequestContext, ResponseIds, failure};
    use crate::errors::{ErrorCode, S3Error};
    use crate::request::target::Target;
    use crate::xml::reader;
    use cairn_http1::Method;
    use cairn_net::ResponseBody;

    const IDS: ResponseIds<'_> = ResponseIds { request: "REQ", host: "HOST" };

    #[test]
    fn error_document_names_the_request() {
        let target = Target::parse("/photos/a%20%26b").expect("parses");
        let request = RequestContext {
            method: Some(&Method::GET),
            path: "/photos/a%20%26b",
            target: Some(&target),
            route: "/{bucket}/{key}",
            operation: "GetObject",
        };
        let error = S3Error::new(ErrorCode::NoSuchKey).header("x-extra", "1");
        let response = failure(&error, request, IDS);
        assert_eq!(response.head.get("x-amz-request-id"), Some(&b"REQ"[..]));
        assert_eq!(response.head.get("x-amz-id-2"), Some(&b"HOST"[..]));
        assert_eq!(response.head.get("content-type"), Some(&b"application/xml"[..]));
        assert_eq!(response.head.get("x-extra"), Some(&b"1"[..]));
        let ResponseBody::Full(body) = response.body else { panic!("no body") };
        let root = reader::parse(&body).expect("well-formed");
        let text = |name| root.child(name).map(reader::Element::text);
        assert_eq!(root.name(), "Error");
        assert_eq!(text("Code"), Some("NoSuchKey"));
        assert_eq!(text("BucketName"), Some("photos"));
        assert_eq!(text("Key"), Some("a &b"));
        assert_eq!(text("Resource"), Some("/photos/a%20%26b"));
        assert_eq!((text("RequestId"), text("HostId")), (Some("REQ"), Some("HOST")));
    }

    #[test]
    fn head_request_gets_no_error_document() {
        let request = RequestContext {
            method: Some(&Method::HEAD),
            path: "/b",
            target: None,
            route: "/{bucket}",
            operation: "HeadBucket",
        };
        let response = failure(&S3Error::new(ErrorCode::NoSuchBucket), request, IDS);
        assert_eq!(response.head.status.as_u16(), 404);
        assert_eq!(response.meta.error_code, Some("NoSuchBucket"));
        assert!(matches!(response.body, ResponseBody::Omitted { length: None }));
    }
}
