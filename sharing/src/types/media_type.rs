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

impl MediaClass {
    /// Returns the class of a `Content-Type`. Parameters are ignored.
    #[must_use]
    pub fn of(content_type: &str) -> Self {
        let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
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
}
