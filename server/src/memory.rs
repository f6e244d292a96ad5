//! How much memory this process may use: that of the host, or less if a control group says so.

use std::path::{Path, PathBuf};

/// Assumed when the system does not say: small enough for any host that runs this.
const MEMORY_BYTES_FALLBACK: u64 = 1 << 30;

/// Bytes of memory that this process may use.
pub(crate) fn usable_bytes() -> u64 {
    let host = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| total_of(&text));
    let group = std::fs::read_to_string("/proc/self/cgroup").ok().and_then(|text| group_limit(&text));
    [host, group].into_iter().flatten().min().unwrap_or(MEMORY_BYTES_FALLBACK)
}

/// `MemTotal` of `/proc/meminfo`, which counts in KiB.
fn total_of(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The least limit on the way from this process's group (version 2) up to the root.
fn group_limit(membership: &str) -> Option<u64> {
    let path = membership.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let root = Path::new("/sys/fs/cgroup");
    let own: PathBuf = root.join(path);
    own.ancestors()
        .take_while(|folder| folder.starts_with(root))
        .filter_map(|folder| std::fs::read_to_string(folder.join("memory.max")).ok())
        .filter_map(|text| text.trim().parse().ok())
        .min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_read_in_kibibytes() {
        assert_eq!(total_of("MemTotal:       16318480 kB\nMemFree: 1 kB\n"), Some(16_318_480 * 1024));
        assert_eq!(total_of("MemFree: 1 kB\n"), None);
        assert!(usable_bytes() > 0);
    }
}
