//! Access to an embed: allowed origins, and content types that are not run.
//!
//! A page's origin is what the browser reports: `Origin`, which scripts cannot set, or else `Referer` (Fetch Standard). A
//! client that is not a browser can send any value. So this keeps an embed off other sites. It does not hide the content from
//! a client that has the URL.

use super::refusals;
use crate::denied::DeniedReason;
use crate::public::refusal::Refusal;
use crate::types::embed::Embed;
use crate::types::origin::WebOrigin;
use cairn_http1::RequestHead;

/// The uses for which a browser runs the content, or gives it to a plug-in (Fetch Standard, "destination").
const REFUSED_DESTINATIONS: [&[u8]; 10] = [
    b"script",
    b"style",
    b"object",
    b"embed",
    b"worker",
    b"sharedworker",
    b"serviceworker",
    b"audioworklet",
    b"paintworklet",
    b"xslt",
];

/// Checks that a request comes from a page of an allowed origin. Returns that origin if the browser asks for a permission to
/// let scripts of the page read the response (CORS).
///
/// # Errors
/// A refusal that says what the page's author can do.
pub(super) fn check_page<'e>(head: &RequestHead, embed: &'e Embed) -> Result<Option<&'e WebOrigin>, Refusal> {
    let allowed = &embed.allowed_origins;
    let mut origins = head.header_values("origin");
    if let Some(origin) = origins.next() {
        // Nobody knows which of several counts.
        if origins.next().is_some() {
            return Err(refused("The request has more than one header Origin.".to_owned()));
        }
        let found = WebOrigin::find_in_origin(allowed, origin);
        return match found {
            Some(found) => Ok(Some(found)),
            None if origin == b"null" => Err(refused(
                "The page has no origin (Origin: null), like local files and sandboxed frames. Use the embed in a page of a \
                 web site that the embed allows."
                    .to_owned(),
            )),
            None => Err(refused(not_allowed(WebOrigin::of_origin(origin)))),
        };
    }
    let mut referrers = head.header_values("referer");
    match (referrers.next(), referrers.next()) {
        (None, _) => Err(refused(
            "The browser did not say which page this embed is used in: the request has neither Origin nor Referer. Embeds work \
             only inside of pages. If the page has the policy no-referrer or same-origin, add referrerpolicy=\"strict-origin\" to \
             the element. A page with https needs an embed URL with https."
                .to_owned(),
        )),
        (Some(_), Some(_)) => Err(refused("The request has more than one header Referer.".to_owned())),
        (Some(referrer), None) => match WebOrigin::find_in_referrer(allowed, referrer) {
            Some(_) => Ok(None),
            None => Err(refused(not_allowed(WebOrigin::of_referrer(referrer)))),
        },
    }
}

fn not_allowed(origin: Option<WebOrigin>) -> String {
    let origin = origin.as_ref().map_or("this origin", WebOrigin::as_str);
    format!(
        "Pages of {origin} may not use this embed. Whoever created it can add this origin to its allowed_origins."
    )
}

fn refused(text: String) -> Refusal {
    refusals::forbidden(DeniedReason::Origin, text)
}

/// Refuses requests for content that the browser would run. Browsers without `Sec-Fetch-Dest` are stopped by the headers of the
/// response.
///
/// # Errors
/// A refusal that names the use.
pub(super) fn check_destination(head: &RequestHead) -> Result<(), Refusal> {
    let refused = |value: &[u8]| REFUSED_DESTINATIONS.into_iter().find(|name| *name == value);
    match head.header_values("sec-fetch-dest").find_map(refused) {
        None => Ok(()),
        Some(destination) => Err(refusals::forbidden(
            DeniedReason::Destination,
            format!(
                "An embed cannot be used as {}. Use img, video or audio.",
                String::from_utf8_lossy(destination)
            ),
        )),
    }
}
