//! CORS rules: their encoding in the bucket's record, and which rule allows a request.
//!
//! The engine stores them as opaque bytes: JSON, `{"version": 1, "rules": [{"id", "origins", "methods",
//! "allowed_headers", "expose_headers", "max_age_seconds"}]}`. Texts are stored as they were put. Members that were not
//! put are absent. Rules that cannot be decoded allow no request.

use crate::checks::{self, CorsError};
use crate::origin::{ANY, OriginMatching, RequestOrigin};
use crate::rule::Rule;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The version of the encoding.
const VERSION: u32 = 1;

/// Longest origin that is compared with the rules, in bytes. A host name has at most 253 bytes.
const ORIGIN_BYTES_MAX: usize = 2048;
/// Most requested headers that are compared with the rules. Each rule may have some thousand patterns.
const HEADERS_MAX: usize = 100;

/// The rules of a bucket, in the order in which they are tried.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    version: u32,
    rules: Vec<Rule>,
}

/// The origin, method and headers that a browser declares for a request.
#[derive(Clone, Copy, Debug)]
pub struct CrossOrigin<'a> {
    /// `Origin`.
    pub origin: &'a str,
    /// The request's method.
    pub method: &'a str,
    /// `Access-Control-Request-Headers`, a list.
    pub headers: &'a str,
}

impl<'a> CrossOrigin<'a> {
    /// The names of the headers.
    pub fn header_names(self) -> impl Iterator<Item = &'a str> {
        self.headers.split(',').map(str::trim).filter(|name| !name.is_empty())
    }
}

/// The rule that allows a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission<'r> {
    /// The rule.
    pub rule: &'r Rule,
    /// Whether the rule allows any origin.
    pub any_origin: bool,
}

/// The first part of a request that no rule allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// No rule allows the origin, or it is too long.
    Origin,
    /// No rule that allows the origin allows the method.
    Method,
    /// No rule that allows origin and method allows all headers, or there are too many.
    Headers,
}

impl Rules {
    /// Checks the rules of a bucket.
    ///
    /// # Errors
    /// The first thing that is not allowed.
    pub fn new(rules: Vec<Rule>, matching: OriginMatching) -> Result<Self, CorsError> {
        checks::check(&rules, matching)?;
        Ok(Self { version: VERSION, rules })
    }

    /// Encodes the rules for the bucket's record.
    ///
    /// # Panics
    /// Never: the encoding of texts and numbers cannot fail.
    #[must_use]
    pub fn encode(&self) -> Arc<[u8]> {
        serde_json::to_vec(self).expect("texts and numbers can be encoded").into()
    }

    /// Returns the rules in the order in which they are tried.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Decodes stored rules; `None` for an invalid or a later encoding.
    #[must_use]
    pub fn decode(stored: &[u8]) -> Option<Self> {
        serde_json::from_slice(stored).ok().filter(|rules: &Self| rules.version == VERSION)
    }

    /// Returns the first rule that allows origin, method and headers together; `None` for an origin or a list of
    /// headers that is too long.
    #[must_use]
    pub fn admit(&self, request: CrossOrigin<'_>, matching: OriginMatching) -> Option<Admission<'_>> {
        let names: Vec<&str> = request.header_names().take(HEADERS_MAX + 1).collect();
        if request.origin.len() > ORIGIN_BYTES_MAX || names.len() > HEADERS_MAX {
            return None;
        }
        let origin = RequestOrigin::new(request.origin);
        self.rules.iter().find_map(|rule| {
            let is_any = |allowed: &String| allowed == ANY;
            // An `Origin: *`, which no browser sends, is treated as any other origin: without credentials.
            let named = |allowed: &String| !is_any(allowed) && origin.is(allowed, matching);
            let is_named = rule.origins.iter().any(named);
            let any_origin = !is_named && rule.origins.iter().any(is_any);
            let admits = (is_named || any_origin)
                && rule.methods.iter().any(|allowed| allowed == request.method)
                && names.iter().all(|name| allows_header(rule, name));
            admits.then_some(Admission { rule, any_origin })
        })
    }

    /// Returns what no rule allows of a request that [`Self::admit`] has refused.
    #[must_use]
    pub fn mismatch(&self, request: CrossOrigin<'_>, matching: OriginMatching) -> Mismatch {
        if request.origin.len() > ORIGIN_BYTES_MAX {
            return Mismatch::Origin;
        }
        let origin = RequestOrigin::new(request.origin);
        let allows_origin =
            |rule: &&Rule| rule.origins.iter().any(|one| one == ANY || origin.is(one, matching));
        let allows_method = |rule: &Rule| rule.methods.iter().any(|one| one == request.method);
        let methods: Vec<bool> = self.rules.iter().filter(allows_origin).map(allows_method).collect();
        match &methods[..] {
            [] => Mismatch::Origin,
            allowed if allowed.contains(&true) => Mismatch::Headers,
            _ => Mismatch::Method,
        }
    }
}

/// Returns whether any pattern of the rule matches the header, ignoring case.
fn allows_header(rule: &Rule, name: &str) -> bool {
    rule.allowed_headers.iter().any(|pattern| match pattern.split_once('*') {
        None => pattern.eq_ignore_ascii_case(name),
        Some((start, end)) => {
            let (pattern, name) = ((start.as_bytes(), end.as_bytes()), name.as_bytes());
            name.len() >= pattern.0.len() + pattern.1.len()
                && name[..pattern.0.len()].eq_ignore_ascii_case(pattern.0)
                && name[name.len() - pattern.1.len()..].eq_ignore_ascii_case(pattern.1)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::{CrossOrigin, Mismatch, Rules};
    use crate::origin::OriginMatching::Exact;
    use crate::rule::Rule;

    impl Rules {
        /// Makes rules without checking them.
        fn of(rules: Vec<Rule>) -> Self {
            Self { version: super::VERSION, rules }
        }
    }

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    fn rule(origins: &[&str], methods: &[&str], headers: &[&str]) -> Rule {
        Rule {
            origins: texts(origins),
            methods: texts(methods),
            allowed_headers: texts(headers),
            ..Rule::default()
        }
    }

    #[test]
    fn first_matching_rule_wins() {
        let rules = Rules::of(vec![
            rule(&["https://a.example"], &["GET"], &[]),
            rule(&["https://a.example", "*"], &["GET", "PUT"], &["x-amz-*", "Content-Type"]),
        ]);
        let admitted = |origin, method, headers| {
            let admission = rules.admit(CrossOrigin { origin, method, headers }, Exact)?;
            Some((rules.rules.iter().position(|rule| rule == admission.rule)?, admission.any_origin))
        };
        let a = "https://a.example";
        assert_eq!(admitted(a, "GET", ""), Some((0, false)));
        assert_eq!(admitted(a, "GET", "X-AMZ-Date,content-type"), Some((1, false)));
        assert_eq!(admitted(a, "PUT", ""), Some((1, false)));
        assert_eq!(admitted("https://b.example", "GET", ""), Some((1, true)));
        assert_eq!(admitted("*", "GET", ""), Some((1, true)));
        for (origin, method, headers) in [
            (a, "DELETE", ""),
            (a, "get", ""),
            (a, "PUT", "authorization"),
            (a, "PUT", "content-type, x-other"),
        ] {
            assert_eq!(admitted(origin, method, headers), None, "{method} {headers}");
        }
    }

    #[test]
    fn mismatch_names_the_first_part_that_no_rule_allows() {
        let rules =
            Rules::of(vec![rule(&["https://a.example"], &["GET"], &["x-a"]), rule(&["*"], &["PUT"], &[])]);
        let mismatch =
            |origin, method, headers| rules.mismatch(CrossOrigin { origin, method, headers }, Exact);
        let (a, long) = ("https://a.example", "o".repeat(2049));
        assert_eq!(mismatch(a, "DELETE", ""), Mismatch::Method);
        assert_eq!(mismatch("https://b.example", "GET", ""), Mismatch::Method);
        assert_eq!(mismatch(a, "GET", "x-b"), Mismatch::Headers);
        assert_eq!(mismatch(&long, "PUT", ""), Mismatch::Origin);
        let named = Rules::of(vec![rule(&[a], &["GET"], &[])]);
        let other = CrossOrigin { origin: "https://b.example", method: "GET", headers: "" };
        assert_eq!(named.mismatch(other, Exact), Mismatch::Origin);
        assert_eq!(Rules::of(Vec::new()).mismatch(other, Exact), Mismatch::Origin);
    }

    /// Anyone may send a preflight, and each of thousands of names was compared with each of thousands of patterns.
    #[test]
    fn too_long_origins_and_header_lists_are_refused() {
        let rules = Rules::of(vec![rule(&["*"], &["GET"], &["*"])]);
        let admits = |origin: &str, headers: &str| {
            rules.admit(CrossOrigin { origin, method: "GET", headers }, Exact).is_some()
        };
        assert!(admits("https://a.example", &"x-a,".repeat(100)));
        assert!(!admits("https://a.example", &"x-a,".repeat(101)));
        assert!(admits(&"o".repeat(2048), ""));
        assert!(!admits(&"o".repeat(2049), ""));
    }

    #[test]
    fn header_pattern_matches_prefix_and_suffix() {
        let rules = Rules::of(vec![rule(&["*"], &["GET"], &["X-*-Name", "*-End"])]);
        for (headers, allowed) in [
            ("x-any-name", true),
            ("X--NAME", true),
            ("x-name", false),
            ("my-end", true),
            ("-end", true),
            ("end", false),
            (" x-a-name , my-end,", true),
        ] {
            let request = CrossOrigin { origin: "null", method: "GET", headers };
            assert_eq!(rules.admit(request, Exact).is_some(), allowed, "{headers}");
        }
        let all = Rules::of(vec![rule(&["*"], &["GET"], &["*"])]);
        assert!(
            all.admit(CrossOrigin { origin: "x", method: "GET", headers: "anything, at-all" }, Exact)
                .is_some()
        );
    }

    #[test]
    fn rules_survive_encoding() {
        let full = Rule {
            id: Some("one".to_owned()),
            expose_headers: texts(&["ETag"]),
            max_age_seconds: Some(3000),
            ..rule(&["http://\u{e4}"], &["GET"], &["*"])
        };
        for rules in [Rules::of(vec![full, rule(&["*"], &["PUT"], &[])]), Rules::of(Vec::new())] {
            let encoded = rules.encode();
            assert_eq!(Rules::decode(&encoded), Some(rules));
        }
        let golden = br#"{"version":1,"rules":[{"origins":["*"],"methods":["GET"]}]}"#;
        assert_eq!(&*Rules::of(vec![rule(&["*"], &["GET"], &[])]).encode(), golden);
        for bad in [
            &b""[..],
            b"{}",
            br#"{"version":2,"rules":[]}"#,
            br#"{"version":1,"rules":[{"origins":["*"],"methods":["GET"],"later":1}]}"#,
        ] {
            assert_eq!(Rules::decode(bad), None);
        }
    }
}
