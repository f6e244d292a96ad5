//! Metrics of this process from `/proc` (proc(5)): CPU time, memory, file descriptors, start time.
//!
//! Reading them may take milliseconds when many connections are open, so it must not run on an executor.

use std::fs;
use std::time::Duration;

use cairn_model::u64_of;
use rustix::process::{Resource, getrlimit};

/// Nanoseconds per second.
const SECOND: u64 = 1_000_000_000;
/// Shortest interval between two reads. Scrapes in between share the next read.
pub(crate) const READ_INTERVAL_MIN: Duration = Duration::from_millis(50);

/// The metrics of the process at one time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ProcessMetrics {
    /// CPU time in user and kernel mode, in nanoseconds.
    pub(crate) cpu_nanoseconds: u64,
    pub(crate) resident_bytes: u64,
    pub(crate) virtual_bytes: u64,
    pub(crate) open_descriptors: u64,
    /// `None`: unlimited.
    pub(crate) descriptors_max: Option<u64>,
    /// Start time, in nanoseconds since the Unix epoch.
    pub(crate) started: u64,
}

/// Reads all metrics; `None` when `/proc` is missing or malformed.
pub(crate) fn read() -> Option<ProcessMetrics> {
    let metrics = parse_stat(&fs::read_to_string("/proc/self/stat").ok()?)?;
    let boot = boot_seconds(&fs::read_to_string("/proc/stat").ok()?)?;
    // One of the entries is the descriptor that reads the directory.
    let open_descriptors = fs::read_dir("/proc/self/fd").ok()?.count().saturating_sub(1);
    let started = boot.checked_mul(SECOND)?.checked_add(metrics.started)?;
    let descriptors_max = getrlimit(Resource::Nofile).current;
    Some(ProcessMetrics { open_descriptors: u64_of(open_descriptors), descriptors_max, started, ..metrics })
}

/// Parses `/proc/self/stat`. In the result, `started` counts from the boot.
fn parse_stat(stat: &str) -> Option<ProcessMetrics> {
    // The name in parentheses may contain any text. The first field after it is the third of all.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    let tick = SECOND / rustix::param::clock_ticks_per_second().max(1);
    Some(ProcessMetrics {
        cpu_nanoseconds: field(14)?.checked_add(field(15)?)?.checked_mul(tick)?,
        resident_bytes: field(24)?.checked_mul(u64_of(rustix::param::page_size()))?,
        virtual_bytes: field(23)?,
        open_descriptors: 0,
        descriptors_max: None,
        started: field(22)?.checked_mul(tick)?,
    })
}

/// Parses the boot time of `/proc/stat`, in seconds since the Unix epoch.
fn boot_seconds(stat: &str) -> Option<u64> {
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    #[test]
    fn metrics_of_this_process_are_plausible() {
        let before = read().expect("Linux has /proc");
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
        let started = before.started / SECOND;
        assert!(started <= now + 1 && started + 24 * 3600 > now, "started at {started}, now it is {now}");
        assert!(before.resident_bytes > 0 && before.virtual_bytes >= before.resident_bytes);
        let held: Vec<_> = (0..500).map(|_| fs::File::open("/dev/null").unwrap()).collect();
        let after = read().unwrap();
        assert!(after.open_descriptors >= 500 && after.cpu_nanoseconds >= before.cpu_nanoseconds);
        drop(held);
    }

    /// A process may have any name, for example `) R 1 1 1`.
    #[test]
    fn process_name_with_parentheses_is_skipped() {
        let fields: Vec<String> = (4..=52).map(|number: u64| number.to_string()).collect();
        let metrics = parse_stat(&format!("7 () R 1 1 1) S {}", fields.join(" "))).unwrap();
        let tick = SECOND / rustix::param::clock_ticks_per_second();
        assert_eq!((metrics.cpu_nanoseconds, metrics.virtual_bytes), ((14 + 15) * tick, 23));
        assert_eq!(metrics.started, 22 * tick);
        assert_eq!(parse_stat("7 (name) S 1 2"), None);
    }
}
