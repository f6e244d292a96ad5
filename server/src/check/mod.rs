//! `cairn check`: preflight checks of the host and the configuration, without starting the service.
//!
//! One function per check, listed in two tables: checks of the host, which need no configuration, and checks of what is
//! configured. A check reports what it found and, if something is wrong, how to fix it. No check changes anything: no folder
//! is created, no port stays bound, and the file that tests direct I/O never has a name.

mod certificates;
mod clock;
mod folder;
mod host;
mod listeners;
mod memory;
mod store;

use crate::config::{Environment, Settings};
use crate::load::{LoadError, ServeOptions, Sources};

/// The verdict of a check.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// The service starts, but something should be fixed.
    Warning,
    /// The service would not start, or could not be relied on.
    Failed,
}

/// The result of a check.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Checked {
    /// The name of the check.
    pub name: &'static str,
    /// The verdict.
    pub verdict: Verdict,
    /// The result of the check.
    pub message: String,
    /// The remedy; `None` if nothing is wrong.
    pub fix: Option<String>,
}

/// The result of a check without its name.
struct Finding {
    verdict: Verdict,
    message: String,
    fix: Option<String>,
}

impl Finding {
    fn ok(message: impl Into<String>) -> Self {
        Self { verdict: Verdict::Ok, message: message.into(), fix: None }
    }

    fn warning(message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { verdict: Verdict::Warning, message: message.into(), fix: Some(fix.into()) }
    }

    fn failed(message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { verdict: Verdict::Failed, message: message.into(), fix: Some(fix.into()) }
    }

    /// Fails with the error that a start would report. Its text already says how to fix it.
    fn refused(error: impl std::fmt::Display) -> Self {
        Self { verdict: Verdict::Failed, message: error.to_string(), fix: None }
    }

    /// Joins two findings of one check: the worse verdict, and both fixes.
    fn and(self, other: Self) -> Self {
        let fixes: Vec<String> = self.fix.into_iter().chain(other.fix).collect();
        Self {
            verdict: self.verdict.max(other.verdict),
            message: format!("{}; {}", self.message, other.message),
            fix: (!fixes.is_empty()).then(|| fixes.join("; ")),
        }
    }

    fn named(self, name: &'static str) -> Checked {
        let Self { verdict, message, fix } = self;
        Checked { name, verdict, message, fix }
    }
}

/// The name of a check, and its function.
type Named<F> = (&'static str, F);
type OfHost = fn() -> Finding;
type OfSettings = fn(&Settings) -> Finding;

/// Checks of the host.
const HOST_CHECKS: &[Named<OfHost>] = &[
    ("kernel", host::kernel),
    ("io_uring", host::io_uring),
    ("locked memory", host::locked_memory),
    ("clock", clock::clock),
    ("authorities", certificates::authorities),
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
    ("commit logs", store::commit_logs),
    ("master key", store::master_key),
    ("data plane", listeners::data),
    ("management plane", listeners::management),
    ("console", listeners::console),
    ("data plane's TLS", certificates::data),
    ("management's TLS", certificates::management),
    ("console's TLS", certificates::console),
];

/// Checks everything that a start with these options needs. If the configuration is invalid, only the host is checked.
#[must_use]
pub fn check(options: &ServeOptions, environment: &Environment) -> Vec<Checked> {
    const CONFIGURATION: &str = "configuration";
    let loaded = Sources::read(options, environment).settings_to_check();
    let mut found: Vec<Checked> =
        configuration(&loaded).into_iter().map(|message| message.named(CONFIGURATION)).collect();
    found.extend(HOST_CHECKS.iter().map(|(name, look)| look().named(name)));
    if let Ok(settings) = &loaded {
        found.extend(CONFIGURED_CHECKS.iter().map(|(name, look)| look(settings).named(name)));
    }
    found
}

/// One finding for each problem and each warning.
fn configuration(loaded: &Result<Settings, LoadError>) -> Vec<Finding> {
    match loaded {
        Err(LoadError::Config(error)) => error.problems.iter().map(Finding::refused).collect(),
        Err(error) => vec![Finding::refused(error)],
        Ok(settings) if settings.warnings.is_empty() => vec![Finding::ok("complete and valid")],
        Ok(settings) => {
            let warning =
                |text: &String| Finding { verdict: Verdict::Warning, message: text.clone(), fix: None };
            settings.warnings.iter().map(warning).collect()
        }
    }
}
