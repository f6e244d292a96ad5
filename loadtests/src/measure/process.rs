//! Reads CPU time and memory of processes on this host from `/proc`.
//!
//! The generator reports its own CPU time and that of the whole machine: if the generator used most of a core, the run measured
//! the generator. Without `/proc` these measurements are omitted.

use std::fs;

use serde::{Deserialize, Serialize};

/// `/proc` counts CPU time in hundredths of a second on every Linux (`USER_HZ`).
const TICKS_PER_SECOND: f64 = 100.0;

/// Memory of a watched process over a run, in KiB.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Memory {
    /// At the beginning.
    pub first_kib: u64,
    /// At the end.
    pub last_kib: u64,
    /// The minimum of all samples.
    pub min_kib: u64,
    /// The maximum of all samples.
    pub max_kib: u64,
}

impl Memory {
    /// Adds a sample.
    pub(crate) fn sample(earlier: Option<Self>, now_kib: u64) -> Self {
        match earlier {
            None => Self { first_kib: now_kib, last_kib: now_kib, min_kib: now_kib, max_kib: now_kib },
            Some(memory) => Self {
                last_kib: now_kib,
                min_kib: memory.min_kib.min(now_kib),
                max_kib: memory.max_kib.max(now_kib),
                ..memory
            },
        }
    }
}

/// Returns the resident memory of a process in KiB.
pub(crate) fn resident_kib(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Returns the CPU time of a process in seconds; `None` means this process.
pub(crate) fn cpu_seconds(pid: Option<u32>) -> Option<f64> {
    let path = pid.map_or_else(|| "/proc/self/stat".to_owned(), |pid| format!("/proc/{pid}/stat"));
    ticks_of_process(&fs::read_to_string(path).ok()?)
}

/// Returns the CPU time of all processes of the machine in seconds.
pub(crate) fn machine_cpu_seconds() -> Option<f64> {
    ticks_of_machine(&fs::read_to_string("/proc/stat").ok()?)
}

/// Returns user plus system time. Fields are counted from after the command, which may contain spaces and parentheses.
fn ticks_of_process(stat: &str) -> Option<f64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let (user, system): (f64, f64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some((user + system) / TICKS_PER_SECOND)
}

/// Returns all time except idle time and time waiting for disks.
fn ticks_of_machine(stat: &str) -> Option<f64> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<f64> = line.split_whitespace().map_while(|field| field.parse().ok()).collect();
    // user, nice, system, idle, iowait, irq, softirq; user includes guests.
    let busy = ticks.get(..3)?.iter().sum::<f64>() + ticks.get(5..7)?.iter().sum::<f64>();
    Some(busy / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_odd_command_name_does_not_shift_the_fields() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194560 1 2 3 4 250 50 9 9 20 0 1 0 5 6 7";
        assert_eq!(ticks_of_process(stat), Some(3.0));
        assert_eq!(ticks_of_machine("cpu  100 0 50 900 30 10 40 5 0 0\ncpu0 1"), Some(2.0));
    }

    #[test]
    fn this_process_has_memory() {
        assert!(resident_kib(std::process::id()).is_some_and(|kib| kib > 100));
        let memory = Memory::sample(Some(Memory::sample(None, 10)), 7);
        assert_eq!(memory, Memory { first_kib: 10, last_kib: 7, min_kib: 7, max_kib: 10 });
    }
}
