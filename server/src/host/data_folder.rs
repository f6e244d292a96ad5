//! The file system of the data folder, and hints on write errors.

use std::io::{self, ErrorKind};
use std::path::Path;

use rustix::io::Errno;

/// Known values of `f_type` in statfs(2) (linux/magic.h).
const FILE_SYSTEMS: [(u64, &str); 8] = [
    (0xEF53, "ext4"),
    (0x5846_5342, "XFS"),
    (0x9123_683E, "Btrfs"),
    (0xF2F5_2010, "F2FS"),
    (0x2FC1_2FC1, "ZFS"),
    (TMPFS, "tmpfs"),
    (RAMFS, "ramfs"),
    (OVERLAY, "overlay"),
];
const TMPFS: u64 = 0x0102_1994;
const RAMFS: u64 = 0x8584_58F6;
const OVERLAY: u64 = 0x794C_7630;

/// A file system, and whether it forgets what is stored on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileSystem {
    /// Its name, for people.
    pub(crate) name: &'static str,
    /// The loss of stored data, and its remedy.
    pub(crate) loss: Option<Loss>,
}

/// A loss of data on a file system, with its remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    /// A sentence without its full stop.
    pub(crate) when: &'static str,
    /// The remedy.
    pub(crate) fix: &'static str,
}

impl FileSystem {
    /// Returns the file system of an existing file or folder.
    ///
    /// # Errors
    /// Those of statfs(2).
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let stat = rustix::fs::statfs(path)?;
        Ok(Self::of_magic(u64::try_from(stat.f_type).unwrap_or_default()))
    }

    fn of_magic(kind: u64) -> Self {
        let name = FILE_SYSTEMS.iter().find(|(magic, _)| *magic == kind);
        let loss = match kind {
            TMPFS | RAMFS => Some(Loss {
                when: "stored data is lost when the host restarts",
                fix: "put the data folder on a disk",
            }),
            OVERLAY => Some(Loss {
                when: "stored data is lost when the container is removed",
                fix: "mount a volume of the host as the data folder",
            }),
            _ => None,
        };
        Self { name: name.map_or("local file system", |(_, name)| name), loss }
    }
}

/// Returns what to do about an error on a part of the data folder, to be appended to its message. Empty if nothing is known.
pub(crate) fn write_hint(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::PermissionDenied => format!(
            "; this process runs as user id {}: let it write to the data folder (chown -R <user> <folder>), or choose another \
             folder with --data-dir or server.data_dir. cairn check shows what is missing",
            rustix::process::geteuid().as_raw()
        ),
        ErrorKind::ReadOnlyFilesystem => {
            "; mount the file system writable, or choose another folder with --data-dir or server.data_dir"
                .to_owned()
        }
        ErrorKind::StorageFull => limit_hint(Errno::NOSPC).to_owned(),
        _ => Errno::from_io_error(error).map_or("", limit_hint).to_owned(),
    }
}

/// Returns what to do about an error that a limit of the process, the disk or the file system causes. Empty if nothing
/// is known.
fn limit_hint(error: Errno) -> &'static str {
    match error {
        Errno::MFILE => "; raise the limit on open files (LimitNOFILE, ulimit -Hn)",
        Errno::NFILE => "; raise the host's limit on open files (sysctl fs.file-max)",
        Errno::AGAIN => {
            "; raise the limit on threads (ulimit -u, TasksMax in the systemd unit, --pids-limit of a container)"
        }
        Errno::NOMEM => {
            "; allow more memory or address space (`ulimit -v unlimited`, LimitAS=infinity, sysctl vm.max_map_count)"
        }
        Errno::FBIG => "; remove the limit on the size of files (`ulimit -f unlimited`, LimitFSIZE=infinity)",
        Errno::NOSPC | Errno::DQUOT => "; free some space on the disk, or raise the quota",
        Errno::INVAL => {
            "; the file system may lack direct I/O: put the data folder on ext4, XFS or Btrfs on a local disk"
        }
        Errno::NOENT => {
            "; a part of the store is missing: put it back, or restore the data folder from a backup"
        }
        Errno::EXIST | Errno::NOTDIR => {
            "; the data folder must be a folder, or a symbolic link to a folder that exists"
        }
        Errno::IO => "; the device failed: see the kernel's log (dmesg)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_in_memory_and_of_containers_lose_data() {
        for (magic, name, loses) in [
            (TMPFS, "tmpfs", true),
            (RAMFS, "ramfs", true),
            (OVERLAY, "overlay", true),
            (0xEF53, "ext4", false),
        ] {
            let found = FileSystem::of_magic(magic);
            assert_eq!((found.name, found.loss.is_some()), (name, loses));
        }
        assert_eq!(FileSystem::of_magic(1), FileSystem { name: "local file system", loss: None });
        assert!(FileSystem::of(Path::new("/")).is_ok());
    }

    #[test]
    fn refused_and_read_only_folders_have_a_hint() {
        let hint = |kind| write_hint(&io::Error::from(kind));
        assert!(hint(ErrorKind::PermissionDenied).contains("chown"));
        assert!(hint(ErrorKind::ReadOnlyFilesystem).contains("writable"));
        assert!(hint(ErrorKind::Other).is_empty());
        let of_code = |error: Errno| write_hint(&error.into());
        assert!(of_code(Errno::MFILE).contains("LimitNOFILE") && of_code(Errno::AGAIN).contains("TasksMax"));
        assert!(of_code(Errno::ROFS).contains("writable") && of_code(Errno::DQUOT).contains("quota"));
    }
}
