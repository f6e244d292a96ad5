//! Answers: what operations give back, errors as XML, and the headers that every answer carries.

use crate::errors::S3Error;
use crate::target::Target;
use crate::xml::writer::XmlWriter;
use cairn_http1::{Method, ResponseHead, StatusCode};
use cairn_net::{Response, ResponseBody, ResponseMeta};

/// The value of `Server`.
const SERVER: &str = "Cairn";
const XML_CONTENT_TYPE: &str = "application/xml";

/// What an operation answers.
pub(crate) struct Reply {
    pub(crate) head: ResponseHead,
    pub(crate) body: ResponseBody,
}

impl Reply {
    /// An answer without a body.
    pub(crate) fn empty(status: StatusCode) -> Self {
        Self { head: ResponseHead::new(status), body: ResponseBody::Empty }
    }

    /// A 200 with an XML document.
    pub(crate) fn xml(document: XmlWriter) -> Self {
        let mut head = ResponseHead::new(StatusCode::OK);
        head.header("content-type", XML_CONTENT_TYPE);
        Self { head, body: ResponseBody::Full(document.finish()) }
    }
}

/// The ids of one answer.
#[derive(Clone, Copy)]
pub(crate) struct AnswerIds<'a> {
    /// `x-amz-request-id` and `RequestId`.
    pub(crate) request: &'a str,
    /// `x-amz-id-2` and `HostId`.
    pub(crate) host: &'a str,
}

/// What the answer to a request depends on beside its result.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    /// Nothing when the head could not be read.
    pub(crate) method: Option<&'a Method>,
    /// The raw path, as `Resource` gives it.
    pub(crate) path: &'a str,
    /// The decoded path, when it could be decoded.
    pub(crate) target: Option<&'a Target>,
    /// The route's pattern, for the log.
    pub(crate) route: &'static str,
    /// The operation, for the metrics.
    pub(crate) operation: &'static str,
}

/// The response of a reply.
pub(crate) fn success(reply: Reply, asked: Asked<'_>, ids: AnswerIds<'_>) -> Response {
    let Reply { mut head, body } = reply;
    write_common(&mut head, ids);
    let meta = ResponseMeta {
        status: head.status,
        route: asked.route,
        operation: asked.operation,
        request_id: ids.request.to_owned(),
        error_code: None,
    };
    Response { head, body, meta, close: false }
}

/// The response of an error: XML, but for HEAD and 304, which have no body.
pub(crate) fn failure(error: &S3Error, asked: Asked<'_>, ids: AnswerIds<'_>) -> Response {
    let status = StatusCode::from_u16(error.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut head = ResponseHead::new(status);
    write_common(&mut head, ids);
    for (name, value) in error.headers() {
        head.header(name, value);
    }
    let body = if asked.method == Some(&Method::HEAD) {
        ResponseBody::Omitted { length: None }
    } else {
        head.header("content-type", XML_CONTENT_TYPE);
        ResponseBody::Full(error_document(error, asked, ids))
    };
    let meta = ResponseMeta {
        status,
        route: asked.route,
        operation: asked.operation,
        request_id: ids.request.to_owned(),
        error_code: Some(error.code()),
    };
    Response { head, body, meta, close: error.closes() }
}

fn write_common(head: &mut ResponseHead, ids: AnswerIds<'_>) {
    head.header("x-amz-request-id", ids.request);
    head.header("x-amz-id-2", ids.host);
    head.header("server", SERVER);
}

/// The XML of an error (AWS: "Error responses", REST error responses).
pub(crate) fn error_document(error: &S3Error, asked: Asked<'_>, ids: AnswerIds<'_>) -> Vec<u8> {
    let mut xml = XmlWriter::with_capacity(512);
    xml.open("Error");
    xml.text("Code", error.code());
    xml.text("Message", error.message());
    // An error that names something itself is about that, not about what was asked for.
    let is_named = |name: &str| error.elements().iter().any(|(named, _)| *named == name);
    if let Some(target) = asked.target {
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
        xml.text("Resource", asked.path);
    }
    xml.text("RequestId", ids.request);
    xml.text("HostId", ids.host);
    xml.close("Error");
    xml.finish()
}

#[cfg(test)]
mod tests {
    use super::{AnswerIds, Asked, failure};
    use crate::errors::{ErrorCode, S3Error};
    use crate::target::Target;
    use crate::xml::reader;
    use cairn_http1::Method;
    use cairn_net::ResponseBody;

    const IDS: AnswerIds<'_> = AnswerIds { request: "REQ", host: "HOST" };

    #[test]
    fn an_error_names_code_bucket_key_resource_and_the_request_id_of_the_header() {
        let target = Target::parse("/photos/a%20%26b").expect("parses");
        let asked = Asked {
            method: Some(&Method::GET),
            path: "/photos/a%20%26b",
            target: Some(&target),
            route: "/{bucket}/{key}",
            operation: "GetObject",
        };
        let error = S3Error::new(ErrorCode::NoSuchKey).header("x-extra", "1");
        let response = failure(&error, asked, IDS);
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
    fn a_head_request_gets_the_status_and_no_body() {
        let asked = Asked {
            method: Some(&Method::HEAD),
            path: "/b",
            target: None,
            route: "/{bucket}",
            operation: "HeadBucket",
        };
        let response = failure(&S3Error::new(ErrorCode::NoSuchBucket), asked, IDS);
        assert_eq!(response.head.status.as_u16(), 404);
        assert_eq!(response.meta.error_code, Some("NoSuchBucket"));
        assert!(matches!(response.body, ResponseBody::Omitted { length: None }));
    }
}
