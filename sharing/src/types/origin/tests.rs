//! Tests of origins: tables of tricky inputs, and properties.

use super::{InvalidOrigin, WebOrigin, origin_text};
use proptest::prelude::*;

fn parse(text: &str) -> Result<String, InvalidOrigin> {
    WebOrigin::parse(text).map(|origin| origin.to_string())
}

#[test]
fn origins_get_the_form_that_browsers_send() {
    for (text, canonical) in [
        ("https://example.com", "https://example.com"),
        ("HTTPS://Example.COM:443", "https://example.com"),
        ("http://example.com:80", "http://example.com"),
        ("http://example.com:443", "http://example.com:443"),
        ("https://example.com:80", "https://example.com:80"),
        ("http://localhost:3000", "http://localhost:3000"),
        ("https://bücher.example", "https://xn--bcher-kva.example"),
        ("https://BÜCHER.example:8443", "https://xn--bcher-kva.example:8443"),
        ("https://xn--bcher-kva.example", "https://xn--bcher-kva.example"),
        ("https://straße.example", "https://xn--strae-oqa.example"),
        ("https://例え.テスト", "https://xn--r8jz45g.xn--zckzah"),
        ("https://ｅｘａｍｐｌｅ.com", "https://example.com"),
        ("https://example。com", "https://example.com"),
        ("https://my_host.example", "https://my_host.example"),
        ("https://-a-.example", "https://-a-.example"),
        ("https://example.com.", "https://example.com."),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("http://１２７.0.0.1", "http://127.0.0.1"),
        ("http://[::1]:8080", "http://[::1]:8080"),
        ("http://[2001:DB8:0:0::0:1]", "http://[2001:db8::1]"),
        ("http://[2001:db8:0:1:1:1:1:1]", "http://[2001:db8:0:1:1:1:1:1]"),
        ("http://[::ffff:127.0.0.1]", "http://[::ffff:7f00:1]"),
        ("http://[::127.0.0.1]", "http://[::7f00:1]"),
    ] {
        assert_eq!(parse(text).as_deref(), Ok(canonical), "{text}");
    }
}

#[test]
fn what_is_not_an_origin_is_refused_with_its_rule() {
    let long = format!("https://{}.example", "a".repeat(300));
    let long_label = format!("https://{}.example", "a".repeat(64));
    for (text, rule) in [
        ("", "empty"),
        ("null", "null is the origin"),
        ("*", "wildcards"),
        ("https://*.example.com", "wildcards"),
        ("https://*", "wildcards"),
        ("example.com", "must begin with"),
        ("//example.com", "must begin with"),
        ("ftp://example.com", "must begin with"),
        ("file://", "must begin with"),
        ("javascript:alert(1)", "must begin with"),
        ("https:example.com", "must begin with"),
        ("https:/example.com", "must begin with"),
        (" https://example.com", "spaces"),
        ("https://example.com ", "spaces"),
        ("https://exa\tmple.com", "spaces"),
        ("https://example.com\n", "spaces"),
        ("https://exam\u{a0}ple.com", "spaces"),
        ("https://example.com\0", "spaces"),
        ("https://example.com/", "slash"),
        ("https://example.com/path", "path"),
        ("https://example.com//", "path"),
        ("https://example.com\\", "path"),
        ("https://good.example\\@evil.example", "path"),
        ("https:///example.com", "path"),
        ("https://example.com?x", "query"),
        ("https://example.com#x", "query"),
        ("https://user@example.com", "user name"),
        ("https://user:secret@example.com", "user name"),
        ("https://", "no host"),
        ("https://:443", "no host"),
        ("https://example.com:", "port"),
        ("https://example.com:0", "port"),
        ("https://example.com:65536", "port"),
        ("https://example.com:+80", "port"),
        ("https://example.com:0443", "port"),
        ("https://example.com:8o", "port"),
        ("https://example.com:443:443", "IPv6"),
        ("http://[::1", "IPv6"),
        ("http://::1", "IPv6"),
        ("http://[fe80::1%eth0]", "IPv6"),
        ("http://[127.0.0.1]", "IPv6"),
        ("http://[::1]x", "IPv6"),
        ("http://127.1", "IPv4"),
        ("http://2130706433", "IPv4"),
        ("http://0x7f.0.0.1", "IPv4"),
        ("http://127.0.0.0x1", "IPv4"),
        ("http://0177.0.0.1", "IPv4"),
        ("http://256.0.0.1", "IPv4"),
        ("http://1.2.3.4.5", "IPv4"),
        ("http://example.1", "IPv4"),
        ("http://127.0.0.1.", "IPv4"),
        ("https://a..example", "valid name"),
        ("https://.example", "valid name"),
        ("https://exam%70le.com", "valid name"),
        ("https://exam<ple.com", "valid name"),
        ("https://a|b", "valid name"),
        ("https://xn--a", "valid name"),
        ("https://xn--", "valid name"),
        ("https://\u{ad}", "valid name"),
        ("https://a\u{2f3d}\u{fffd}.example", "valid name"),
        (&long, "too long"),
        (&long_label, "valid name"),
    ] {
        let refused = parse(text).expect_err(text);
        assert!(refused.0.contains(rule), "{text:?}: {}", refused.0);
    }
}

/// The name of another site never becomes the name of a page's site: not in front of it, not behind it, not in a user name, a
/// path, a query, or where two parsers disagree.
#[test]
fn only_the_site_of_the_page_counts() {
    let allowed = [WebOrigin::parse("https://good.example").expect("an origin")];
    let matches = |header: &str| WebOrigin::find_in_referrer(&allowed, header.as_bytes()).is_some();
    let is_origin = |header: &str| WebOrigin::find_in_origin(&allowed, header.as_bytes()).is_some();
    for header in [
        "https://good.example",
        "https://good.example/",
        "https://good.example/page?x=https://evil.example#y",
        "https://good.example?x",
        "https://good.example#x",
        "https://good.example/@evil.example",
        "https://good.example:443/page",
        "HTTPS://GOOD.EXAMPLE/page",
    ] {
        assert!(matches(header), "{header}");
        let has_path = header[8..].contains(['/', '?', '#']);
        assert_eq!(is_origin(header), !has_path, "{header}: `Origin` has no path");
    }
    for header in [
        "",
        "null",
        "about:client",
        "good.example",
        "//good.example",
        "http://good.example",
        "https://good.example:8443",
        "https://good.example.evil.example",
        "https://good.example.",
        "https://evilgood.example",
        "https://www.good.example",
        "https://good.example@evil.example/",
        "https://good.example:443@evil.example/",
        "https://evil.example/https://good.example",
        "https://evil.example/?https://good.example",
        "https://evil.example#https://good.example",
        "https://evil.example\\https://good.example",
        "https://good.example\\.evil.example/",
        "https://good.example\\@evil.example/",
        "https://evil.example\\@good.example/",
        "https://user@good.example/",
        "https://good.example%2eevil.example/",
        "https://good.example%00.evil.example/",
        "https://good.example%2f.evil.example/",
        "https://good.example:/",
        "https://good.example:0/",
        "https://good.example https://evil.example",
        "https://good.example, https://evil.example",
        "https://evil.example, https://good.example",
        "https://[good.example]/",
        "https:///good.example/",
        "https:good.example",
        "blob:https://good.example/1",
        "view-source:https://good.example/",
        "javascript://good.example",
        "data:text/html,https://good.example",
        "android-app://good.example",
        "https://gооd.example/",
        "https://good.example\u{7f}/",
    ] {
        assert!(!matches(header) && !is_origin(header), "{header}");
    }
    let find = |header: &[u8]| WebOrigin::find_in_referrer(&allowed, header);
    assert_eq!(find(b"https://good.example\xff/"), None);
    assert_eq!(find(b"https://good.example/\xff"), Some(&allowed[0]), "the path does not count");
}

#[test]
fn the_text_before_the_path_is_the_origin() {
    for (url, origin) in [
        (&b"https://a.example:1/b"[..], Some("https://a.example:1")),
        (b"https://a.example", Some("https://a.example")),
        (b"https://", Some("https://")),
        (b"null", None),
        (b"a://b://c", Some("a://b:")),
    ] {
        assert_eq!(origin_text(url), origin);
    }
}

proptest! {
    /// The canonical form is stable, is plain ASCII, and is what a browser's URL of it begins with.
    #[test]
    fn canonical_origins_are_stable(text in "(https?|HTTP)://[a-zA-Zäß0-9._\\-\\[\\]:@%]{1,24}(:[0-9]{1,6})?") {
        if let Ok(origin) = WebOrigin::parse(&text) {
            prop_assert_eq!(WebOrigin::parse(origin.as_str()), Ok(origin.clone()));
            prop_assert!(origin.as_str().bytes().all(|byte| byte.is_ascii_graphic() && !byte.is_ascii_uppercase()));
            let page = format!("{origin}/path?query#fragment");
            prop_assert!(WebOrigin::find_in_referrer(&[origin], page.as_bytes()).is_some());
        }
    }

    /// Whatever is appended to a host or put in front of it belongs to another site.
    #[test]
    fn other_hosts_never_match(prefix in "[a-z0-9.@\\\\:%\\-]{0,8}", suffix in "[a-z0-9.@\\\\:%\\-]{0,8}") {
        let allowed = [WebOrigin::parse("https://good.example").expect("an origin")];
        let url = format!("https://{prefix}good.example{suffix}/");
        let is_same = prefix.is_empty() && (suffix.is_empty() || suffix == ":443");
        prop_assert_eq!(WebOrigin::find_in_referrer(&allowed, url.as_bytes()).is_some(), is_same, "{}", url);
    }
}
