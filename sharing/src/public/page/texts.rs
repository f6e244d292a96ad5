//! The words of the pages, in English and German.

use crate::denied::DeniedReason;
use crate::public::negotiation::Language;
use crate::types::media_type::MediaClass;
use cairn_http1::StatusCode;

/// Fixed words of the pages.
pub(crate) struct Texts {
    pub(crate) protected_title: &'static str,
    pub(crate) protected: &'static str,
    pub(crate) password: &'static str,
    pub(crate) unlock: &'static str,
    pub(crate) wrong_password: &'static str,
    pub(crate) error: &'static str,
    pub(crate) download: &'static str,
    pub(crate) open: &'static str,
    pub(crate) preview: &'static str,
    pub(crate) size: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) modified: &'static str,
    pub(crate) expires: &'static str,
    pub(crate) downloads_left: &'static str,
    pub(crate) no_preview: &'static str,
    pub(crate) sha256: &'static str,
    pub(crate) etag: &'static str,
    pub(crate) pinned: &'static str,
}

const ENGLISH: Texts = Texts {
    protected_title: "Protected file",
    protected: "This file is protected. Enter the password that you were given.",
    password: "Password",
    unlock: "Unlock",
    wrong_password: "The password is wrong. Check it and try again.",
    error: "Error",
    download: "Download",
    open: "Open in a new tab",
    preview: "Preview",
    size: "Size",
    kind: "Type",
    modified: "Last modified",
    expires: "Link expires",
    downloads_left: "Downloads left",
    no_preview: "There is no preview, because it would count as a download.",
    sha256: "SHA-256",
    etag: "ETag",
    pinned: "This link always gives this version of the file.",
};

const GERMAN: Texts = Texts {
    protected_title: "Geschützte Datei",
    protected: "Diese Datei ist geschützt. Geben Sie das Passwort ein, das Sie erhalten haben.",
    password: "Passwort",
    unlock: "Entsperren",
    wrong_password: "Das Passwort ist falsch. Prüfen Sie es, und versuchen Sie es noch einmal.",
    error: "Fehler",
    download: "Herunterladen",
    open: "In neuem Tab öffnen",
    preview: "Vorschau",
    size: "Größe",
    kind: "Typ",
    modified: "Zuletzt geändert",
    expires: "Link gültig bis",
    downloads_left: "Verbleibende Downloads",
    no_preview: "Es gibt keine Vorschau, weil sie als Download zählen würde.",
    sha256: "SHA-256",
    etag: "ETag",
    pinned: "Dieser Link liefert immer diese Version der Datei.",
};

/// Returns the words of a language.
pub(crate) const fn texts(language: Language) -> &'static Texts {
    match language {
        Language::English => &ENGLISH,
        Language::German => &GERMAN,
    }
}

/// Returns the name of a class of media types; `None` for files of other types.
pub(crate) const fn class_name(class: MediaClass, language: Language) -> Option<&'static str> {
    let (english, german) = match class {
        MediaClass::Image => ("Image", "Bild"),
        MediaClass::Video => ("Video", "Video"),
        MediaClass::Audio => ("Audio", "Audio"),
        MediaClass::Pdf => ("PDF document", "PDF-Dokument"),
        MediaClass::Text => ("Text", "Text"),
        MediaClass::Other => return None,
    };
    Some(match language {
        Language::English => english,
        Language::German => german,
    })
}

/// Says that another password may be tried after some seconds.
pub(crate) fn too_many_attempts(seconds: u64, language: Language) -> String {
    let (number, is_minutes) = if seconds <= 90 { (seconds, false) } else { (seconds.div_ceil(60), true) };
    match language {
        Language::English => {
            let unit = if is_minutes { "minute" } else { "second" };
            let plural = if number == 1 { "" } else { "s" };
            format!("Too many attempts. Try again in {number} {unit}{plural}.")
        }
        Language::German => {
            let unit = if is_minutes { "Minute" } else { "Sekunde" };
            let plural = if number == 1 { "" } else { "n" };
            format!("Zu viele Versuche. Versuchen Sie es in {number} {unit}{plural} noch einmal.")
        }
    }
}

/// The message in place of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Message {
    /// No share has this URL.
    NotFound,
    /// The share was revoked.
    Revoked,
    /// The share was downloaded as often as allowed.
    Exhausted,
    /// The share has expired.
    Expired,
    /// The object does not exist any more.
    ObjectMissing,
    /// The person who created the share may not read the object, or not from the address of the visitor.
    Author,
    /// The service cannot answer now.
    Unavailable,
    /// The request is not one that the page makes.
    Unusable,
}

impl Message {
    /// Returns the message of a refusal with this reason and status.
    pub(crate) fn of(reason: Option<DeniedReason>, status: StatusCode) -> Self {
        match reason {
            Some(DeniedReason::NotFound) => Self::NotFound,
            Some(DeniedReason::Revoked) => Self::Revoked,
            Some(DeniedReason::Exhausted) => Self::Exhausted,
            Some(DeniedReason::Expired) => Self::Expired,
            Some(DeniedReason::ObjectMissing) => Self::ObjectMissing,
            Some(DeniedReason::Author) => Self::Author,
            _ if status.is_server_error() => Self::Unavailable,
            _ => Self::Unusable,
        }
    }

    /// Returns the title, and what it means for the visitor.
    pub(crate) const fn words(self, language: Language) -> (&'static str, &'static str) {
        let (english, german) = match self {
            Self::NotFound => (
                (
                    "Link not found",
                    "Check that you have the whole address. The link may also have been deleted.",
                ),
                (
                    "Link nicht gefunden",
                    "Prüfen Sie, ob die Adresse vollständig ist. Vielleicht wurde der Link auch gelöscht.",
                ),
            ),
            Self::Revoked => (
                ("Link revoked", "The link was revoked. Ask the person who sent it for a new one."),
                (
                    "Link widerrufen",
                    "Der Link wurde widerrufen. Bitten Sie die Person, die ihn geschickt hat, um einen neuen.",
                ),
            ),
            Self::Exhausted => (
                (
                    "Download limit reached",
                    "The file was downloaded as often as allowed. Ask the person who sent the link for a new one.",
                ),
                (
                    "Download-Limit erreicht",
                    "Die Datei wurde so oft heruntergeladen wie erlaubt. Bitten Sie die Person, die den Link geschickt \
                     hat, um einen neuen.",
                ),
            ),
            Self::Expired => (
                ("Link expired", "The link has expired. Ask the person who sent it for a new one."),
                (
                    "Link abgelaufen",
                    "Der Link ist abgelaufen. Bitten Sie die Person, die ihn geschickt hat, um einen neuen.",
                ),
            ),
            Self::ObjectMissing => (
                ("File not available", "The file of this link does not exist any more."),
                ("Datei nicht verfügbar", "Die Datei zu diesem Link gibt es nicht mehr."),
            ),
            Self::Author => (
                (
                    "Not allowed",
                    "The person who shared this file may not show it any more, or not where you are. Ask them what has changed.",
                ),
                (
                    "Nicht erlaubt",
                    "Wer diese Datei geteilt hat, darf sie nicht mehr zeigen, oder nicht dort, wo Sie sind. Fragen Sie dort nach.",
                ),
            ),
            Self::Unavailable => (
                ("Not available now", "The service cannot answer at the moment. Try again in a few minutes."),
                (
                    "Zurzeit nicht verfügbar",
                    "Der Dienst kann gerade nicht antworten. Versuchen Sie es in einigen Minuten noch einmal.",
                ),
            ),
            Self::Unusable => (
                ("Request not possible", "This request cannot be answered. Open the link again."),
                (
                    "Anfrage nicht möglich",
                    "Diese Anfrage kann nicht beantwortet werden. Öffnen Sie den Link noch einmal.",
                ),
            ),
        };
        match language {
            Language::English => english,
            Language::German => german,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Language, too_many_attempts};

    #[test]
    fn waits_are_in_seconds_or_minutes() {
        for (seconds, english, german) in [
            (1, "1 second.", "1 Sekunde noch"),
            (60, "60 seconds.", "60 Sekunden noch"),
            (91, "2 minutes.", "2 Minuten noch"),
            (3600, "60 minutes.", "60 Minuten noch"),
        ] {
            assert!(too_many_attempts(seconds, Language::English).ends_with(english));
            assert!(too_many_attempts(seconds, Language::German).contains(german));
        }
    }
}
