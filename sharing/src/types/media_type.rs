//! Classes of media types: what a browser may show of an untrusted object.
//!
//! Only types without scripts are shown. Everything that a browser could run, such as HTML, SVG and XML, is
//! [`MediaClass::Other`].

/// The class of a media type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MediaClass {
    /// An image of pixels. SVG, which can contain scripts, is not one.
    Image,
    /// Video.
    Video,
    /// Audio.
    Audio,
    /// A PDF document.
    Pdf,
    /// Plain text.
    Text,
    /// Anything else.
    Other,
}

/// Returns a `Content-Type` without parameters, in lower case.
fn essence(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

impl MediaClass {
    /// Returns the class of a `Content-Type`. Parameters are ignored.
    #[must_use]
    pub fn of(content_type: &str) -> Self {
        Self::of_essence(&essence(content_type))
    }

    /// Returns the `Content-Type` with which content is shown, or `None` for [`MediaClass::Other`].
    ///
    /// It has no parameters of the object: browsers take the last type of a list, so `image/png; a, text/html` would be a page.
    /// All text is plain text in UTF-8.
    #[must_use]
    pub fn shown_content_type(content_type: &str) -> Option<String> {
        let essence = essence(content_type);
        match Self::of_essence(&essence) {
            Self::Other => None,
            Self::Text => Some("text/plain; charset=utf-8".to_owned()),
            Self::Image | Self::Video | Self::Audio | Self::Pdf => Some(essence),
        }
    }

    fn of_essence(essence: &str) -> Self {
        let Some((kind, subtype)) = essence.split_once('/') else { return Self::Other };
        let is_token = |text: &str| {
            !text.is_empty()
                && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte))
        };
        // `svg+xml` and everything else that is XML can contain scripts.
        if !is_token(subtype) || subtype.contains("svg") || subtype.contains("xml") {
            return Self::Other;
        }
        match (kind, subtype) {
            ("image", _) => Self::Image,
            ("video", _) => Self::Video,
            ("audio", _) => Self::Audio,
            ("application", "pdf") => Self::Pdf,
            ("text", "plain" | "markdown" | "csv") => Self::Text,
            _ => Self::Other,
        }
    }

    /// Returns whether an embed may show it: images, video and audio.
    #[must_use]
    pub const fn is_embeddable(self) -> bool {
        matches!(self, Self::Image | Self::Video | Self::Audio)
    }
}

#[cfg(test)]
mod tests {
    use super::MediaClass;

    #[test]
    fn what_can_contain_scripts_has_no_class() {
        for (content_type, class) in [
            ("image/png", MediaClass::Image),
            ("IMAGE/JPEG; charset=x", MediaClass::Image),
            ("video/mp4", MediaClass::Video),
            ("audio/mpeg", MediaClass::Audio),
            ("application/pdf", MediaClass::Pdf),
            ("text/plain;charset=utf-8", MediaClass::Text),
            ("text/markdown", MediaClass::Text),
        ] {
            assert_eq!(MediaClass::of(content_type), class, "{content_type}");
        }
        for content_type in [
            "image/svg+xml",
            "image/svg",
            "Image/SVG+XML ;x",
            "image/x+xml",
            "text/html",
            "application/xhtml+xml",
            "text/javascript",
            "application/octet-stream",
            "image",
            "image/",
            "image/png, text/html",
            "image/png\ttext/html",
            "",
        ] {
            assert_eq!(MediaClass::of(content_type), MediaClass::Other, "{content_type}");
        }
    }

    #[test]
    fn the_shown_type_has_nothing_that_a_browser_could_take_for_another() {
        for (content_type, shown) in [
            ("image/png", Some("image/png")),
            ("Image/PNG ; a=b", Some("image/png")),
            ("image/png; a, text/html", Some("image/png")),
            ("image/png;,text/html", Some("image/png")),
            ("video/mp4; codecs=\"avc1.42E01E, mp4a.40.2\"", Some("video/mp4")),
            ("application/pdf;x", Some("application/pdf")),
            ("text/markdown; charset=utf-7", Some("text/plain; charset=utf-8")),
            ("text/html", None),
            ("image/png,text/html", None),
            ("image/svg+xml", None),
        ] {
            assert_eq!(MediaClass::shown_content_type(content_type).as_deref(), shown, "{content_type}");
        }
    }
}
