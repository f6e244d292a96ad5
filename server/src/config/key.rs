//! What a row of the table of keys says.

/// One configuration key.
#[derive(Debug)]
pub struct Key {
    /// Section and key, as in the file: `server.s3_bind`.
    pub name: &'static str,
    /// The name that the specification gives the variable, where it is not `SERVICE_<SECTION>_<KEY>`.
    pub literal_variable: Option<&'static str>,
    /// What values it takes.
    pub kind: Kind,
    /// The value when none is given, as it would be written in the environment.
    pub default: Option<&'static str>,
    /// What it does; when there is no default, also what happens then. Ends with a full stop.
    pub doc: &'static str,
    /// Whether this build acts on it.
    pub availability: Availability,
}

/// The values that a key takes.
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
    /// Host names; in the environment separated by commas.
    HostNames,
    /// An `http` or `https` address.
    Url,
    /// Addresses and networks; in the environment separated by commas.
    Networks,
    /// One of a few words.
    Word {
        /// Those words.
        words: &'static [&'static str],
    },
    /// Directives of the log filter.
    LogFilter,
    /// Text, not secret.
    Text {
        /// Most bytes.
        bytes_max: usize,
    },
    /// Text that is never shown.
    Secret,
}

/// Whether this build acts on a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Availability {
    /// It has its effect.
    Built,
    /// It belongs to a feature that this build does not have: the value is checked, and a warning says that nothing
    /// follows from it.
    NotBuilt,
}

impl Key {
    /// `SERVICE_<SECTION>_<KEY>`.
    #[must_use]
    pub fn derived_variable(&self) -> String {
        format!("SERVICE_{}", self.name.replace('.', "_").to_ascii_uppercase())
    }

    /// The variable to name to a user.
    #[must_use]
    pub fn variable(&self) -> String {
        self.literal_variable.map_or_else(|| self.derived_variable(), str::to_owned)
    }

    /// All variables that set this key.
    pub(crate) fn variables(&self) -> impl Iterator<Item = String> {
        self.literal_variable.map(str::to_owned).into_iter().chain(std::iter::once(self.derived_variable()))
    }
}
