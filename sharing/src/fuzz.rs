//! The bodies of this crate's fuzz targets in `fuzz/`.
//!
//! `cargo test` runs them on the stored corpora and on mutations of these.

use crate::limits::ORIGIN_BYTES_MAX;
use crate::public::PublicLinks;
use crate::store::check_fuzzed_record;
use crate::types::media_type::MediaClass;
use crate::types::origin::WebOrigin;
use crate::types::token::TokenHash;

/// A function that a fuzz target calls with its input. It panics when a property does not hold.
pub type Body = fn(&[u8]);

/// The bodies of this crate with the names of their targets.
pub const BODIES: &[(&str, Body)] =
    &[("web_origin", web_origin), ("link_record", link_record), ("link_path", link_path)];

/// Takes an origin, or the value of a header `Origin` or `Referer`. A valid origin has one canonical form, which is what the
/// standard's own parser makes of a URL with it. A header names an origin only if its own text begins with it.
///
/// # Panics
/// Panics when a property does not hold.
pub fn web_origin(data: &[u8]) {
    if let Some(found) = WebOrigin::of_referrer(data) {
        check_canonical(&found);
        let origins = [found];
        assert_eq!(WebOrigin::find_in_referrer(&origins, data), Some(&origins[0]));
        // The origin ends where the path begins: nothing before that is left over.
        let text = std::str::from_utf8(
            &data[..data.iter().position(|byte| b"?#".contains(byte)).unwrap_or(data.len())],
        );
        if let Ok(text) = text {
            let authority =
                text.split("//").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or_default();
            assert!(!authority.contains(['@', '\\', ' ']), "{text}");
        }
    }
    if let Some(found) = WebOrigin::of_origin(data) {
        assert!(data.len() <= ORIGIN_BYTES_MAX);
        assert_eq!(WebOrigin::parse(std::str::from_utf8(data).expect("ASCII")), Ok(found));
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    match WebOrigin::parse(text) {
        Ok(origin) => check_canonical(&origin),
        Err(reason) => assert!(!reason.0.is_empty() && reason.0.len() < 120),
    }
    if let Some(shown) = MediaClass::shown_content_type(text) {
        assert!(
            !shown.contains([',', '\r', '\n']) && !shown.contains("html") && !shown.contains("svg"),
            "{shown}"
        );
    }
}

fn check_canonical(origin: &WebOrigin) {
    let text = origin.as_str();
    assert!(text.bytes().all(|byte| byte.is_ascii_graphic() && !byte.is_ascii_uppercase()), "{text}");
    assert_eq!(WebOrigin::parse(text).as_ref(), Ok(origin));
    let authority = text.split_once("://").expect("a scheme").1;
    assert!(
        !authority.is_empty() && !authority.contains(['/', '\\', '?', '#', '@', '*', '%', ' ']),
        "{text}"
    );
    assert!(!text.ends_with(":80") || text.starts_with("https"), "{text}");
    assert!(!text.ends_with(":443") || text.starts_with("http://"), "{text}");
    for page in [format!("{text}/a@b?c#d"), format!("{text}?x"), text.to_owned()] {
        assert_eq!(WebOrigin::of_referrer(page.as_bytes()).as_ref(), Some(origin), "{page}");
    }
    for other in
        [format!("{text}.evil.example"), format!("{text}@evil.example/"), format!("{text}\\.evil.example")]
    {
        assert_ne!(WebOrigin::of_referrer(other.as_bytes()).as_ref(), Some(origin), "{other}");
    }
}

/// Takes a record: a byte for its kind, a byte for its version, and its body. What is read is written as the same record.
///
/// # Panics
/// Panics when a property does not hold.
pub fn link_record(data: &[u8]) {
    if let [kind, version, body @ ..] = data {
        check_fuzzed_record(*kind, *version, body);
    }
}

/// Takes the path of a request. No path belongs to shares and embeds at once, and only 43 characters of base64url are a token.
///
/// # Panics
/// Panics when a property does not hold.
pub fn link_path(data: &[u8]) {
    let Ok(path) = std::str::from_utf8(data) else { return };
    let (is_embed, is_share) = (PublicLinks::is_embed_path(path), PublicLinks::is_share_path(path));
    assert!(!(is_embed && is_share), "{path}");
    if is_embed || is_share {
        let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
        assert!(["e", "%65", "s", "%73"].contains(&first), "{path}");
    }
    let last = path.rsplit('/').next().unwrap_or_default();
    if TokenHash::of(last).is_some() {
        assert!(last.len() == 43 && !last.contains(['%', '.', '?', '#']), "{path}");
    }
}

#[cfg(test)]
#[path = "../../fuzz/short_run.rs"]
mod short_run;
