//! Extracts error codes, keys and continuation tokens from S3's XML.
//!
//! This is not an XML parser: it searches for `<Name>text</Name>`, the form in which every S3 server writes these elements. It
//! replaces the five named entities and numeric ones.

/// Returns the texts of all elements with this name, in order, with entities not replaced.
pub(crate) fn elements<'a>(document: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let mut rest = document;
    std::iter::from_fn(move || {
        let from = rest.find(&open)? + open.len();
        let length = rest[from..].find(&close)?;
        let text = &rest[from..from + length];
        rest = &rest[from + length + close.len()..];
        Some(text)
    })
}

/// Returns the text of the first element with this name.
pub(crate) fn element(document: &str, name: &str) -> Option<String> {
    elements(document, name).next().map(unescape)
}

/// Replaces entities; anything else is unchanged.
pub(crate) fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        let replaced = rest.find(';').and_then(|end| Some((entity(&rest[1..end])?, end + 1)));
        let (character, length) = replaced.unwrap_or(('&', 1));
        plain.push(character);
        rest = &rest[length..];
    }
    plain.push_str(rest);
    plain
}

fn entity(name: &str) -> Option<char> {
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(digits) => u32::from_str_radix(digits, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?)?
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_keys_and_tokens_are_found() {
        let page = "<R><KeyCount>2</KeyCount><Contents><Key>a&amp;b</Key></Contents>\
                    <Contents><Key>c</Key></Contents><NextContinuationToken>t==</NextContinuationToken></R>";
        let keys: Vec<String> = elements(page, "Key").map(unescape).collect();
        assert_eq!(keys, ["a&b", "c"]);
        assert_eq!(element(page, "NextContinuationToken").as_deref(), Some("t=="));
        assert_eq!(element(page, "Code"), None);
        assert_eq!(element("<Error><Code>NoSuchKey", "Code"), None);
    }

    #[test]
    fn entities_are_replaced_once() {
        assert_eq!(unescape("&lt;&#65;&#x42;&amp;lt;&unknown;&"), "<AB&lt;&unknown;&");
    }
}
