//! Content negotiation with visitors: a page or JSON, and the language.
//!
//! Source: RFC 9110, section 12 (content negotiation).

use cairn_http1::RequestHead;

/// Languages of pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Language {
    English,
    German,
}

impl Language {
    /// Returns the language that a request prefers, by `Accept-Language`. English, unless German is preferred.
    pub(crate) fn of(head: &RequestHead) -> Self {
        let weight = |language: &str| {
            let range_of = |range: &str| {
                let primary = range.split('-').next().unwrap_or_default();
                if primary.eq_ignore_ascii_case(language) { Some(2) } else { (range == "*").then_some(1) }
            };
            best_weight(head, "accept-language", range_of)
        };
        if weight("de").0 > weight("en").0 { Self::German } else { Self::English }
    }

    /// Returns the language tag (RFC 5646).
    pub(crate) const fn tag(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::German => "de",
        }
    }
}

/// Returns whether a request prefers a page for people to JSON, by `Accept`. Programs that accept anything get JSON.
pub(crate) fn prefers_page(head: &RequestHead) -> bool {
    let weight = |kind: &str, subtype: &str| {
        let range_of = |range: &str| match range.split_once('/') {
            Some((sent_kind, sent_subtype)) if sent_kind.eq_ignore_ascii_case(kind) => {
                if sent_subtype.eq_ignore_ascii_case(subtype) {
                    Some(3)
                } else {
                    (sent_subtype == "*").then_some(2)
                }
            }
            Some(("*", "*")) => Some(1),
            _ => None,
        };
        best_weight(head, "accept", range_of)
    };
    let page = weight("text", "html");
    // A weight of 0 means that it is not acceptable. Of equal weights, the one that was named more exactly is preferred.
    page.0 > 0 && page > weight("application", "json")
}

/// Returns the weight, in thousandths, of the most specific element that matches, and how specific it is. `(0, 0)` if no
/// element matches.
fn best_weight(head: &RequestHead, header: &str, matches: impl Fn(&str) -> Option<u8>) -> (u16, u8) {
    let mut best = (0, 0);
    for value in head.header_values(header) {
        let Ok(text) = std::str::from_utf8(value) else { continue };
        for element in text.split(',') {
            let mut parameters = element.split(';');
            let range = parameters.next().unwrap_or_default().trim();
            let Some(specificity) = matches(range) else { continue };
            let weight = parameters.find_map(|parameter| parse_weight(parameter.trim()));
            if specificity > best.1 {
                best = (weight.unwrap_or(1000), specificity);
            }
        }
    }
    best
}

/// Parses `q=0.5` to thousandths. An invalid weight counts as absent.
fn parse_weight(parameter: &str) -> Option<u16> {
    let value = parameter.strip_prefix("q=").or_else(|| parameter.strip_prefix("Q="))?;
    let (whole, fraction) = value.split_once('.').unwrap_or((value, ""));
    if fraction.len() > 3 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    match whole {
        "1" => Some(1000),
        "0" => format!("{fraction:0<3}").parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Language, prefers_page};
    use cairn_http1::{HeadLimits, RequestHead, parse_head};

    fn head(name: &str, value: &str) -> RequestHead {
        let text = format!("GET / HTTP/1.1\r\nHost: h\r\n{name}: {value}\r\n\r\n");
        parse_head(text.as_bytes(), &HeadLimits::default()).expect("parses").expect("whole").0
    }

    #[test]
    fn browsers_get_pages_and_programs_get_json() {
        for (accept, expected) in [
            ("text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8", true),
            ("text/html", true),
            ("TEXT/HTML", true),
            ("text/*", true),
            ("text/html, */*", true),
            ("text/html;q=0.9, application/json;q=0.8", true),
            ("text/html;q=0.8, application/json;q=0.9", false),
            ("text/html, application/json", false),
            ("text/html;q=0, */*", false),
            ("text/html;q=0", false),
            ("text/*;q=0.000", false),
            ("text/html;q=0, application/json;q=0", false),
            ("text/html;q=0.001", true),
            ("application/json", false),
            ("*/*", false),
            ("image/avif,image/webp,*/*;q=0.8", false),
            ("text/plain", false),
            ("text/html;q=x, application/json;q=0.5", true),
            ("", false),
        ] {
            assert_eq!(prefers_page(&head("Accept", accept)), expected, "{accept}");
        }
        assert!(!prefers_page(&head("X-Other", "text/html")));
    }

    #[test]
    fn german_is_used_when_it_is_preferred() {
        for (languages, expected) in [
            ("de-DE,de;q=0.9,en;q=0.8", Language::German),
            ("DE", Language::German),
            ("fr, de;q=0.5", Language::German),
            ("en-US,en;q=0.9,de;q=0.8", Language::English),
            ("de, en", Language::English),
            ("fr", Language::English),
            ("*", Language::English),
            ("de;q=0", Language::English),
        ] {
            assert_eq!(Language::of(&head("Accept-Language", languages)), expected, "{languages}");
        }
    }
}
