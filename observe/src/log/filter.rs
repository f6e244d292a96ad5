//! Parses the log filter: directives such as `service=info,service::request=warn`.
//!
//! Invalid filters are refused, not corrected. Errors never quote the filter, because errors about the configuration name the
//! variable and not its value.

use std::fmt;

use tracing::Level;
use tracing_subscriber::filter::Targets;

/// The default filter (specification, "Logging and observability configuration").
pub const DEFAULT_LOG_FILTER: &str = "service=info";

/// Longest filter in bytes. Every event that is not cached is compared with the filter.
const FILTER_BYTES_MAX: usize = 4096;

/// The levels. A level without a target applies to all other targets.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// A valid log filter.
#[derive(Clone, Debug)]
pub struct LogFilter {
    targets: Targets,
}

/// The error of an invalid log filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidLogFilter {
    directive: usize,
    reason: &'static str,
}

impl fmt::Display for InvalidLogFilter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "directive {} of the log filter {}; use level or target=level, separated by commas, for example {}",
            self.directive, self.reason, DEFAULT_LOG_FILTER
        )
    }
}

impl std::error::Error for InvalidLogFilter {}

impl LogFilter {
    /// Parses comma-separated directives: `level` or `target=level`.
    ///
    /// # Errors
    /// If a directive is empty, its level is unknown, or its target is not a module path. A single word must be a level or
    /// a target of this service: as another target it would silently disable all events.
    pub fn parse(text: &str) -> Result<Self, InvalidLogFilter> {
        if text.len() > FILTER_BYTES_MAX {
            return Err(InvalidLogFilter { directive: 1, reason: "is too long" });
        }
        for (index, directive) in text.split(',').enumerate() {
            check_directive(directive.trim())
                .map_err(|reason| InvalidLogFilter { directive: index + 1, reason })?;
        }
        let spaceless: String = text.chars().filter(|character| !character.is_whitespace()).collect();
        let targets: Targets =
            spaceless.parse().map_err(|_| InvalidLogFilter { directive: 1, reason: "is invalid" })?;
        Ok(Self { targets })
    }

    /// Returns whether an event with this target and level passes.
    #[must_use]
    pub fn enables(&self, target: &str, level: Level) -> bool {
        self.targets.would_enable(target, &level)
    }

    pub(crate) fn targets(&self) -> Targets {
        self.targets.clone()
    }
}

fn is_level(word: &str) -> bool {
    LEVELS.iter().any(|level| level.eq_ignore_ascii_case(word))
}

fn check_directive(directive: &str) -> Result<(), &'static str> {
    if directive.is_empty() {
        return Err("is empty");
    }
    let (target, level) = match directive.split_once('=') {
        Some((target, level)) => (target.trim(), Some(level.trim())),
        None => (directive, None),
    };
    match level {
        None if is_level(target) => return Ok(()),
        None if target != "service" && !target.starts_with("service::") => {
            return Err("is not a level (off, error, warn, info, debug, trace)");
        }
        None => {}
        Some(level) if !is_level(level) => {
            return Err("has an unknown level (the levels are off, error, warn, info, debug, trace)");
        }
        Some(_) => {}
    }
    let well_formed = !target.is_empty()
        && target.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':' | b'-'));
    if well_formed { Ok(()) } else { Err("has a target that is not a module path") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_apply_to_their_target_and_its_children() {
        let filter = LogFilter::parse("service=info, service::request=warn,glommio=off").unwrap();
        assert!(filter.enables("service", Level::INFO));
        assert!(filter.enables("service::start", Level::INFO));
        assert!(!filter.enables("service", Level::DEBUG));
        assert!(!filter.enables("service::request", Level::INFO));
        assert!(!filter.enables("hyper", Level::ERROR));
        assert!(LogFilter::parse("warn").unwrap().enables("anything", Level::WARN));
        assert!(LogFilter::parse(DEFAULT_LOG_FILTER).unwrap().enables("service::request", Level::INFO));
    }

    #[test]
    fn invalid_filters_are_refused_without_quoting_them() {
        for text in [
            "",
            ",",
            "service=",
            "service=loud",
            "=info",
            "verbose",
            "inof",
            "service=info,",
            "not a filter",
            "service[=info",
            "a b=info",
            "service=info=debug",
            "!!!",
            "service==info",
        ] {
            assert!(LogFilter::parse(text).is_err(), "{text}");
        }
        assert!(LogFilter::parse(&"a".repeat(FILTER_BYTES_MAX + 1)).is_err());
        let refusal = LogFilter::parse("info,hunter2").unwrap_err().to_string();
        assert!(refusal.starts_with("directive 2 ") && !refusal.contains("hunter2"), "{refusal}");
    }
}
