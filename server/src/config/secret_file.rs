//! Values that stand in files of their own: `SERVICE_ROOT_SECRET_KEY_FILE=/run/secrets/root` in place of the secret.
//!
//! Containers (`/run/secrets`) and systemd (`LoadCredential`) hand secrets over as files. The value is the content less
//! one newline at its end, which editors and `echo` put there. No message repeats anything of the content.

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::key::{Key, Kind};
use super::problem::Problem;
use crate::small_file::{self, SmallFileError};

/// What the name of a variable ends with whose value is the name of a file.
pub(super) const SUFFIX: &str = "_FILE";
/// A file larger than this is some other file. The longest secret has a quarter of it.
const FILE_BYTES_MAX: u64 = 4096;
/// Permissions of everybody to read or to write.
const OTHERS: u32 = 0o006;
/// Where containers and systemd keep what is meant for one service. Its files are readable by all who see them, as those
/// of `podman secret` are, and nobody else sees them.
const OWN_MOUNTS: &str = "/run";

/// A value from a file.
pub(super) struct FromFile {
    pub(super) text: String,
    /// What to tell the operator about the file.
    pub(super) warning: Option<String>,
}

impl Key {
    /// Whether a variable may name a file that holds the value: secrets, and text that goes with them.
    #[must_use]
    pub fn may_stand_in_a_file(&self) -> bool {
        matches!(self.kind, Kind::Secret | Kind::Text { .. })
    }

    /// The variables that name a file with the value of this key.
    pub(crate) fn file_variables(&self) -> impl Iterator<Item = String> {
        let names = self.may_stand_in_a_file().then(|| self.variables());
        names.into_iter().flatten().map(|name| name + SUFFIX)
    }
}

/// The value in the file that `variable` names.
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
                format!("has more than {FILE_BYTES_MAX} bytes, so that it is no secret")
            }
        })
    })?;
    let mut text = String::from_utf8(content).map_err(|_| wrong("is not UTF-8".to_owned()))?;
    if text.ends_with('\n') {
        text.pop();
    }
    if text.is_empty() {
        return Err(wrong("is empty".to_owned()));
    }
    // It cannot be seen, and whoever sets the value by other means will leave it out.
    if text.ends_with('\r') {
        return Err(wrong(
            "ends with a carriage return, as files from Windows do; remove it (sed -i 's/\\r$//')".to_owned(),
        ));
    }
    let warning = exposure(path, found.mode()).map(|exposed| format!("{variable}: {exposed}"));
    Ok(FromFile { text, warning })
}

/// What to tell the operator of a file with secrets and these permissions, if others can use it.
pub(super) fn exposure(path: &Path, mode: u32) -> Option<String> {
    if mode & OTHERS == 0 {
        return None;
    }
    // As the system knows it: `/var/run` is a link to `/run`.
    let resolved = std::fs::canonicalize(path);
    if resolved.as_deref().unwrap_or(path).starts_with(OWN_MOUNTS) {
        return None;
    }
    let path = path.display();
    Some(format!("{path} can be read or written by every user of this host; chmod o-rw {path}"))
}

/// What to call the value in messages.
pub(super) fn source(variable: &str) -> String {
    format!("the content of {variable}")
}

/// Refuses a value that is given both by itself and in a file, or in two files.
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
    fn what_only_one_service_sees_is_known_by_every_name() {
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
