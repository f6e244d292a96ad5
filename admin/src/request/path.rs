//! Path patterns with variable segments, and the matching of request paths.
//!
//! A pattern segment in braces matches one non-empty segment of the path. A last segment `{key}` matches the non-empty
//! rest of the path, slashes included. All other segments must be equal. Paths are compared as sent: no fixed segment
//! has a character that would be percent-encoded.

/// Most variable segments of a path.
const SEGMENTS_MAX: usize = 2;

/// Values of the variable segments of a path, as sent: percent-encoded.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(crate) struct Segments<'p> {
    named: [(&'static str, &'p str); SEGMENTS_MAX],
    count: usize,
}

impl<'p> Segments<'p> {
    /// Returns the value of the segment `{name}`.
    pub(crate) fn get(&self, name: &str) -> Option<&'p str> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// Returns names and values, in order of the path.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static str, &'p str)> {
        self.named.into_iter().take(self.count)
    }

    fn push(&mut self, name: &'static str, value: &'p str) {
        assert!(self.count < SEGMENTS_MAX, "a pattern has at most {SEGMENTS_MAX} variable segments");
        self.named[self.count] = (name, value);
        self.count += 1;
    }
}

/// Returns the names of the variable segments of a pattern, in order.
pub(crate) fn variables(pattern: &'static str) -> impl Iterator<Item = &'static str> {
    pattern.split('/').filter_map(variable)
}

/// Returns the name of a pattern segment in braces.
fn variable(segment: &'static str) -> Option<&'static str> {
    segment.strip_prefix('{')?.strip_suffix('}')
}

/// Matches a path against a pattern. Returns `None` if it does not match.
pub(crate) fn match_path<'p>(pattern: &'static str, path: &'p str) -> Option<Segments<'p>> {
    let mut segments = Segments::default();
    let (mut patterns, mut rest) = (pattern.split('/').peekable(), Some(path));
    while let Some(expected) = patterns.next() {
        let unmatched = rest?;
        if expected == "{key}" && patterns.peek().is_none() {
            segments.push("key", unmatched);
            return (!unmatched.is_empty()).then_some(segments);
        }
        let (segment, following) = unmatched
            .split_once('/')
            .map_or((unmatched, None), |(segment, following)| (segment, Some(following)));
        rest = following;
        match variable(expected) {
            Some(name) if !segment.is_empty() => segments.push(name, segment),
            None if expected == segment => {}
            _ => return None,
        }
    }
    rest.is_none().then_some(segments)
}

#[cfg(test)]
mod tests {
    use super::match_path;

    #[test]
    fn key_matches_rest_of_path_and_variable_matches_one_segment() {
        let segments = |pattern, path| {
            match_path(pattern, path).map(|found| found.iter().map(|(_, value)| value).collect::<Vec<_>>())
        };
        let object = "/v/{bucket}/{key}";
        assert_eq!(segments(object, "/v/b/k"), Some(vec!["b", "k"]));
        assert_eq!(segments(object, "/v/b/k/l//%2F/"), Some(vec!["b", "k/l//%2F/"]));
        assert_eq!(segments(object, "/v/b//"), Some(vec!["b", "/"]));
        assert_eq!(segments("/v/{bucket}", "/v/b"), Some(vec!["b"]));
        assert_eq!(segments("/v/{id}/w/{other_id}", "/v/1/w/2"), Some(vec!["1", "2"]));
        assert_eq!(segments("/v", "/v"), Some(vec![]));
        assert_eq!(match_path(object, "/v/b/k").and_then(|found| found.get("key")), Some("k"));
        for (pattern, path) in [
            (object, "/v/b"),
            (object, "/v/b/"),
            (object, "/v//k"),
            (object, "/w/b/k"),
            ("/v/{bucket}", "/v/"),
            ("/v/{bucket}", "/v/b/"),
            ("/v/{id}/w/{other_id}", "/v/1/w/"),
            ("/v", "/v/"),
            ("/v", "v"),
        ] {
            assert_eq!(segments(pattern, path), None, "{pattern} {path}");
        }
    }
}
