//! Validates the CORS rules of a bucket. Source: API Reference, PutBucketCors, CORSConfiguration and CORSRule.

use crate::origin::{self, OriginMatching};
use crate::rule::Rule;
use cairn_model::is_xml_char;

/// Most rules of a bucket.
pub const RULES_MAX: usize = 100;
/// Longest id of a rule, in characters.
pub const ID_CHARACTERS_MAX: usize = 255;
/// Longest document with rules, in bytes (AWS: "Configuring cross-origin resource sharing").
pub const CONFIGURATION_BYTES_MAX: usize = 64 * 1024;
/// The methods that a rule may allow.
pub const METHODS: [&str; 5] = ["GET", "PUT", "HEAD", "POST", "DELETE"];

/// The reason why a bucket may not have these rules.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CorsError {
    /// There is no rule.
    NoRules,
    /// There are more than [`RULES_MAX`] rules.
    TooManyRules,
    /// A rule is not allowed.
    Rule {
        /// The index of the rule.
        index: usize,
        /// The error in the rule.
        problem: Problem,
    },
}

/// An error in a rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Problem {
    /// The id has more than [`ID_CHARACTERS_MAX`] characters, or one that XML cannot represent.
    Id,
    /// No origin is allowed.
    NoOrigin,
    /// No method is allowed.
    NoMethod,
    /// A text is not an origin.
    Origin {
        /// The text.
        text: String,
        /// The rule that it breaks, for people.
        why: &'static str,
    },
    /// A text is not one of [`METHODS`].
    Method(String),
    /// A pattern of a header name has more than one `*`.
    Wildcards(String),
    /// The name of an exposed header has a `*`.
    ExposedWildcard(String),
    /// A text is not the name of a header (RFC 9110 section 5.6.2).
    Header {
        /// The list that contains it.
        list: HeaderList,
        /// The text.
        text: String,
    },
}

/// The lists of header names in a rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeaderList {
    /// The request headers that pages may send.
    Allowed,
    /// The response headers that pages may read.
    Exposed,
}

/// Checks the rules of a bucket. The first problem counts.
pub(crate) fn check(rules: &[Rule], matching: OriginMatching) -> Result<(), CorsError> {
    for (index, rule) in rules.iter().enumerate() {
        check_rule(rule, matching).map_err(|problem| CorsError::Rule { index, problem })?;
    }
    match rules.len() {
        0 => Err(CorsError::NoRules),
        1..=RULES_MAX => Ok(()),
        _ => Err(CorsError::TooManyRules),
    }
}

fn check_rule(rule: &Rule, matching: OriginMatching) -> Result<(), Problem> {
    if let Some(id) = &rule.id
        && (id.chars().count() > ID_CHARACTERS_MAX || !id.chars().all(is_xml_char))
    {
        return Err(Problem::Id);
    }
    for text in &rule.origins {
        origin::check(text, matching).map_err(|why| Problem::Origin { text: text.clone(), why })?;
    }
    for text in &rule.methods {
        if !METHODS.contains(&text.as_str()) {
            return Err(Problem::Method(text.clone()));
        }
    }
    for text in &rule.allowed_headers {
        if text.matches('*').count() > 1 {
            return Err(Problem::Wildcards(text.clone()));
        }
        check_header_name(HeaderList::Allowed, text)?;
    }
    for text in &rule.expose_headers {
        if text.contains('*') {
            return Err(Problem::ExposedWildcard(text.clone()));
        }
        check_header_name(HeaderList::Exposed, text)?;
    }
    if rule.origins.is_empty() {
        return Err(Problem::NoOrigin);
    }
    if rule.methods.is_empty() { Err(Problem::NoMethod) } else { Ok(()) }
}

/// Checks that a name is a token (RFC 9110 section 5.6.2), which may contain `*`.
fn check_header_name(list: HeaderList, text: &str) -> Result<(), Problem> {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if !text.is_empty() && text.bytes().all(token) {
        return Ok(());
    }
    Err(Problem::Header { list, text: text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::{CorsError, HeaderList, Problem, RULES_MAX, check};
    use crate::origin::OriginMatching;
    use crate::rule::Rule;

    fn least() -> Rule {
        Rule { origins: vec!["*".to_owned()], methods: vec!["GET".to_owned()], ..Rule::default() }
    }

    fn problem(change: impl FnOnce(&mut Rule)) -> Option<Problem> {
        let mut changed = least();
        change(&mut changed);
        match check(&[least(), changed], OriginMatching::Exact) {
            Ok(()) => None,
            Err(CorsError::Rule { index: 1, problem }) => Some(problem),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_value_of_a_rule_is_checked() {
        assert_eq!(problem(|_| ()), None);
        assert_eq!(problem(|rule| rule.id = Some("\u{e4}".repeat(255))), None);
        assert_eq!(problem(|rule| rule.id = Some("i".repeat(256))), Some(Problem::Id));
        assert_eq!(problem(|rule| rule.id = Some("\0".to_owned())), Some(Problem::Id));
        assert_eq!(problem(|rule| rule.origins.clear()), Some(Problem::NoOrigin));
        assert_eq!(problem(|rule| rule.methods.clear()), Some(Problem::NoMethod));
        let origin = problem(|rule| rule.origins.push("https://*.example.com".to_owned()));
        assert!(matches!(origin, Some(Problem::Origin { .. })), "{origin:?}");
        for method in ["OPTIONS", "get", ""] {
            let found = problem(|rule| rule.methods.push(method.to_owned()));
            assert_eq!(found, Some(Problem::Method(method.to_owned())));
        }
        let allowed = |text: &str| problem(|rule| rule.allowed_headers.push(text.to_owned()));
        let exposed = |text: &str| problem(|rule| rule.expose_headers.push(text.to_owned()));
        assert_eq!(allowed("x-*"), None);
        assert_eq!(allowed("x-*-*"), Some(Problem::Wildcards("x-*-*".to_owned())));
        for text in ["a b", "", "x:y", "\u{e4}"] {
            let expected = |list| Some(Problem::Header { list, text: text.to_owned() });
            assert_eq!(allowed(text), expected(HeaderList::Allowed));
            assert_eq!(exposed(text), expected(HeaderList::Exposed));
        }
        assert_eq!(exposed("ETag"), None);
        assert_eq!(exposed("*"), Some(Problem::ExposedWildcard("*".to_owned())));
    }

    #[test]
    fn a_bucket_has_one_to_a_hundred_rules() {
        assert_eq!(check(&[], OriginMatching::Exact), Err(CorsError::NoRules));
        assert_eq!(check(&vec![least(); RULES_MAX], OriginMatching::Patterns), Ok(()));
        assert_eq!(check(&vec![least(); RULES_MAX + 1], OriginMatching::Exact), Err(CorsError::TooManyRules));
    }
}
