//! The data folder: who may use it, what it lies on, direct I/O, and free space.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::Seen;
use crate::config::{Settings, bytes_text};

/// Permissions of all users.
const OTHERS: u32 = 0o007;
/// Files and folders of a store that must be read and written, where they are there.
const OWN: [&str; 6] = ["superblock.json", "lock", "control/data.mdb", "audit", "identity", "slices"];
/// One part in so many of the file system should stay free: writes grow slower, and devices too, when it is nearly full.
const FREE_PART_GUIDANCE: u64 = 5;

/// `f_type` of statfs(2) where there is something to say (linux/magic.h).
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

/// The data folder, or the nearest folder above it that is there.
fn existing(data_dir: &Path) -> PathBuf {
    let absolute = std::path::absolute(data_dir).unwrap_or_else(|_| data_dir.to_owned());
    absolute.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/")).to_owned()
}

pub(super) fn permissions(settings: &Settings) -> Seen {
    let data_dir = &settings.server.data_dir;
    let shown = data_dir.display();
    let found = existing(data_dir);
    let used = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
    if !data_dir.exists() {
        return match access(&found, used) {
            Ok(()) => Seen::ok(format!("{shown} is not there yet and will be made")),
            Err(error) => Seen::failed(
                format!("{shown} is not there and cannot be made in {}: {error}", found.display()),
                format!(
                    "make it, and give it to the user of the service: install -d -m 700 -o <user> {shown}"
                ),
            ),
        };
    }
    let metadata = match std::fs::metadata(data_dir) {
        Ok(metadata) if metadata.is_dir() => metadata,
        Ok(_) => return Seen::failed(format!("{shown} is no folder"), "name a folder in server.data_dir"),
        Err(error) => return Seen::refused(format!("{shown}: {error}")),
    };
    let own = OWN.map(|name| data_dir.join(name));
    for path in std::iter::once(data_dir).chain(own.iter().filter(|path| path.exists())) {
        let wanted = if path.is_dir() { used } else { Access::READ_OK | Access::WRITE_OK };
        if let Err(error) = access(path, wanted) {
            return Seen::failed(
                format!("{}: {error}", path.display()),
                format!(
                    "run this as the user of the service, or give it the folder: chown -R <user> {shown}"
                ),
            );
        }
    }
    if metadata.permissions().mode() & OTHERS != 0 {
        return Seen::warning(
            format!("{shown} is open to every user of this host"),
            format!("chmod o-rwx {shown}"),
        );
    }
    Seen::ok(format!("{shown} can be read and written"))
}

pub(super) fn file_system(settings: &Settings) -> Seen {
    let found = existing(&settings.server.data_dir);
    if let Err(error) = cairn_engine::examine_file_system(&found) {
        return Seen::refused(error);
    }
    let kind = match rustix::fs::statfs(&found) {
        Ok(stat) => u64::try_from(stat.f_type).unwrap_or_default(),
        Err(error) => return Seen::refused(format!("{}: {error}", found.display())),
    };
    let name = FILE_SYSTEMS.iter().find(|(magic, _)| *magic == kind).map_or("a local one", |(_, name)| name);
    match kind {
        TMPFS | RAMFS => Seen::warning(
            format!("{name}: what is stored is lost with the next start of the host"),
            "put the data folder on a disk",
        ),
        OVERLAY => Seen::warning(
            format!("{name}: what is stored is lost with the container"),
            "mount a volume of the host as the data folder",
        ),
        _ => Seen::ok(name),
    }
}

pub(super) fn direct_io(settings: &Settings) -> Seen {
    let found = existing(&settings.server.data_dir);
    match cairn_engine::examine_direct_io(&found) {
        Ok(()) => {
            let unit = bytes_text(cairn_engine::limits::UNIT_BYTES);
            Seen::ok(format!("units of {unit} are written and read in {}", found.display()))
        }
        Err(error) => Seen::failed(
            error.to_string(),
            "put the data folder on a file system with direct I/O: ext4, XFS or Btrfs on a disk of this host",
        ),
    }
}

pub(super) fn free_space(settings: &Settings) -> Seen {
    let found = existing(&settings.server.data_dir);
    match rustix::fs::statvfs(&found) {
        Ok(stat) => {
            let available = stat.f_bavail.saturating_mul(stat.f_frsize);
            judge_space(
                available,
                stat.f_blocks.saturating_mul(stat.f_frsize),
                settings.storage.reserve_bytes,
            )
        }
        Err(error) => Seen::refused(format!("{}: {error}", found.display())),
    }
}

fn judge_space(available: u64, all: u64, reserve: u64) -> Seen {
    let percent = available.saturating_mul(100) / all.max(1);
    let seen = format!("{} of {} are free, {percent} percent", rounded(available), rounded(all));
    if available <= reserve {
        let mend = "make room, enlarge the file system, or lower storage.reserve_bytes";
        return Seen::failed(
            format!("{seen}: no more than the reserve of {}, so that writes are refused", rounded(reserve)),
            mend,
        );
    }
    if available < all / FREE_PART_GUIDANCE {
        let wanted = 100 / FREE_PART_GUIDANCE;
        return Seen::warning(
            seen,
            format!("keep {wanted} percent free: make room, or enlarge the file system"),
        );
    }
    Seen::ok(seen)
}

/// As many digits as people want to read.
fn rounded(bytes: u64) -> String {
    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;
    if bytes >= 10 * GIB { bytes_text(bytes / GIB * GIB) } else { bytes_text(bytes / MIB * MIB) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Verdict;

    #[test]
    fn a_full_disk_fails_and_a_nearly_full_one_is_warned_of() {
        const GIB: u64 = 1 << 30;
        let verdict = |available| judge_space(available, 100 * GIB, GIB).verdict;
        assert_eq!(verdict(20 * GIB), Verdict::Ok);
        assert_eq!(verdict(20 * GIB - 1), Verdict::Warning);
        assert_eq!(verdict(GIB + 1), Verdict::Warning);
        assert_eq!(verdict(GIB), Verdict::Failed);
        assert_eq!(verdict(0), Verdict::Failed);
    }

    #[test]
    fn a_folder_that_is_not_there_is_looked_at_above() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(existing(&folder.path().join("a/b")), folder.path());
        assert_eq!(existing(Path::new("/nonexistent/a")), Path::new("/"));
    }
}
