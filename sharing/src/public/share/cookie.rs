//! The cookie that keeps a share unlocked in a browser.
//!
//! Each share has a cookie of its own, which browsers send to the URLs of that share only.

use crate::limits::UNLOCK_PERIOD;
use crate::types::id::LinkId;
use cairn_http1::RequestHead;

/// Cookies of one share that a request may have. Each costs an HMAC.
const SENT_MAX: usize = 4;

/// Returns the name of the cookie of a share.
fn name(share: LinkId) -> String {
    format!("share-{share}")
}

/// Returns the values of a share's cookie in a request, the first ones. Other programs on the same host may have cookies that
/// are no text, which the browser sends in the same header.
pub(crate) fn sent(head: &RequestHead, share: LinkId) -> Vec<&str> {
    let name = name(share);
    let pairs = head.header_values("cookie").flat_map(|value| value.split(|&byte| byte == b';'));
    let texts = pairs.filter_map(|pair| std::str::from_utf8(pair).ok()?.trim().split_once('='));
    texts.filter(|(sent, _)| *sent == name).map(|(_, value)| value).take(SENT_MAX).collect()
}

/// Returns the value of `Set-Cookie`. `path` is the path of the share.
pub(crate) fn set(share: LinkId, unlock_token: &str, path: &str, is_secure: bool) -> String {
    let secure = if is_secure { "; Secure" } else { "" };
    let name = name(share);
    let seconds = UNLOCK_PERIOD.as_secs();
    format!("{name}={unlock_token}; Path={path}; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}")
}

/// Returns the place where browsers see a share: the path in front of `/s/`, and whether it came through TLS. `base_url` is the
/// configured one. It counts only if it has the host that the request was sent to: the share may be reached in other ways too.
pub(crate) fn place<'b>(base_url: Option<&'b str>, host: Option<&str>, is_secure: bool) -> (&'b str, bool) {
    let found = base_url.zip(host).and_then(|(base, host)| {
        let (scheme, rest) = base.split_once("://")?;
        let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let port = if scheme.eq_ignore_ascii_case("https") { ":443" } else { ":80" };
        let without_port = |text: &str| text.strip_suffix(port).unwrap_or(text).to_ascii_lowercase();
        let is_same = without_port(authority) == without_port(host);
        is_same.then(|| (path.trim_end_matches('/'), scheme.eq_ignore_ascii_case("https")))
    });
    match found {
        Some((prefix, is_https)) => (prefix, is_secure || is_https),
        None => ("", is_secure),
    }
}

#[cfg(test)]
mod tests {
    use super::{place, sent, set};
    use crate::types::id::LinkId;
    use cairn_http1::{HeadLimits, parse_head};

    #[test]
    fn a_share_reads_its_own_cookie_only() {
        let (id, other) = (LinkId([1; 16]), LinkId([2; 16]));
        let mut text = b"GET / HTTP/1.1\r\nHost: h\r\nCookie: latin1=\xfc; a=b; ".to_vec();
        text.extend(
            format!("share-{id}=first;share-{other}=other\r\nCookie: share-{id}=second\r\n\r\n").bytes(),
        );
        let (head, _) = parse_head(&text, &HeadLimits::default()).expect("parses").expect("whole");
        assert_eq!(sent(&head, id), ["first", "second"]);
        assert_eq!(sent(&head, other), ["other"]);
        assert!(sent(&head, LinkId([3; 16])).is_empty());
        assert_eq!(
            set(id, "token", "/s/abc", true),
            format!("share-{id}=token; Path=/s/abc; Max-Age=43200; HttpOnly; SameSite=Strict; Secure")
        );
        assert!(set(id, "token", "/s/abc", false).ends_with("SameSite=Strict"));
    }

    #[test]
    fn the_base_url_counts_if_it_has_the_host() {
        let base = Some("https://share.example/files");
        assert_eq!(place(base, Some("share.example"), false), ("/files", true));
        assert_eq!(place(base, Some("SHARE.example:443"), false), ("/files", true));
        assert_eq!(place(base, Some("share.example:7602"), false), ("", false));
        assert_eq!(place(base, Some("localhost"), false), ("", false));
        assert_eq!(place(base, None, false), ("", false));
        assert_eq!(place(None, Some("share.example"), true), ("", true));
        assert_eq!(place(Some("http://h:80"), Some("h"), true), ("", true));
    }
}
