//! The setting `s3.compatibility`: the part of S3 that the data plane answers.

use cairn_cors::OriginMatching;

/// The compatibility mode: how much of S3 is implemented, besides what every mode has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Compatibility {
    /// Operations and headers that the mode `Extended` adds answer 501.
    #[default]
    Strict,
    /// Operations and headers that current clients use by default are implemented too.
    Extended,
}

impl Compatibility {
    /// All modes.
    pub const ALL: [Self; 2] = [Self::Strict, Self::Extended];

    /// Returns how the origins of CORS rules are matched.
    pub(crate) const fn origin_matching(self) -> OriginMatching {
        match self {
            Self::Strict => OriginMatching::Exact,
            Self::Extended => OriginMatching::Patterns,
        }
    }

    /// The word for it in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Extended => "extended",
        }
    }
}
