//! `cairn check`: whether the service would start here and could be relied on, found without starting it.
//!
//! One function per check, listed in two tables: of the host, which need no configuration, and of what is configured. A
//! check says what it saw, and when that is not right what to mend. None changes anything: no folder is made, no port
//! kept, and the one file of the test of direct I/O never has a name.

mod certificates;
mod clock;
mod folder;
mod host;
mod listeners;
mod memory;
mod store;

use crate::config::{Environment, Settings};
use crate::load::{LoadError, ServeOptions, load_to_check};

/// How a check ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// The service starts, but something should be mended.
    Warning,
    /// The service would not start, or could not be relied on.
    Failed,
}

/// What a check found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Checked {
    /// What was looked at.
    pub name: &'static str,
    /// How it ended.
    pub verdict: Verdict,
    /// What was seen.
    pub seen: String,
    /// What to do about it; not when all is well.
    pub mend: Option<String>,
}

/// What a check says, before it has its name.
struct Seen {
    verdict: Verdict,
    seen: String,
    mend: Option<String>,
}

impl Seen {
    fn ok(seen: impl Into<String>) -> Self {
        Self { verdict: Verdict::Ok, seen: seen.into(), mend: None }
    }

    fn warning(seen: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { verdict: Verdict::Warning, seen: seen.into(), mend: Some(mend.into()) }
    }

    fn failed(seen: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { verdict: Verdict::Failed, seen: seen.into(), mend: Some(mend.into()) }
    }

    /// What the start would say. Such a text names its remedy itself.
    fn refused(error: impl std::fmt::Display) -> Self {
        Self { verdict: Verdict::Failed, seen: error.to_string(), mend: None }
    }

    /// What two looks at the same thing saw: the worse verdict, and all that is to be mended.
    fn and(self, other: Self) -> Self {
        let mends: Vec<String> = self.mend.into_iter().chain(other.mend).collect();
        Self {
            verdict: self.verdict.max(other.verdict),
            seen: format!("{}; {}", self.seen, other.seen),
            mend: (!mends.is_empty()).then(|| mends.join("; ")),
        }
    }

    fn named(self, name: &'static str) -> Checked {
        let Self { verdict, seen, mend } = self;
        Checked { name, verdict, seen, mend }
    }
}

/// The name of a check, and its function.
type Named<F> = (&'static str, F);
type OfHost = fn() -> Seen;
type OfSettings = fn(&Settings) -> Seen;

/// Checks of the host.
const HOST_CHECKS: &[Named<OfHost>] = &[
    ("kernel", host::kernel),
    ("io_uring", host::io_uring),
    ("locked memory", host::locked_memory),
    ("clock", clock::clock),
];

/// Checks of what is configured.
const CONFIGURED_CHECKS: &[Named<OfSettings>] = &[
    ("open files", host::open_files),
    ("memory", memory::memory),
    ("data folder", folder::permissions),
    ("file system", folder::file_system),
    ("direct I/O", folder::direct_io),
    ("free space", folder::free_space),
    ("store", store::store),
    ("master key", store::master_key),
    ("data plane", listeners::data),
    ("management plane", listeners::management),
    ("data plane's TLS", certificates::data),
    ("management's TLS", certificates::management),
];

/// Looks at everything that a start with these options needs. Without a right configuration only at the host.
#[must_use]
pub fn check(options: &ServeOptions, environment: &Environment) -> Vec<Checked> {
    const CONFIGURATION: &str = "configuration";
    let loaded = load_to_check(options, environment);
    let mut found: Vec<Checked> =
        configuration(&loaded).into_iter().map(|seen| seen.named(CONFIGURATION)).collect();
    found.extend(HOST_CHECKS.iter().map(|(name, look)| look().named(name)));
    if let Ok(settings) = &loaded {
        found.extend(CONFIGURED_CHECKS.iter().map(|(name, look)| look(settings).named(name)));
    }
    found
}

/// A line for each problem and each warning.
fn configuration(loaded: &Result<Settings, LoadError>) -> Vec<Seen> {
    match loaded {
        Err(LoadError::Config(error)) => error.problems.iter().map(Seen::refused).collect(),
        Err(error) => vec![Seen::refused(error)],
        Ok(settings) if settings.warnings.is_empty() => vec![Seen::ok("complete and valid")],
        Ok(settings) => {
            let warning = |text: &String| Seen { verdict: Verdict::Warning, seen: text.clone(), mend: None };
            settings.warnings.iter().map(warning).collect()
        }
    }
}
