//! The setting `s3.compatibility`: the part of S3 that the data plane answers.

/// How much of S3 is implemented, besides what every mode has.
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

    /// The word for it in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Extended => "extended",
        }
    }
}
