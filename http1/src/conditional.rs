//! Evaluates the preconditions of conditional requests and `If-Range` (RFC 9110 section 13).
//!
//! The caller passes the validators of the current representation. Entity tags are compared with or without their
//! quotes, because S3 clients send both. An invalid date counts as absent.

use crate::date::parse_http_date;
use crate::head::RequestHead;
use crate::syntax::trim_ows;

/// The validators of the current representation.
#[derive(Clone, Copy, Debug)]
pub struct Validators<'a> {
    /// Its strong entity tag, with or without quotes.
    pub etag: &'a str,
    /// The time of the last modification, in whole seconds since the Unix epoch, the resolution of HTTP dates.
    pub last_modified_seconds: u64,
}

/// The result of evaluating preconditions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// All of them hold: answer as if there were none.
    Proceed,
    /// 304: the client's copy is current.
    NotModified,
    /// 412: the precondition in the header of this name does not hold.
    PreconditionFailed(&'static str),
}

/// The four preconditions of a request, as sent. Construct it directly for `x-amz-copy-source-if-*`.
#[derive(Clone, Copy, Default, Debug)]
pub struct Conditions<'a> {
    /// `If-Match`.
    pub if_match: Option<&'a [u8]>,
    /// `If-None-Match`.
    pub if_none_match: Option<&'a [u8]>,
    /// `If-Modified-Since`.
    pub if_modified_since: Option<&'a [u8]>,
    /// `If-Unmodified-Since`.
    pub if_unmodified_since: Option<&'a [u8]>,
}

impl<'a> Conditions<'a> {
    /// Returns the preconditions of a request.
    #[must_use]
    pub fn of(head: &'a RequestHead) -> Self {
        Self {
            if_match: head.header("if-match"),
            if_none_match: head.header("if-none-match"),
            if_modified_since: head.header("if-modified-since"),
            if_unmodified_since: head.header("if-unmodified-since"),
        }
    }

    /// Returns whether there are none, the usual case.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.if_match.is_none()
            && self.if_none_match.is_none()
            && self.if_modified_since.is_none()
            && self.if_unmodified_since.is_none()
    }

    /// Evaluates the preconditions of a GET or HEAD of an existing representation, in the order of RFC 9110 section
    /// 13.2.2: `If-Match`, or else `If-Unmodified-Since`; then `If-None-Match`, or else `If-Modified-Since`. `If-Match`
    /// compares strongly, `If-None-Match` weakly. An `If-Modified-Since` after `now_seconds` counts as absent, as on AWS and
    /// in RFC 2616 section 14.25.
    #[must_use]
    pub fn evaluate(&self, current: &Validators<'_>, now_seconds: u64) -> Verdict {
        let signed = |seconds: u64| i64::try_from(seconds).unwrap_or(i64::MAX);
        let modified_after = |date: i64| signed(current.last_modified_seconds) > date;
        match (self.if_match, self.if_unmodified_since.and_then(parse_http_date).map(modified_after)) {
            (Some(tags), _) if !entity_tag_matches(tags, current.etag, Comparison::Strong) => {
                return Verdict::PreconditionFailed("If-Match");
            }
            (None, Some(true)) => return Verdict::PreconditionFailed("If-Unmodified-Since"),
            _ => {}
        }
        let modified_since = self.if_modified_since.and_then(parse_http_date);
        match (
            self.if_none_match,
            modified_since.filter(|date| *date <= signed(now_seconds)).map(modified_after),
        ) {
            (Some(tags), _) if entity_tag_matches(tags, current.etag, Comparison::Weak) => {
                Verdict::NotModified
            }
            (None, Some(false)) => Verdict::NotModified,
            _ => Verdict::Proceed,
        }
    }
}

/// The comparison of entity tags (RFC 9110 section 8.8.3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comparison {
    /// Weak tags match nothing.
    Strong,
    /// `W/` makes no difference.
    Weak,
}

/// Returns whether a list of entity tags, as sent in `If-Match` or `If-None-Match`, contains `etag`, which is strong
/// and may be quoted. `*` matches every existing representation.
#[must_use]
pub fn entity_tag_matches(list: &[u8], etag: &str, comparison: Comparison) -> bool {
    let etag = unquoted(etag.as_bytes());
    trim_ows(list) == b"*" || entity_tags(list, comparison).any(|tag| tag == etag)
}

/// Returns the tags of a list, as sent in `If-Match` or `If-None-Match`, that can match a strong tag, without quotes.
pub fn entity_tags(list: &[u8], comparison: Comparison) -> impl Iterator<Item = &[u8]> {
    let tags = EntityTags { rest: list };
    tags.filter(move |tag| comparison == Comparison::Weak || !tag.weak).map(|tag| tag.opaque)
}

/// Returns whether `If-Range` allows the range (RFC 9110 section 13.1.5): it is absent, or it is exactly the same
/// strong tag or date.
#[must_use]
pub fn if_range_matches(value: Option<&[u8]>, current: &Validators<'_>) -> bool {
    let Some(value) = value.map(trim_ows) else { return true };
    if let Some(date) = parse_http_date(value) {
        return u64::try_from(date).is_ok_and(|date| date == current.last_modified_seconds);
    }
    match (EntityTags { rest: value }).next() {
        Some(tag) => !tag.weak && tag.opaque == unquoted(current.etag.as_bytes()),
        None => false,
    }
}

struct EntityTag<'a> {
    weak: bool,
    opaque: &'a [u8],
}

/// Iterates over the tags of a list. A quoted tag may contain commas; an unquoted one ends at the next comma.
struct EntityTags<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for EntityTags<'a> {
    type Item = EntityTag<'a>;

    fn next(&mut self) -> Option<EntityTag<'a>> {
        while let [b' ' | b'\t' | b',', rest @ ..] = self.rest {
            self.rest = rest;
        }
        let weak = self.rest.starts_with(b"W/");
        let bytes = if weak { &self.rest[2..] } else { self.rest };
        if bytes.is_empty() {
            self.rest = bytes;
            return None;
        }
        let (opaque, rest) = match bytes {
            [b'"', inner @ ..] => match inner.iter().position(|&byte| byte == b'"') {
                Some(end) => (&inner[..end], &inner[end + 1..]),
                None => (inner, &inner[inner.len()..]),
            },
            _ => {
                let end = bytes.iter().position(|&byte| byte == b',').unwrap_or(bytes.len());
                (trim_ows(&bytes[..end]), &bytes[end..])
            }
        };
        self.rest = rest;
        Some(EntityTag { weak, opaque })
    }
}

fn unquoted(tag: &[u8]) -> &[u8] {
    tag.strip_prefix(b"\"").and_then(|tag| tag.strip_suffix(b"\"")).unwrap_or(tag)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Sun, 06 Nov 1994 08:49:37 GMT
    const MODIFIED: u64 = 784_111_777;
    const SAME: &[u8] = b"Sun, 06 Nov 1994 08:49:37 GMT";
    const BEFORE: &[u8] = b"Sun, 06 Nov 1994 08:49:36 GMT";
    const NOW: u64 = MODIFIED + 10;
    const CURRENT: Validators<'static> = Validators { etag: "\"abc\"", last_modified_seconds: MODIFIED };

    fn verdict(conditions: Conditions<'_>) -> Verdict {
        conditions.evaluate(&CURRENT, NOW)
    }

    #[test]
    fn without_conditions_the_request_proceeds() {
        assert!(Conditions::default().is_empty());
        assert_eq!(verdict(Conditions::default()), Verdict::Proceed);
    }

    #[test]
    fn tags_match_in_lists_with_or_without_quotes() {
        for list in ["*", "\"abc\"", "abc", "\"x\", \"abc\"", "x,abc", " \"a,b\" ,\"abc\"", ",,\"abc\""] {
            assert!(entity_tag_matches(list.as_bytes(), "abc", Comparison::Strong), "{list}");
            assert!(entity_tag_matches(list.as_bytes(), "\"abc\"", Comparison::Strong), "{list}");
        }
        for list in ["", "\"\"", "\"abcd\"", "ab", "\"a,abc\"", "\"ABC\""] {
            assert!(!entity_tag_matches(list.as_bytes(), "abc", Comparison::Weak), "{list}");
        }
    }

    #[test]
    fn weak_tags_count_only_for_if_none_match() {
        let weak: Option<&[u8]> = Some(b"W/\"abc\"");
        assert_eq!(
            verdict(Conditions { if_match: weak, ..Default::default() }),
            Verdict::PreconditionFailed("If-Match")
        );
        assert_eq!(verdict(Conditions { if_none_match: weak, ..Default::default() }), Verdict::NotModified);
    }

    #[test]
    fn a_matching_tag_overrides_the_date() {
        let conditions = Conditions {
            if_match: Some(b"\"abc\""),
            if_unmodified_since: Some(BEFORE),
            ..Default::default()
        };
        assert_eq!(verdict(conditions), Verdict::Proceed);
        let conditions =
            Conditions { if_none_match: Some(b"\"x\""), if_modified_since: Some(SAME), ..Default::default() };
        assert_eq!(verdict(conditions), Verdict::Proceed);
        let conditions = Conditions {
            if_none_match: Some(b"\"abc\""),
            if_modified_since: Some(BEFORE),
            ..Default::default()
        };
        assert_eq!(verdict(conditions), Verdict::NotModified);
    }

    #[test]
    fn dates_are_compared_by_the_second() {
        let since = |date| Conditions { if_modified_since: Some(date), ..Default::default() };
        assert_eq!(verdict(since(SAME)), Verdict::NotModified);
        assert_eq!(verdict(since(BEFORE)), Verdict::Proceed);
        let unmodified = |date| Conditions { if_unmodified_since: Some(date), ..Default::default() };
        assert_eq!(verdict(unmodified(SAME)), Verdict::Proceed);
        assert_eq!(verdict(unmodified(BEFORE)), Verdict::PreconditionFailed("If-Unmodified-Since"));
    }

    /// Clients with a clock that is ahead were told that nothing had changed.
    #[test]
    fn modified_since_a_time_to_come_is_ignored() {
        let since = |date| Conditions { if_modified_since: Some(date), ..Default::default() };
        assert_eq!(verdict(since(b"Sun, 06 Nov 1994 08:49:47 GMT")), Verdict::NotModified);
        assert_eq!(verdict(since(b"Sun, 06 Nov 1994 08:49:48 GMT")), Verdict::Proceed);
    }

    #[test]
    fn invalid_dates_are_ignored() {
        let junk: Option<&[u8]> = Some(b"yesterday");
        assert_eq!(verdict(Conditions { if_modified_since: junk, ..Default::default() }), Verdict::Proceed);
        assert_eq!(verdict(Conditions { if_unmodified_since: junk, ..Default::default() }), Verdict::Proceed);
    }

    #[test]
    fn a_failed_precondition_overrides_not_modified() {
        let conditions =
            Conditions { if_match: Some(b"\"x\""), if_none_match: Some(b"\"abc\""), ..Default::default() };
        assert_eq!(verdict(conditions), Verdict::PreconditionFailed("If-Match"));
    }

    #[test]
    fn if_range_needs_exactly_the_same_validator() {
        assert!(if_range_matches(None, &CURRENT));
        assert!(if_range_matches(Some(b"\"abc\""), &CURRENT));
        assert!(if_range_matches(Some(b"abc"), &CURRENT));
        assert!(if_range_matches(Some(SAME), &CURRENT));
        assert!(!if_range_matches(Some(BEFORE), &CURRENT));
        assert!(!if_range_matches(Some(b"W/\"abc\""), &CURRENT));
        assert!(!if_range_matches(Some(b"\"x\""), &CURRENT));
        assert!(!if_range_matches(Some(b""), &CURRENT));
    }

    proptest! {
        #[test]
        fn any_bytes_are_evaluated_without_panic(list in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = entity_tag_matches(&list, "abc", Comparison::Weak);
            let _ = if_range_matches(Some(&list), &CURRENT);
        }
    }
}
