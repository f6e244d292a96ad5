//! The type of a configuration key.

/// The suffix of variables whose value is the name of a file that contains the value of the key.
pub(super) const FILE_SUFFIX: &str = "_FILE";

/// One configuration key.
#[derive(Debug)]
pub struct Key {
    /// Section and key, as in the file: `server.s3_bind`.
    pub name: &'static str,
    /// The variable's name in the specification, if it is not `SERVICE_<SECTION>_<KEY>`.
    pub literal_variable: Option<&'static str>,
    /// The values that it accepts.
    pub kind: Kind,
    /// The default value, as it would be written in the environment.
    pub default: Option<&'static str>,
    /// The effect of the key and, if it has no default, what happens when it is not set. Ends with a full stop.
    pub doc: &'static str,
}

/// The values that a key accepts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// `<host>:<port>`.
    Address,
    /// A file-system path.
    Path,
    /// `true` or `false`.
    Flag,
    /// A whole number within a range, ends included.
    Integer {
        /// Least value.
        min: u64,
        /// Greatest value.
        max: u64,
    },
    /// A number of bytes, plain or with `KiB`, `MiB`, `GiB`, `TiB`.
    Bytes {
        /// Least value in bytes.
        min: u64,
        /// Greatest value in bytes.
        max: u64,
    },
    /// Host names, separated by commas in the environment.
    HostNames,
    /// Host names, of which each may have `https://` in front and then a port, separated by commas in the environment.
    WebHosts,
    /// Short texts, separated by commas in the environment.
    Texts,
    /// An `http` or `https` URL.
    Url,
    /// An `http` or `https` URL without a path.
    Origin,
    /// IP addresses and networks, separated by commas in the environment.
    Networks,
    /// One of a few words.
    Word {
        /// Those words.
        words: &'static [&'static str],
    },
    /// Directives of the log filter.
    LogFilter,
    /// Text that is not secret.
    Text {
        /// Maximum length in bytes.
        bytes_max: usize,
    },
    /// Text that is never shown.
    Secret,
}

impl Key {
    /// Returns `SERVICE_<SECTION>_<KEY>`.
    #[must_use]
    pub fn derived_variable(&self) -> String {
        format!("SERVICE_{}", self.name.replace('.', "_").to_ascii_uppercase())
    }

    /// Returns the variable to show to users.
    #[must_use]
    pub fn variable(&self) -> String {
        self.literal_variable.map_or_else(|| self.derived_variable(), str::to_owned)
    }

    /// Returns all variables that set this key.
    pub(crate) fn variables(&self) -> impl Iterator<Item = String> {
        self.literal_variable.map(str::to_owned).into_iter().chain(std::iter::once(self.derived_variable()))
    }
}
