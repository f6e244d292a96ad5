//! What the kernel knows of this process: processor time, memory, descriptors, start. Read from `/proc` (proc(5)), which may
//! take milliseconds when many connections are open: on a plain thread, when a scrape asks.

use std::fs;
use std::time::Duration;

use rustix::process::{Resource, getrlimit};

/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;
/// Scrapes of the process's figures are at least so far apart; those between share the next.
pub(crate) const READS_APART: Duration = Duration::from_millis(50);

/// The figures of one time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ProcessFigures {
    /// Processor time in user and kernel mode, in nanoseconds.
    pub(crate) cpu_nanoseconds: u64,
    pub(crate) resident_bytes: u64,
    pub(crate) virtual_bytes: u64,
    pub(crate) open_descriptors: u64,
    /// `None`: as many as there is room for.
    pub(crate) descriptors_max: Option<u64>,
    /// In nanoseconds since the Unix epoch.
    pub(crate) started: u64,
}

/// Reads all figures; `None` when `/proc` is not there or not as it should be.
pub(crate) fn read() -> Option<ProcessFigures> {
    let figures = of_stat(&fs::read_to_string("/proc/self/stat").ok()?)?;
    let boot = boot_seconds(&fs::read_to_string("/proc/stat").ok()?)?;
    // One of them is the folder that is being read.
    let open_descriptors = fs::read_dir("/proc/self/fd").ok()?.count().saturating_sub(1) as u64;
    let started = boot.checked_mul(SECOND)?.checked_add(figures.started)?;
    let descriptors_max = getrlimit(Resource::Nofile).current;
    Some(ProcessFigures { open_descriptors, descriptors_max, started, ..figures })
}

/// What `/proc/self/stat` says; `started` counts from the boot.
fn of_stat(stat: &str) -> Option<ProcessFigures> {
    // The name in parentheses may hold anything. The first field behind it is the third of all.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    let tick = SECOND / rustix::param::clock_ticks_per_second().max(1);
    Some(ProcessFigures {
        cpu_nanoseconds: (field(14)? + field(15)?).checked_mul(tick)?,
        resident_bytes: field(24)?.checked_mul(rustix::param::page_size() as u64)?,
        virtual_bytes: field(23)?,
        open_descriptors: 0,
        descriptors_max: None,
        started: field(22)?.checked_mul(tick)?,
    })
}

fn boot_seconds(stat: &str) -> Option<u64> {
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    #[test]
    fn this_process_has_started_lately_and_uses_something() {
        let before = read().expect("Linux has /proc");
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
        let started = before.started / SECOND;
        assert!(started <= now + 1 && started + 24 * 3600 > now, "started at {started}, and it is {now}");
        assert!(before.resident_bytes > 0 && before.virtual_bytes >= before.resident_bytes);
        let held: Vec<_> = (0..500).map(|_| fs::File::open("/dev/null").unwrap()).collect();
        let after = read().unwrap();
        assert!(after.open_descriptors >= 500 && after.cpu_nanoseconds >= before.cpu_nanoseconds);
        drop(held);
    }

    /// A process may be called anything, also `) R 1 1 1`.
    #[test]
    fn a_name_with_parentheses_hides_no_field() {
        let fields: Vec<String> = (4..=52).map(|number: u64| number.to_string()).collect();
        let figures = of_stat(&format!("7 () R 1 1 1) S {}", fields.join(" "))).unwrap();
        let tick = SECOND / rustix::param::clock_ticks_per_second();
        assert_eq!((figures.cpu_nanoseconds, figures.virtual_bytes), ((14 + 15) * tick, 23));
        assert_eq!(figures.started, 22 * tick);
        assert_eq!(of_stat("7 (name) S 1 2"), None);
    }
}
