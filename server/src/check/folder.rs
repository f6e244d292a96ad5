//! Checks the data folder: permissions, file system, direct I/O and free space.

use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use cairn_engine::{OpenError, StorePart};
use rustix::fs::{Access, access};
use rustix::io::Errno;

use super::Finding;
use crate::config::{Settings, bytes_text};
use crate::host::data_folder::{FileSystem, write_hint};

/// Permission bits of other users.
const OTHERS: u32 = 0o007;
/// One part in five of the file system should stay free: file systems and devices get slower when they are nearly full.
const FREE_PART_GUIDANCE: u64 = 5;

/// The result of resolving the path of the data folder from the root down.
struct ResolvedPath {
    /// The data folder, or its nearest ancestor that exists.
    nearest: PathBuf,
    state: PathState,
}

enum PathState {
    Exists(Metadata),
    /// It does not exist; every ancestor that exists can be entered.
    Absent,
    /// An ancestor cannot be entered by this user.
    Blocked(Finding),
}

fn resolve(data_dir: &Path) -> ResolvedPath {
    let absolute = std::path::absolute(data_dir).unwrap_or_else(|_| data_dir.to_owned());
    let mut nearest = PathBuf::from("/");
    let mut last = None;
    for path in absolute.ancestors().collect::<Vec<_>>().into_iter().rev() {
        let is_link = match std::fs::symlink_metadata(path) {
            Ok(found) => found.is_symlink(),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return ResolvedPath { nearest, state: PathState::Absent };
            }
            Err(error) => {
                let state = PathState::Blocked(blocked(&nearest, path, &error));
                return ResolvedPath { nearest, state };
            }
        };
        match std::fs::metadata(path) {
            Ok(found) => last = Some(found),
            Err(error) if is_link => {
                let message =
                    format!("{} is a symbolic link whose target cannot be reached: {error}", path.display());
                let fix = "create its target, or set server.data_dir to another folder";
                return ResolvedPath { nearest, state: PathState::Blocked(Finding::failed(message, fix)) };
            }
            Err(error) => {
                return ResolvedPath { nearest, state: PathState::Blocked(blocked(path, path, &error)) };
            }
        }
        path.clone_into(&mut nearest);
    }
    ResolvedPath { nearest, state: last.map_or(PathState::Absent, PathState::Exists) }
}

/// The finding for `path` when it cannot be examined because of the folder `by`.
fn blocked(by: &Path, path: &Path, error: &std::io::Error) -> Finding {
    let by = by.display();
    match error.kind() {
        ErrorKind::PermissionDenied => Finding::failed(
            format!("{by} cannot be entered by this user: {error}"),
            format!("let the user of the service enter it: setfacl -m u:<user>:x {by}, or chmod o+x {by}"),
        ),
        ErrorKind::NotADirectory => {
            Finding::failed(format!("{by} is not a folder"), "set server.data_dir to a folder")
        }
        _ => Finding::refused(format!("{}: {error}", path.display())),
    }
}

/// Returns the data folder, or its nearest ancestor that exists.
fn existing(data_dir: &Path) -> PathBuf {
    resolve(data_dir).nearest
}

pub(super) fn permissions(settings: &Settings) -> Finding {
    let data_dir = &settings.server.data_dir;
    let shown = data_dir.display();
    let ResolvedPath { nearest, state } = resolve(data_dir);
    let metadata = match state {
        PathState::Blocked(message) => return message,
        PathState::Absent => return creatable(data_dir, &nearest),
        PathState::Exists(metadata) if !metadata.is_dir() => {
            return Finding::failed(format!("{shown} is not a folder"), "set server.data_dir to a folder");
        }
        PathState::Exists(metadata) => metadata,
    };
    let folder = StorePart { path: data_dir.clone(), is_folder: true, is_required: true };
    // A fault of the superblock is reported by the check of the store.
    let facts = cairn_engine::preflight_store(data_dir).ok().flatten();
    let parts = facts.map(|facts| cairn_engine::store_parts(data_dir, facts)).unwrap_or_default();
    if let Some(fault) = [folder].iter().chain(&parts).find_map(|part| fault_of(part, data_dir)) {
        return fault;
    }
    let mut warnings = Vec::new();
    if metadata.permissions().mode() & OTHERS != 0 {
        let message = format!("{shown} is accessible to every user of this host");
        warnings.push(Finding::warning(message, format!("chmod o-rwx {shown}")));
    }
    if rustix::process::geteuid().is_root() {
        warnings.extend(root_warning(data_dir, &metadata, &parts));
    }
    let all = warnings.into_iter().reduce(Finding::and);
    all.unwrap_or_else(|| Finding::ok(format!("{shown} can be read and written")))
}

/// Checks whether a missing data folder could be created in its nearest existing ancestor.
fn creatable(data_dir: &Path, nearest: &Path) -> Finding {
    let (shown, above) = (data_dir.display(), nearest.display());
    match access(nearest, Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) => Finding::ok(format!("{shown} does not exist yet and will be created")),
        Err(error) => {
            let create =
                format!("create it for the user of the service: install -d -m 700 -o <user> {shown}");
            Finding::failed(
                format!("{shown} does not exist and cannot be created in {above}: {error}"),
                unless_read_only(error, create),
            )
        }
    }
}

/// Returns the remedy `fix`, which makes a user the owner. On a read-only file system that does not help.
fn unless_read_only(error: Errno, fix: String) -> String {
    if error == Errno::ROFS { write_hint(&error.into()).trim_start_matches("; ").to_owned() } else { fix }
}

/// Returns what prevents this process from using a part of the store.
fn fault_of(part: &StorePart, data_dir: &Path) -> Option<Finding> {
    let StorePart { path, is_folder, is_required } = part;
    let (shown, folder) = (path.display(), data_dir.display());
    let of_folder = if *is_folder { Access::EXEC_OK } else { Access::empty() };
    let error =
        match (std::fs::symlink_metadata(path), access(path, Access::READ_OK | Access::WRITE_OK | of_folder))
        {
            (_, Ok(())) => return None,
            (Err(error), _) if error.kind() == ErrorKind::NotFound && !is_required => return None,
            (Err(error), _) if error.kind() == ErrorKind::NotFound => {
                return Some(Finding::failed(
                    format!("{shown} is missing, and the store does not open without it"),
                    format!("put it back, or restore all of {folder} from a backup"),
                ));
            }
            (_, Err(error)) => error,
        };
    let fix =
        format!("run this as the user of the service, or make that user the owner: chown -R <user> {folder}");
    Some(Finding::failed(format!("{shown}: {error}"), unless_read_only(error, fix)))
}

/// Warnings for a check that runs as root: root can access everything, the user of the service may not.
fn root_warning(data_dir: &Path, folder: &Metadata, parts: &[StorePart]) -> Option<Finding> {
    let shown = data_dir.display();
    let owner = folder.uid();
    let owner_of = |path: &Path| std::fs::metadata(path).ok().map(|found| found.uid());
    let other = parts.iter().find(|part| owner_of(&part.path).is_some_and(|uid| uid != owner));
    match other {
        Some(part) => Some(Finding::warning(
            format!("{} does not have the same owner as {shown} (user id {owner})", part.path.display()),
            format!("make the user of the service the owner of all of it: chown -R <user> {shown}"),
        )),
        None if owner != 0 => Some(Finding::warning(
            format!("checked as root, but {shown} is owned by user id {owner}"),
            "run this as the user of the service: runuser -u <user> -- cairn check",
        )),
        None => None,
    }
}

pub(super) fn file_system(settings: &Settings) -> Finding {
    let found = existing(&settings.server.data_dir);
    if let Err(error) = cairn_engine::preflight_file_system(&found) {
        return Finding::refused(error);
    }
    match FileSystem::of(&found) {
        Err(error) => Finding::refused(format!("{}: {error}", found.display())),
        Ok(FileSystem { name, loss: Some(loss) }) => {
            Finding::warning(format!("{name}: {}", loss.when), loss.fix)
        }
        Ok(FileSystem { name, loss: None }) => Finding::ok(name),
    }
}

pub(super) fn direct_io(settings: &Settings) -> Finding {
    let found = existing(&settings.server.data_dir);
    match cairn_engine::preflight_direct_io(&found) {
        Ok(()) => {
            let unit = bytes_text(cairn_engine::limits::UNIT_BYTES);
            Finding::ok(format!("{} supports aligned {unit} reads and writes", found.display()))
        }
        Err(OpenError::Io { error, doing, path }) if error.kind() != ErrorKind::InvalidInput => {
            let hint = write_hint(&error);
            let fix = hint.trim_start_matches("; ");
            let message = format!("{doing} {}: {error}", path.display());
            if fix.is_empty() { Finding::refused(message) } else { Finding::failed(message, fix) }
        }
        Err(error) => Finding::failed(
            error.to_string(),
            "put the data folder on a file system that supports direct I/O: ext4, XFS or Btrfs on a local disk",
        ),
    }
}

pub(super) fn free_space(settings: &Settings) -> Finding {
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
        Err(error) => Finding::refused(format!("{}: {error}", found.display())),
    }
}

fn judge_space(available: u64, all: u64, reserve: u64) -> Finding {
    let percent = available.saturating_mul(100) / all.max(1);
    let message = format!("{} of {} free ({percent} %)", rounded(available), rounded(all));
    if available <= reserve {
        let fix = "free space, enlarge the file system, or lower storage.reserve_bytes";
        let effect = "so no file grows: writes are refused when the volumes are full";
        return Finding::failed(
            format!("{message}: not more than the reserve of {}, {effect}", rounded(reserve)),
            fix,
        );
    }
    if available < all / FREE_PART_GUIDANCE {
        let wanted = 100 / FREE_PART_GUIDANCE;
        return Finding::warning(
            message,
            format!("keep {wanted} % free: free space, or enlarge the file system"),
        );
    }
    Finding::ok(message)
}

/// Rounds down to whole MiB or GiB for display.
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
    fn a_full_disk_fails_and_a_nearly_full_one_warns() {
        const GIB: u64 = 1 << 30;
        let verdict = |available| judge_space(available, 100 * GIB, GIB).verdict;
        assert_eq!(verdict(20 * GIB), Verdict::Ok);
        assert_eq!(verdict(20 * GIB - 1), Verdict::Warning);
        assert_eq!(verdict(GIB + 1), Verdict::Warning);
        assert_eq!(verdict(GIB), Verdict::Failed);
        assert_eq!(verdict(0), Verdict::Failed);
        // It said that writes are refused, although they use the room in the volumes first.
        let said = judge_space(GIB, 100 * GIB, GIB).message;
        assert!(said.ends_with("no file grows: writes are refused when the volumes are full"), "{said}");
    }

    /// The owner was to be changed.
    #[test]
    fn a_read_only_file_system_is_to_be_mounted_writable() {
        let fix = |error| unless_read_only(error, "chown".to_owned());
        assert!(fix(Errno::ROFS).starts_with("mount the file system writable"));
        assert_eq!(fix(Errno::ACCESS), "chown");
    }

    #[test]
    fn the_nearest_existing_ancestor_is_found() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(existing(&folder.path().join("a/b")), folder.path());
        assert_eq!(existing(Path::new("/nonexistent/a")), Path::new("/"));
    }
}
