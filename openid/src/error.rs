//! The error of a failed sign-in.

use std::fmt;

/// The error of a failed sign-in. The texts are for the person; none contains a secret.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SignInError {
    /// The provider cannot be reached, or its answer is unusable. Holds the reason.
    Unavailable(String),
    /// Too many sign-ins are waiting for the provider.
    Busy,
    /// The sign-in was finished or given up before, took too long, or belongs to another browser.
    Unknown,
    /// The provider refused it: why.
    Refused(String),
    /// The provider identified the person, but the sign-in was refused.
    Person {
        /// The reason.
        why: String,
        /// The person; others may have the same name.
        subject: String,
    },
    /// The provider's statement about the person is not valid; the text is the problem.
    Invalid(String),
}

impl SignInError {
    /// Returns the code in answers.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Unavailable(_) => "SIGN_IN_UNAVAILABLE",
            Self::Busy => "TOO_MANY_REQUESTS",
            Self::Unknown => "SIGN_IN_UNKNOWN",
            Self::Refused(_) | Self::Person { .. } => "SIGN_IN_REFUSED",
            Self::Invalid(_) => "SIGN_IN_INVALID",
        }
    }

    /// Returns the person who was refused, if the provider has identified one.
    #[must_use]
    pub fn subject(&self) -> Option<&str> {
        if let Self::Person { subject, .. } = self { Some(subject) } else { None }
    }
}

impl fmt::Display for SignInError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy => out.write_str("too many people are signing in; try again later"),
            Self::Unknown => out.write_str(
                "this sign-in is not known: it took more than 10 minutes, was finished before, or was begun in another \
                 browser; sign in again",
            ),
            Self::Unavailable(text) | Self::Refused(text) | Self::Person { why: text, .. } | Self::Invalid(text) => {
                out.write_str(text)
            }
        }
    }
}
