//! The data folder: who may use it, what it lies on, direct I/O, and free space.

use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use cairn_engine::StorePart;
use rustix::fs::{Access, access};

use super::Seen;
use crate::config::{Settings, bytes_text};

/// Permissions of all users.
const OTHERS: u32 = 0o007;
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

/// What is found on the way to the data folder, from the root down.
struct Way {
    /// The data folder, or the last on the way that is there.
    nearest: PathBuf,
    end: End,
}

enum End {
    /// At the data folder.
    There(Metadata),
    /// Nothing is there, and nothing stands in the way of making it.
    Absent,
    /// At something that lets nobody pass, or not this user.
    Barred(Seen),
}

fn way(data_dir: &Path) -> Way {
    let absolute = std::path::absolute(data_dir).unwrap_or_else(|_| data_dir.to_owned());
    let mut nearest = PathBuf::from("/");
    let mut last = None;
    for path in absolute.ancestors().collect::<Vec<_>>().into_iter().rev() {
        let is_link = match std::fs::symlink_metadata(path) {
            Ok(found) => found.is_symlink(),
            Err(error) if error.kind() == ErrorKind::NotFound => return Way { nearest, end: End::Absent },
            Err(error) => {
                let end = End::Barred(barred(&nearest, path, &error));
                return Way { nearest, end };
            }
        };
        match std::fs::metadata(path) {
            Ok(found) => last = Some(found),
            Err(error) if is_link => {
                let seen =
                    format!("{} is a symbolic link to what cannot be reached: {error}", path.display());
                let mend = "make what it points to, or name another folder in server.data_dir";
                return Way { nearest, end: End::Barred(Seen::failed(seen, mend)) };
            }
            Err(error) => return Way { nearest, end: End::Barred(barred(path, path, &error)) },
        }
        path.clone_into(&mut nearest);
    }
    Way { nearest, end: last.map_or(End::Absent, End::There) }
}

/// `by` does not let this user see what `path` is.
fn barred(by: &Path, path: &Path, error: &std::io::Error) -> Seen {
    let by = by.display();
    match error.kind() {
        ErrorKind::PermissionDenied => Seen::failed(
            format!("{by} does not let this user pass: {error}"),
            format!("let the user of the service pass: setfacl -m u:<user>:x {by}, or chmod o+x {by}"),
        ),
        ErrorKind::NotADirectory => {
            Seen::failed(format!("{by} is no folder"), "name a folder in server.data_dir")
        }
        _ => Seen::refused(format!("{}: {error}", path.display())),
    }
}

/// The data folder, or the nearest folder above it that is there.
fn existing(data_dir: &Path) -> PathBuf {
    way(data_dir).nearest
}

pub(super) fn permissions(settings: &Settings) -> Seen {
    let data_dir = &settings.server.data_dir;
    let shown = data_dir.display();
    let Way { nearest, end } = way(data_dir);
    let metadata = match end {
        End::Barred(seen) => return seen,
        End::Absent => return creatable(data_dir, &nearest),
        End::There(metadata) if !metadata.is_dir() => {
            return Seen::failed(format!("{shown} is no folder"), "name a folder in server.data_dir");
        }
        End::There(metadata) => metadata,
    };
    let folder = StorePart { path: data_dir.clone(), is_folder: true, is_required: true };
    // What is wrong with the superblock, the check of the store says.
    let facts = cairn_engine::examine_store(data_dir).ok().flatten();
    let parts = facts.map(|facts| cairn_engine::store_parts(data_dir, facts)).unwrap_or_default();
    if let Some(fault) = [folder].iter().chain(&parts).find_map(|part| fault_of(part, data_dir)) {
        return fault;
    }
    let mut warnings = Vec::new();
    if metadata.permissions().mode() & OTHERS != 0 {
        let seen = format!("{shown} is open to every user of this host");
        warnings.push(Seen::warning(seen, format!("chmod o-rwx {shown}")));
    }
    if rustix::process::geteuid().is_root() {
        warnings.extend(unknown_to_root(data_dir, &metadata, &parts));
    }
    let all = warnings.into_iter().reduce(Seen::and);
    all.unwrap_or_else(|| Seen::ok(format!("{shown} can be read and written")))
}

/// Whether a folder that is not there could be made in the nearest that is.
fn creatable(data_dir: &Path, nearest: &Path) -> Seen {
    let (shown, above) = (data_dir.display(), nearest.display());
    match access(nearest, Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) => Seen::ok(format!("{shown} is not there yet and will be made")),
        Err(error) => Seen::failed(
            format!("{shown} is not there and cannot be made in {above}: {error}"),
            format!("make it, and give it to the user of the service: install -d -m 700 -o <user> {shown}"),
        ),
    }
}

/// What keeps this process from using a part of the store.
fn fault_of(part: &StorePart, data_dir: &Path) -> Option<Seen> {
    let StorePart { path, is_folder, is_required } = part;
    let (shown, folder) = (path.display(), data_dir.display());
    let of_folder = if *is_folder { Access::EXEC_OK } else { Access::empty() };
    let error =
        match (std::fs::symlink_metadata(path), access(path, Access::READ_OK | Access::WRITE_OK | of_folder))
        {
            (_, Ok(())) => return None,
            (Err(error), _) if error.kind() == ErrorKind::NotFound && !is_required => return None,
            (Err(error), _) if error.kind() == ErrorKind::NotFound => {
                return Some(Seen::failed(
                    format!("{shown} is missing, and the store does not open without it"),
                    format!("put it back, or restore all of {folder} from a backup"),
                ));
            }
            (_, Err(error)) => error,
        };
    let mend =
        format!("run this as the user of the service, or give it the folder: chown -R <user> {folder}");
    Some(Seen::failed(format!("{shown}: {error}"), mend))
}

/// Root may do anything, which says nothing of what the user of the service may.
fn unknown_to_root(data_dir: &Path, folder: &Metadata, parts: &[StorePart]) -> Option<Seen> {
    let shown = data_dir.display();
    let owner = folder.uid();
    let owner_of = |path: &Path| std::fs::metadata(path).ok().map(|found| found.uid());
    let other = parts.iter().find(|part| owner_of(&part.path).is_some_and(|uid| uid != owner));
    match other {
        Some(part) => Some(Seen::warning(
            format!("{} belongs to another user than {shown}, whose user id is {owner}", part.path.display()),
            format!("give all of it to the user of the service: chown -R <user> {shown}"),
        )),
        None if owner != 0 => Some(Seen::warning(
            format!("checked as root, and {shown} belongs to the user id {owner}"),
            "run this as the user of the service: runuser -u <user> -- cairn check",
        )),
        None => None,
    }
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
