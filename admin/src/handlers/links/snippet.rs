//! The HTML that shows an embed in a page.
//!
//! An embed is delivered only if the browser sends the origin of the page, in `Origin` or in `Referer`. Pages can have a
//! policy that removes the referrer, so the element sets its own: `referrerpolicy` for images and links, and `crossorigin`
//! for video and audio, which have no such attribute and then send `Origin`.

use cairn_sharing::{Disposition, Embed, MediaClass};

/// Returns the HTML element for an embed of an object with this type.
pub(super) fn snippet(embed: &Embed, class: MediaClass, url: &str) -> String {
    let (url, name) = (escaped(url), escaped(name(embed)));
    match (embed.disposition, class) {
        (Disposition::Inline, MediaClass::Video) => {
            format!(r#"<video controls preload="metadata" crossorigin="anonymous" src="{url}"></video>"#)
        }
        (Disposition::Inline, MediaClass::Audio) => {
            format!(r#"<audio controls preload="metadata" crossorigin="anonymous" src="{url}"></audio>"#)
        }
        (Disposition::Inline, _) => {
            format!(r#"<img src="{url}" alt="{name}" loading="lazy" referrerpolicy="strict-origin">"#)
        }
        (Disposition::Attachment, _) => {
            format!(r#"<a href="{url}" referrerpolicy="strict-origin" download>{name}</a>"#)
        }
    }
}

/// Returns what people call the embed: its label, or the last part of the object's key.
fn name(embed: &Embed) -> &str {
    let link = &embed.link;
    if !link.label.is_empty() {
        return &link.label;
    }
    let key = link.object.key.as_str();
    key.rsplit('/').find(|part| !part.is_empty()).unwrap_or(key)
}

/// Escapes a text for HTML, inside and outside of attributes.
fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            // A control character of a key would only confuse editors.
            control if control.is_control() => html.push(' '),
            other => html.push(other),
        }
    }
    html
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn no_character_leaves_its_attribute() {
        let escaped = escaped("a\"onload='x'<script>&\n\u{0}é");
        assert_eq!(escaped, "a&quot;onload=&#39;x&#39;&lt;script&gt;&amp;  é");
    }
}
