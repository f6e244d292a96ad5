//! HTML text: escaping, and the frame that all pages share.

use crate::public::negotiation::Language;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use std::sync::LazyLock;

/// The style sheet, which every page contains.
const STYLE: &str = include_str!("page.css");
/// The script, which pages with a file contain.
const SCRIPT: &str = include_str!("page.js");

/// The security policy of pages: nothing is loaded but the content of the share, and nothing runs but the script above.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    let hash = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
    format!(
        "default-src 'none'; style-src {}; script-src {}; img-src 'self' data:; media-src 'self'; frame-src 'self'; \
         form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        hash(STYLE),
        hash(SCRIPT)
    )
});

/// Returns the value of `Content-Security-Policy` for pages.
pub(crate) fn security_policy() -> &'static str {
    &POLICY
}

/// Escapes text for elements and quoted attributes.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// The parts of a page. Titles and properties are plain text; `main` is HTML.
pub(crate) struct Document<'a> {
    pub(crate) language: Language,
    pub(crate) title: &'a str,
    /// Properties of the Open Graph protocol for previews of the link, in other programs.
    pub(crate) properties: &'a [(&'static str, String)],
    /// Reloads the page at once.
    pub(crate) reloads: bool,
    pub(crate) main: &'a str,
}

impl Document<'_> {
    /// Returns the page.
    pub(crate) fn render(&self) -> String {
        let mut properties = String::new();
        for (name, value) in self.properties {
            properties.push_str(&format!("<meta property=\"{name}\" content=\"{}\">\n", escape(value)));
        }
        if self.reloads {
            properties.push_str("<meta http-equiv=\"refresh\" content=\"0\">\n");
        }
        format!(
            "<!doctype html>\n<html lang=\"{language}\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"robots\" content=\"noindex, nofollow, noarchive\">\n\
             <meta name=\"referrer\" content=\"no-referrer\">\n\
             <title>{title}</title>\n{properties}<link rel=\"icon\" href=\"data:,\">\n<style>{STYLE}</style>\n</head>\n\
             <body>\n<main>\n{main}\n</main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n",
            language = self.language.tag(),
            title = escape(self.title),
            main = self.main,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::{SCRIPT, STYLE, escape, security_policy};

    #[test]
    fn text_cannot_leave_its_place() {
        assert_eq!(escape("<b a='x' b=\"y\">&amp;ü"), "&lt;b a=&#39;x&#39; b=&quot;y&quot;&gt;&amp;amp;ü");
    }

    #[test]
    fn style_and_script_end_where_they_should() {
        assert!(!STYLE.contains("</") && !SCRIPT.contains("</"));
        assert!(!security_policy().contains("unsafe"));
    }
}
