//! The memory limit of this process: the memory of the host, or the limit of a control group.
//!
//! Control groups of both versions are read, because hosts with version 1, or with both versions, still exist. In a container
//! only the group's own folder may be visible, mounted as the root. On a host the limits of all groups up to the root apply.

use std::path::{Path, PathBuf};

/// Assumed if the system reports nothing: small enough for any host that runs this.
const MEMORY_BYTES_FALLBACK: u64 = 1 << 30;
/// The folder in which control groups are mounted.
const CONTROL_GROUPS: &str = "/sys/fs/cgroup";
/// The limits of a group of version 2: beyond the first it is killed, beyond the second it is throttled until it makes no
/// progress.
const LIMITS_2: [&str; 2] = ["memory.max", "memory.high"];
/// The limit of a group of version 1.
const LIMITS_1: [&str; 1] = ["memory.limit_in_bytes"];
/// The memory controller of version 1, which is also the name of its mount point.
const CONTROLLER_1: &str = "memory";

/// Memory that the process may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Usable {
    /// Bytes.
    pub(crate) bytes: u64,
    /// The source of this limit.
    pub(crate) set_by: SetBy,
}

/// The source of the memory limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SetBy {
    /// All of the host's memory.
    Host,
    /// A control group.
    ControlGroup,
    /// The system reports nothing; a small value is assumed.
    Assumption,
}

impl std::fmt::Display for SetBy {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::Host => "the host",
            Self::ControlGroup => "the control group",
            Self::Assumption => "a default, because the system reports none",
        })
    }
}

/// Returns the memory that this process may use.
pub(crate) fn usable() -> Usable {
    let host = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| total_of(&text));
    let membership = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = group_limit(Path::new(CONTROL_GROUPS), &membership);
    match (host, group) {
        // In version 1, a group without a limit has a number larger than any memory.
        (Some(host), Some(group)) if host <= group => Usable { bytes: host, set_by: SetBy::Host },
        (_, Some(bytes)) => Usable { bytes, set_by: SetBy::ControlGroup },
        (Some(bytes), None) => Usable { bytes, set_by: SetBy::Host },
        (None, None) => Usable { bytes: MEMORY_BYTES_FALLBACK, set_by: SetBy::Assumption },
    }
}

/// Returns `MemTotal` of `/proc/meminfo` in bytes; the file has it in KiB.
fn total_of(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns the lowest limit from this process's groups up to their roots. `membership` is the content of `/proc/self/cgroup`
/// (cgroups(7)): a line `0::/path` for version 2, and `number:controllers:/path` for each hierarchy of version 1.
fn group_limit(mounted: &Path, membership: &str) -> Option<u64> {
    let limits = membership.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?.strip_prefix('/')?);
        if controllers.is_empty() {
            least(mounted, path, &LIMITS_2)
        } else if controllers.split(',').any(|controller| controller == CONTROLLER_1) {
            least(&mounted.join(CONTROLLER_1), path, &LIMITS_1)
        } else {
            None
        }
    });
    limits.min()
}

/// Returns the lowest of the limits in the files `names` of the folder `path` below `root` and of its ancestors up to `root`.
fn least(root: &Path, path: &str, names: &[&str]) -> Option<u64> {
    let own: PathBuf = root.join(path);
    own.ancestors()
        .take_while(|folder| folder.starts_with(root))
        .flat_map(|folder| names.iter().map(|name| folder.join(name)))
        .filter_map(|file| std::fs::read_to_string(file).ok())
        // `max` means no limit.
        .filter_map(|text| text.trim().parse().ok())
        .min()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// Creates a tree of files; their names are relative to its root.
    fn groups(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        root
    }

    #[test]
    fn the_total_is_converted_from_kibibytes() {
        assert_eq!(total_of("MemTotal:       16318480 kB\nMemFree: 1 kB\n"), Some(16_318_480 * 1024));
        assert_eq!(total_of("MemFree: 1 kB\n"), None);
        assert!(usable().bytes > 0);
    }

    #[test]
    fn the_lowest_version_2_limit_up_to_the_root_applies() {
        let root = groups(&[
            ("system.slice/memory.max", "536870912\n"),
            ("system.slice/cairn.service/memory.max", "max\n"),
            ("system.slice/cairn.service/memory.high", "1073741824\n"),
            ("other.slice/memory.max", "4096\n"),
        ]);
        let limit = |membership| group_limit(root.path(), membership);
        assert_eq!(limit("0::/system.slice/cairn.service\n"), Some(512 * MIB));
        std::fs::write(root.path().join("system.slice/cairn.service/memory.high"), "268435456\n").unwrap();
        assert_eq!(
            limit("0::/system.slice/cairn.service\n"),
            Some(256 * MIB),
            "a throttling limit counts too"
        );
        assert_eq!(limit("0::/\n"), None);
        assert_eq!(limit(""), None);
    }

    /// Hosts with version 1 have the memory controller beside the tree of version 2, which then has no limits: the cache took
    /// a quarter of the host's memory, however little the container had.
    #[test]
    fn the_memory_controller_of_version_1_is_read() {
        let root = groups(&[
            ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("memory/docker/0123/memory.limit_in_bytes", "268435456\n"),
            ("cpu/docker/0123/memory.limit_in_bytes", "1\n"),
        ]);
        let membership = "9:cpu,cpuacct:/docker/0123\n4:memory:/docker/0123\n0::/docker/0123\n";
        assert_eq!(group_limit(root.path(), membership), Some(256 * MIB));
    }

    #[test]
    fn a_container_that_sees_its_own_group_as_the_root_finds_its_limit() {
        let root = groups(&[("memory/memory.limit_in_bytes", "268435456\n")]);
        assert_eq!(group_limit(root.path(), "4:memory:/docker/0123\n"), Some(256 * MIB));
        let root = groups(&[("memory.max", "268435456\n")]);
        assert_eq!(group_limit(root.path(), "0::/\n"), Some(256 * MIB));
        assert_eq!(group_limit(root.path(), "0::/../../pod/0123\n"), Some(256 * MIB));
    }
}
