//! Tokens in paths where no link is served: URLs of shares at the data plane, and keys that contain such a URL.
//!
//! A token that is sent to the wrong port is still a secret. It must not become the key of an S3 request, because audit trail,
//! request log and the list of refused requests name keys.

use super::links::PublicLinks;
use crate::denied::DeniedReason;
use crate::types::embed::Embed;
use crate::types::link::LinkKind;
use crate::types::share::Share;
use crate::types::token::TokenHash;
use cairn_http1::{Method, ResponseHead, StatusCode};
use cairn_net::{Request, Response, ResponseBody};

/// The beginnings of the paths of shares. No bucket has a name of one letter. The second form means the same.
const PREFIXES: [&str; 2] = ["/s/", "/%73/"];
/// The route's pattern.
const ROUTE: &str = "/s/{token}";
/// The operation's name.
const OPERATION: &str = "get_share";
const TEXT: &str = "Shares are not served at this port. Check the address: whoever runs this server sets it with \
                    sharing.share_base_url.\n";

impl PublicLinks {
    /// Returns whether the path of a request to the data plane is that of a share, which is served elsewhere. It may begin with
    /// several slashes.
    #[must_use]
    pub fn is_misplaced_share_path(path: &str) -> bool {
        let slashes = path.bytes().take_while(|byte| *byte == b'/').count();
        let path = &path[slashes.saturating_sub(1)..];
        PREFIXES.iter().any(|prefix| path.strip_prefix(prefix).is_some_and(|token| !token.is_empty()))
    }

    /// Refuses a request for a share at the data plane. Neither the response nor what is recorded has the token.
    #[must_use]
    pub fn refuse_misplaced_share(&self, request: &Request) -> Response {
        self.links.count_denied(LinkKind::Share, DeniedReason::NotFound);
        let mut head = ResponseHead::new(StatusCode::NOT_FOUND);
        head.header("content-type", "text/plain; charset=utf-8")
            .header("cache-control", "no-store")
            .header("x-content-type-options", "nosniff")
            .header("referrer-policy", "no-referrer")
            .header("x-robots-tag", "noindex, nofollow, noarchive");
        let is_head = *request.head.method() == Method::HEAD;
        let body = match is_head {
            true => ResponseBody::Omitted { length: None },
            false => ResponseBody::Full(TEXT.as_bytes().to_vec()),
        };
        Response::new(head, body, &request.id).of(ROUTE, OPERATION).with_error(Some("SHARE_NOT_FOUND"))
    }

    /// Returns whether a key contains the path of a link that exists, such as `s/{token}`: a base URL may have a path of its
    /// own, which looks like a bucket at the data plane. Links are looked up only for keys that have the form.
    #[must_use]
    pub fn names_link(&self, key: &str) -> bool {
        let mut previous = "";
        key.split('/').any(|segment| {
            let is_prefix = matches!(std::mem::replace(&mut previous, segment), "s" | "e");
            let token = if is_prefix { TokenHash::of(segment) } else { None };
            token.is_some_and(|token| {
                let share = self.links.find::<Share>(&token).map(|found| found.is_some());
                let embed = self.links.find::<Embed>(&token).map(|found| found.is_some());
                // A store that cannot be read does not make a token public.
                share.unwrap_or(true) || embed.unwrap_or(true)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::PublicLinks;

    #[test]
    fn shares_have_paths_that_no_object_has() {
        for path in ["/s/abc", "/%73/abc", "/s/abc/content", "//s/abc", "/s//"] {
            assert!(PublicLinks::is_misplaced_share_path(path), "{path}");
        }
        for path in ["/s", "/s/", "/s%2Fabc", "/S/abc", "/sss/abc", "/a/s/abc", "", "/"] {
            assert!(!PublicLinks::is_misplaced_share_path(path), "{path}");
        }
        assert!(cairn_model::BucketName::parse("s").is_err());
    }
}
