//! The response to a stored form upload: a status, a document, or a redirect.

use crate::errors::{S3Error, S3Result};
use crate::forms::fields::FormFields;
use crate::reply::Reply;
use crate::xml::writer::XmlWriter;
use cairn_http1::{StatusCode, encode_strict};

/// The answer that the form asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Success {
    /// A status without a document.
    Status(StatusCode),
    /// 201 with a document.
    Document,
    /// 303 to this URL.
    Redirect(String),
}

/// The object that was stored.
#[derive(Clone, Copy)]
pub(crate) struct StoredObject<'a> {
    pub(crate) bucket: &'a str,
    pub(crate) key: &'a str,
    /// With quotes.
    pub(crate) etag: &'a str,
    pub(crate) url: &'a str,
}

impl Success {
    /// Reads `success_action_redirect`, or `redirect`, and `success_action_status`. Another status than 200, 201 and 204 means
    /// 204, as on AWS.
    ///
    /// # Errors
    /// `InvalidArgument` for a redirect to anything but an absolute URL of http or https.
    pub(crate) fn of_form(form: &FormFields) -> S3Result<Self> {
        let named = ["success_action_redirect", "redirect"];
        let found = named.into_iter().find_map(|name| Some((name, form.get(name)?)));
        if let Some((name, url)) = found.filter(|(_, url)| !url.is_empty()) {
            if is_absolute_http(url) {
                return Ok(Self::Redirect(url.to_owned()));
            }
            let message = "The redirect must be an absolute URL that begins with http:// or https:// and consists of visible \
                           ASCII characters.";
            return Err(S3Error::invalid_argument(name, url, message));
        }
        Ok(match form.get("success_action_status") {
            Some("200") => Self::Status(StatusCode::OK),
            Some("201") => Self::Document,
            _ => Self::Status(StatusCode::NO_CONTENT),
        })
    }

    /// Turns the answer of a PUT into that of the form.
    pub(crate) fn write(&self, reply: &mut Reply, object: StoredObject<'_>) {
        match self {
            Self::Status(status) => {
                reply.head.status = *status;
                reply.head.header("location", object.url);
            }
            Self::Document => {
                let mut xml = XmlWriter::with_capacity(512);
                xml.open("PostResponse");
                for (name, text) in [
                    ("Location", object.url),
                    ("Bucket", object.bucket),
                    ("Key", object.key),
                    ("ETag", object.etag),
                ] {
                    xml.text(name, text);
                }
                xml.close("PostResponse");
                let Reply { head, body } = Reply::xml(xml);
                reply.head.status = StatusCode::CREATED;
                reply.head.header("location", object.url);
                if let Some(kind) = head.get("content-type") {
                    reply.head.header("content-type", kind);
                }
                reply.body = body;
            }
            Self::Redirect(url) => {
                reply.head.status = StatusCode::SEE_OTHER;
                reply.head.header("location", with_object(url, object));
            }
        }
    }
}

/// Returns whether `text` is an absolute URL of http or https, of characters that a header can have and that no browser
/// removes.
fn is_absolute_http(text: &str) -> bool {
    let authority = ["http://", "https://"].iter().find_map(|scheme| {
        let start = text.get(..scheme.len())?;
        start.eq_ignore_ascii_case(scheme).then(|| &text[scheme.len()..])
    });
    let has_host =
        authority.is_some_and(|rest| !rest.starts_with(['/', '?', '#', '\\', ':', '@']) && !rest.is_empty());
    has_host
        && text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'<' | b'>' | b'\\'))
}

/// Adds bucket, key and entity tag to the query of a URL.
fn with_object(url: &str, object: StoredObject<'_>) -> String {
    let (before, fragment) = url.split_at(url.find('#').unwrap_or(url.len()));
    let separator = match before.find('?') {
        None => "?",
        Some(question) if question + 1 == before.len() => "",
        Some(_) => "&",
    };
    let [bucket, key, etag] =
        [object.bucket, object.key, object.etag].map(|text| encode_strict(text.as_bytes()));
    format!("{before}{separator}bucket={bucket}&key={key}&etag={etag}{fragment}")
}

#[cfg(test)]
mod tests {
    use super::{StoredObject, Success, with_object};
    use crate::forms::fields::FormFields;
    use cairn_http1::StatusCode;

    fn of(pairs: &[(&str, &str)]) -> Result<Success, &'static str> {
        let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Success::of_form(&FormFields::new(pairs, "").expect("valid")).map_err(|error| error.code())
    }

    #[test]
    fn status_is_204_unless_the_form_asks_for_another() {
        assert_eq!(of(&[]), Ok(Success::Status(StatusCode::NO_CONTENT)));
        for (text, expected) in [
            ("200", Success::Status(StatusCode::OK)),
            ("201", Success::Document),
            ("204", Success::Status(StatusCode::NO_CONTENT)),
            ("404", Success::Status(StatusCode::NO_CONTENT)),
            ("", Success::Status(StatusCode::NO_CONTENT)),
        ] {
            assert_eq!(of(&[("success_action_status", text)]), Ok(expected), "{text}");
        }
    }

    #[test]
    fn redirect_is_an_absolute_url_of_the_web() {
        for url in ["http://a", "HTTPS://a.example:8443/b?c=d#e", "http://[::1]/"] {
            assert_eq!(of(&[("success_action_redirect", url)]), Ok(Success::Redirect(url.to_owned())));
            let with_status = of(&[("redirect", url), ("success_action_status", "201")]);
            assert_eq!(with_status, Ok(Success::Redirect(url.to_owned())));
        }
        for url in [
            "/done",
            "//a/b",
            "a.example",
            "javascript:alert(1)",
            "data:text/html,x",
            "http:/a",
            "http://",
            "http:///a",
            "http://?a",
            "http://a\r\nSet-Cookie: b=c",
            "http://a b",
            "http://a/\u{e4}",
            " http://a",
            "http://a\\b",
        ] {
            assert_eq!(of(&[("success_action_redirect", url)]), Err("InvalidArgument"), "{url:?}");
        }
    }

    #[test]
    fn redirect_names_the_object_in_its_query() {
        let object = StoredObject { bucket: "b", key: "a/b c&d", etag: "\"00\"", url: "" };
        let query = "bucket=b&key=a%2Fb%20c%26d&etag=%2200%22";
        for (url, expected) in [
            ("http://h/p", format!("http://h/p?{query}")),
            ("http://h/p?x=1", format!("http://h/p?x=1&{query}")),
            ("http://h/p#top?", format!("http://h/p?{query}#top?")),
            ("http://h?", format!("http://h?{query}")),
            ("http://h/p?#top", format!("http://h/p?{query}#top")),
            ("http://h/p?x=?", format!("http://h/p?x=?&{query}")),
        ] {
            assert_eq!(with_object(url, object), expected);
        }
    }
}
