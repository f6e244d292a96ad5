//! What the host says about the data folder: its file system, and why it cannot be written.

use std::io::{self, ErrorKind};
use std::path::Path;

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
    /// When stored data is lost, and what to do instead.
    pub(crate) loss: Option<Loss>,
}

/// When data on a file system is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    /// A sentence without its full stop.
    pub(crate) when: &'static str,
    /// What to do.
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
        _ => String::new(),
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
        assert!(hint(ErrorKind::NotFound).is_empty());
    }
}
