//! The paths of shares.

/// The beginning of the paths of shares.
const PREFIX: &str = "/s/";

/// The page that a path names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SharePage {
    /// `/s/{token}`: the share itself, as JSON or as a page.
    Descriptor,
    /// `/s/{token}/unlock`.
    Unlock,
    /// `/s/{token}/content`.
    Content,
}

impl SharePage {
    /// Returns the pattern of the route, for log and metrics.
    pub(crate) const fn route(self) -> &'static str {
        match self {
            Self::Descriptor => "/s/{token}",
            Self::Unlock => "/s/{token}/unlock",
            Self::Content => "/s/{token}/content",
        }
    }

    /// Returns the name of the operation, for log, metrics and audit trail.
    pub(crate) const fn operation(self) -> &'static str {
        match self {
            Self::Descriptor => "get_share",
            Self::Unlock => "unlock_share",
            Self::Content => "get_share_content",
        }
    }

    /// Returns the methods, as in the header `Allow`.
    pub(crate) const fn methods(self) -> &'static str {
        match self {
            Self::Descriptor | Self::Content => "GET, HEAD",
            Self::Unlock => "POST",
        }
    }
}

/// Returns whether a path belongs to shares.
pub(crate) fn is_share_path(path: &str) -> bool {
    path.starts_with(PREFIX)
}

/// Splits a path, as it was sent, into the text of a token and what is wanted of its share. `None` if it names nothing.
/// Tokens contain no percent sign and no slash, so nothing is decoded.
pub(crate) fn parse(path: &str) -> Option<(&str, SharePage)> {
    let rest = path.strip_prefix(PREFIX)?;
    match rest.split_once('/') {
        None => Some((rest, SharePage::Descriptor)),
        Some((token, "unlock")) => Some((token, SharePage::Unlock)),
        Some((token, "content")) => Some((token, SharePage::Content)),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{SharePage, is_share_path, parse};

    #[test]
    fn nothing_follows_a_token_but_the_known_names() {
        for (path, expected) in [
            ("/s/abc", Some(("abc", SharePage::Descriptor))),
            ("/s/abc/content", Some(("abc", SharePage::Content))),
            ("/s/abc/unlock", Some(("abc", SharePage::Unlock))),
            ("/s/abc/", None),
            ("/s/abc/content/", None),
            ("/s/abc/content/..", None),
            ("/s/abc/%63ontent", None),
            ("/s/abc//content", None),
            ("/s/../s/content", None),
        ] {
            assert!(is_share_path(path));
            assert_eq!(parse(path), expected, "{path}");
        }
        assert!(!is_share_path("/s") && !is_share_path("/sessions/abc") && !is_share_path("/S/abc"));
    }
}
