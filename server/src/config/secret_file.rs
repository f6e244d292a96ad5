//! Reads secrets from files: `SERVICE_ROOT_SECRET_KEY_FILE=/run/secrets/root` instead of the secret.
//!
//! Containers (`/run/secrets`) and systemd (`LoadCredential`) provide secrets as files. The value is the content without one
//! trailing newline, which editors and `echo` add. No message repeats anything of the content.

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use super::key::{FILE_SUFFIX, Key, Kind};
use super::problem::Problem;
use crate::small_file::{self, SmallFileError};

/// Maximum size of a secret file. The longest secret has a quarter of it.
const FILE_BYTES_MAX: u64 = 4096;
/// Permission bits that let other users read or write.
const OTHERS: u32 = 0o006;
/// The folder in which containers and systemd mount the secrets of one service. Its files may be readable by everyone, as
/// those of `podman secret` are, but only that service can see them.
const OWN_MOUNTS: &str = "/run";

/// A value from a file.
pub(super) struct FromFile {
    pub(super) text: Zeroizing<String>,
    /// A warning about the file for the operator.
    pub(super) warning: Option<String>,
}

impl Key {
    /// Returns whether a variable may name a file that contains the value: secrets, and the text that belongs to them.
    #[must_use]
    pub fn may_stand_in_a_file(&self) -> bool {
        matches!(self.kind, Kind::Secret | Kind::Text { .. })
    }

    /// Returns the variables that name a file with the value of this key.
    pub(crate) fn file_variables(&self) -> impl Iterator<Item = String> {
        let names = self.may_stand_in_a_file().then(|| self.variables());
        names.into_iter().flatten().map(|name| name + FILE_SUFFIX)
    }
}

/// Reads the value from the file that `variable` names.
pub(super) fn read(variable: &str, file: &OsStr) -> Result<FromFile, Problem> {
    let path = Path::new(file);
    let wrong = |reason: String| Problem::SecretFile {
        variable: variable.to_owned(),
        path: PathBuf::from(path),
        reason,
    };
    let (content, found) = small_file::read(path, FILE_BYTES_MAX).map_err(|error| {
        wrong(match error {
            SmallFileError::Io(error) => format!("cannot be read: {error}"),
            SmallFileError::NotRegular => "is not a regular file".to_owned(),
            SmallFileError::TooLarge => {
                format!("has more than {FILE_BYTES_MAX} bytes, which is too large for a secret")
            }
        })
    })?;
    let content = Zeroizing::new(content);
    let text = std::str::from_utf8(&content).map_err(|_| wrong("is not UTF-8".to_owned()))?;
    let mut text = Zeroizing::new(text.to_owned());
    if text.ends_with('\n') {
        text.pop();
    }
    if text.is_empty() {
        return Err(wrong("is empty".to_owned()));
    }
    // It is invisible, and would be missing if the value were set in another way.
    if text.ends_with('\r') {
        return Err(wrong(
            "ends with a carriage return, as files from Windows do; remove it (sed -i 's/\\r$//')".to_owned(),
        ));
    }
    let warning = exposure(path, found.mode()).map(|exposed| format!("{variable}: {exposed}"));
    Ok(FromFile { text, warning })
}

/// Returns a warning if other users can read or write a file with secrets.
pub(super) fn exposure(path: &Path, mode: u32) -> Option<String> {
    if mode & OTHERS == 0 {
        return None;
    }
    // Resolves links: `/var/run` is a link to `/run`.
    let resolved = std::fs::canonicalize(path);
    if resolved.as_deref().unwrap_or(path).starts_with(OWN_MOUNTS) {
        return None;
    }
    let path = path.display();
    Some(format!("{path} can be read or written by every user of this host; run chmod o-rw {path}"))
}

/// Returns how messages refer to the value.
pub(super) fn source(variable: &str) -> String {
    format!("the content of {variable}")
}

/// Refuses a value that is given both directly and in a file, or in two files.
pub(super) fn check_one(plain: &[String], files: &[String]) -> Result<(), Problem> {
    let mut given = plain.iter().take(1).chain(files);
    match (given.next(), given.next()) {
        (Some(first), Some(second)) => {
            Err(Problem::GivenTwice { first: first.clone(), second: second.clone() })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_in_run_bring_no_warning() {
        let folder = tempfile::tempdir().unwrap();
        let secret = folder.path().join("secret");
        std::fs::write(&secret, "x").unwrap();
        assert!(exposure(&secret, 0o600).is_none());
        assert!(exposure(&secret, 0o644).is_some());
        let run = folder.path().join("run");
        std::os::unix::fs::symlink("/run", &run).unwrap();
        assert!(exposure(&run.join("."), 0o755).is_none() && exposure(Path::new("/run/x"), 0o644).is_none());
    }
}
