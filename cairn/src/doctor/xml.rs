//! Takes texts out of the XML that S3 servers send. Elements have no attributes of interest and are not nested in themselves.

/// Returns the text of the first element of this name.
pub(crate) fn text(document: &str, name: &str) -> Option<String> {
    texts(document, name).next()
}

/// Returns the texts of all elements of this name.
pub(crate) fn texts<'d>(document: &'d str, name: &str) -> impl Iterator<Item = String> + use<'d> {
    elements(document, name).map(unescaped)
}

/// Returns the content of all elements of this name, as it is.
pub(crate) fn elements<'d>(document: &'d str, name: &str) -> impl Iterator<Item = &'d str> + use<'d> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let mut rest = document;
    std::iter::from_fn(move || {
        let start = rest.find(&open)? + open.len();
        let end = start + rest[start..].find(&close)?;
        let content = &rest[start..end];
        rest = &rest[end + close.len()..];
        Some(content)
    })
}

fn unescaped(text: &str) -> String {
    let pairs = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")];
    pairs.iter().fold(text.to_owned(), |text, (escaped, plain)| text.replace(escaped, plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_taken_out_and_unescaped() {
        let document = "<L><Key>a&amp;lt;b</Key><Key></Key><KeyCount>2</KeyCount><Key>open";
        assert_eq!(texts(document, "Key").collect::<Vec<_>>(), ["a&lt;b", ""]);
        assert_eq!(text(document, "KeyCount").as_deref(), Some("2"));
        assert_eq!(text(document, "Code"), None);
    }
}
