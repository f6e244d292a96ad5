//! The pages that people see at the URL of a share.
//!
//! A page is one HTML document without anything from elsewhere. It works without JavaScript. Everything that comes from
//! the object or the visitor is escaped. Before a password is given, a page says nothing about the file.

mod format;
mod markup;
mod texts;

use crate::public::negotiation::Language;
use crate::types::media_type::MediaClass;
use cairn_http1::iso8601_millis;
use cairn_model::Timestamp;
use markup::{Document, escape};
use texts::{class_name, texts, too_many_attempts};

pub(crate) use markup::security_policy;
pub(crate) use texts::Message;

/// Largest image that a page shows on its own, in bytes.
const IMAGE_BYTES_MAX: u64 = 32 << 20;
/// Largest text that a page shows, in bytes. Browsers become slow with larger ones.
const TEXT_BYTES_MAX: u64 = 1 << 20;

/// The content of a page with a file.
pub(crate) struct FileView {
    /// The file name.
    pub(crate) name: String,
    /// Bytes.
    pub(crate) size: u64,
    /// The media type, for people.
    pub(crate) content_type: String,
    /// Its class.
    pub(crate) class: MediaClass,
    /// The time when the version was written.
    pub(crate) last_modified: Timestamp,
    /// The time when the share expires.
    pub(crate) expires_at: Option<Timestamp>,
    /// Downloads that are left, if their number is limited.
    pub(crate) downloads_left: Option<u64>,
    /// Whether the share is of one version.
    pub(crate) is_pinned: bool,
    /// The SHA-256 of the content in hexadecimal digits, if it is known.
    pub(crate) sha256: Option<String>,
    /// The entity tag, without quotes.
    pub(crate) etag: String,
    /// Whether a browser may show the content.
    pub(crate) is_inline: bool,
    /// The URL of the content, relative to the page.
    pub(crate) content: String,
    /// The absolute URL of the content, if everybody may load it as often as they like.
    pub(crate) public_content: Option<String>,
}

impl FileView {
    /// Returns the page.
    pub(crate) fn render(&self, language: Language) -> String {
        let words = texts(language);
        let kind = match class_name(self.class, language) {
            Some(class) => format!("{class} ({})", self.content_type),
            None => self.content_type.clone(),
        };
        let mut main = format!("<h1><bdi>{}</bdi></h1>\n", escape(&self.name));
        main.push_str(&self.preview(language));
        main.push_str(&self.actions(language));
        main.push_str("<dl>\n");
        let mut fact = |term: &str, html: &str| {
            main.push_str(&format!("<div><dt>{}</dt><dd>{html}</dd></div>\n", escape(term)));
        };
        let moment = |time: Timestamp| {
            format!(
                "<time datetime=\"{}\">{}</time>",
                escape(&iso8601_millis(time.0)),
                escape(&format::time(time, language))
            )
        };
        fact(words.size, &escape(&format::size(self.size, language)));
        fact(words.kind, &escape(&kind));
        fact(words.modified, &moment(self.last_modified));
        if let Some(time) = self.expires_at {
            fact(words.expires, &moment(time));
        }
        if let Some(left) = self.downloads_left {
            fact(words.downloads_left, &format::grouped(left, language));
        }
        if self.is_pinned {
            match &self.sha256 {
                Some(digest) => fact(words.sha256, &format!("<code>{}</code>", escape(digest))),
                None => fact(words.etag, &format!("<code>{}</code>", escape(&self.etag))),
            }
        }
        main.push_str("</dl>");
        if self.is_pinned {
            main.push_str(&format!("\n<p class=\"muted\">{}</p>", escape(words.pinned)));
        }
        let size = format::rounded(self.size, language).unwrap_or_else(|| format::size(self.size, language));
        let mut properties = vec![
            ("og:type", "website".to_owned()),
            ("og:title", self.name.clone()),
            ("og:description", format!("{kind}, {size}")),
        ];
        if let Some(url) = &self.public_content
            && self.class == MediaClass::Image
        {
            properties.push(("og:image", url.clone()));
        }
        let properties = &properties;
        Document { language, title: &self.name, properties, reloads: false, main: &main }.render()
    }

    fn preview(&self, language: Language) -> String {
        let words = texts(language);
        let (name, content) = (escape(&self.name), escape(&self.content));
        if !self.is_inline || self.size == 0 {
            return String::new();
        }
        if self.downloads_left.is_some() && self.class != MediaClass::Other {
            return format!("<p class=\"muted\">{}</p>\n", escape(words.no_preview));
        }
        let shown = match self.class {
            MediaClass::Image if self.size <= IMAGE_BYTES_MAX => {
                format!("<img src=\"{content}\" alt=\"{name}\">")
            }
            MediaClass::Video => {
                format!(
                    "<video controls preload=\"metadata\" playsinline aria-label=\"{name}\" src=\"{content}\"></video>"
                )
            }
            MediaClass::Audio => {
                format!(
                    "<audio controls preload=\"metadata\" aria-label=\"{name}\" src=\"{content}\"></audio>"
                )
            }
            MediaClass::Pdf => {
                format!("<iframe src=\"{content}\" title=\"{}: {name}\"></iframe>", escape(words.preview))
            }
            MediaClass::Text if self.size <= TEXT_BYTES_MAX => {
                format!(
                    "<iframe sandbox src=\"{content}\" title=\"{}: {name}\"></iframe>",
                    escape(words.preview)
                )
            }
            MediaClass::Image | MediaClass::Text | MediaClass::Other => return String::new(),
        };
        format!("<div class=\"preview\">{shown}</div>\n")
    }

    fn actions(&self, language: Language) -> String {
        let words = texts(language);
        let content = escape(&self.content);
        let open = if self.is_inline && self.class != MediaClass::Other {
            format!(
                "<a href=\"{content}\" target=\"_blank\" rel=\"noopener noreferrer\">{}</a>\n",
                escape(words.open)
            )
        } else {
            String::new()
        };
        let name = escape(&self.name);
        format!(
            "<div class=\"actions\">\n<a class=\"button\" href=\"{content}\" download=\"{name}\">{}</a>\n{open}</div>\n",
            escape(words.download)
        )
    }
}

/// The problem with a password.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PasswordProblem {
    /// It is wrong.
    Incorrect,
    /// Too many were tried. Holds the seconds until the next attempt.
    TooManyAttempts(u64),
}

/// Returns the page that asks for the password. `unlock` is the URL that the form is sent to, relative to the page.
/// `reloads` makes the browser load the page again at once.
pub(crate) fn render_locked(
    language: Language,
    unlock: &str,
    problem: Option<PasswordProblem>,
    reloads: bool,
) -> String {
    let words = texts(language);
    let problem = problem.map(|problem| match problem {
        PasswordProblem::Incorrect => words.wrong_password.to_owned(),
        PasswordProblem::TooManyAttempts(seconds) => too_many_attempts(seconds, language),
    });
    let (error, described) = match &problem {
        Some(text) => (
            format!("<p class=\"error\" id=\"problem\" role=\"alert\">{}</p>\n", escape(text)),
            " aria-invalid=\"true\" aria-describedby=\"problem\"",
        ),
        None => (String::new(), ""),
    };
    let main = format!(
        "<div class=\"card\">\n<h1>{title}</h1>\n<p>{protected}</p>\n{error}<form method=\"post\" action=\"{unlock}\">\n\
         <label for=\"password\">{password}</label>\n<input id=\"password\" name=\"password\" type=\"password\" \
         autocomplete=\"current-password\" required autofocus{described}>\n\
         <button class=\"button\" type=\"submit\">{submit}</button>\n</form>\n</div>",
        title = escape(words.protected_title),
        protected = escape(words.protected),
        unlock = escape(unlock),
        password = escape(words.password),
        submit = escape(words.unlock),
    );
    let title = match &problem {
        Some(_) => format!("{}: {}", words.error, words.protected_title),
        None => words.protected_title.to_owned(),
    };
    let properties = &[("og:type", "website".to_owned()), ("og:title", words.protected_title.to_owned())];
    Document { language, title: &title, properties, reloads, main: &main }.render()
}

/// Returns a page that says why there is no file.
pub(crate) fn render_message(language: Language, message: Message) -> String {
    let (title, text) = message.words(language);
    let main = format!("<div class=\"card\">\n<h1>{}</h1>\n<p>{}</p>\n</div>", escape(title), escape(text));
    Document { language, title, properties: &[], reloads: false, main: &main }.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(name: &str, content_type: &str) -> FileView {
        FileView {
            name: name.to_owned(),
            size: 1000,
            content_type: content_type.to_owned(),
            class: MediaClass::of(content_type),
            last_modified: Timestamp(0),
            expires_at: None,
            downloads_left: None,
            is_pinned: false,
            sha256: None,
            etag: "tag".to_owned(),
            is_inline: true,
            content: "t/content".to_owned(),
            public_content: Some("https://example/s/t/content".to_owned()),
        }
    }

    #[test]
    fn names_and_types_are_escaped_everywhere() {
        let hostile = "<script>alert(1)</script>\" onload='x";
        for content_type in ["image/png", "video/mp4", "application/pdf", "text/plain", "text/html"] {
            let page = view(hostile, content_type).render(Language::English);
            assert!(!page.contains("<script>alert"), "{page}");
            assert!(!page.contains("\" onload"), "{page}");
            assert_eq!(page.matches("<script").count(), 1);
        }
        let page = view("a", "text/html;<img src=x>").render(Language::English);
        assert!(!page.contains("<img"), "{page}");
    }

    #[test]
    fn only_what_cannot_run_is_shown() {
        for (content_type, expected) in [
            ("image/png", "<img src=\"t/content\""),
            ("video/mp4", "<video controls"),
            ("audio/mpeg", "<audio controls"),
            ("application/pdf", "<iframe src=\"t/content\""),
            ("text/plain", "<iframe sandbox src=\"t/content\""),
        ] {
            assert!(view("a", content_type).render(Language::English).contains(expected), "{content_type}");
            let limited = FileView { downloads_left: Some(2), ..view("a", content_type) };
            assert!(!limited.render(Language::English).contains(expected), "a preview would be a download");
            let attachment = FileView { is_inline: false, ..view("a", content_type) };
            assert!(!attachment.render(Language::English).contains(expected), "{content_type}");
        }
        for content_type in ["image/svg+xml", "text/html", "application/zip"] {
            let page = view("a", content_type).render(Language::English);
            assert!(!page.contains("class=\"preview\"") && !page.contains("og:image"), "{content_type}");
        }
        let large = FileView { size: TEXT_BYTES_MAX + 1, ..view("a", "text/plain") };
        assert!(!large.render(Language::English).contains("<iframe"));
    }

    #[test]
    fn a_pinned_version_shows_its_checksum() {
        let pinned = FileView { is_pinned: true, ..view("a", "image/png") };
        assert!(pinned.render(Language::English).contains("<dt>ETag</dt><dd><code>tag</code>"));
        let pinned = FileView { sha256: Some("abcd".to_owned()), ..pinned };
        let page = pinned.render(Language::German);
        assert!(page.contains("<dt>SHA-256</dt><dd><code>abcd</code>") && page.contains("lang=\"de\""));
    }
}
