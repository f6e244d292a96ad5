//! The secrets of `serve --dev`: made on first use, kept in the data folder, read by nobody but the owner.
//!
//! The file has the form of a configuration file, and is read as one, below the user's own file and environment. It
//! must never be overwritten: a store opens only with the master key it was made with.

use std::fmt;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::config::{Key, keys};

/// The name of the file in the data folder.
pub(crate) const DEV_SECRETS_FILE: &str = "dev-secrets.toml";

/// What is made up. Where all of it is given, no file is made or read.
pub(crate) static MADE_UP: [&Key; 4] =
    [&keys::MASTER_KEY, &keys::ROOT_ACCESS_KEY, &keys::ROOT_SECRET_KEY, &keys::SYSTEM_TOKEN];

/// Permissions that others have; there must be none.
const OTHERS: u32 = 0o077;

/// Why there are no secrets for `--dev`.
#[derive(Debug)]
pub enum DevSecretsError {
    /// A step failed.
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// The file can be read by others.
    Exposed {
        /// The file.
        path: PathBuf,
    },
    /// No random bytes.
    Random(getrandom::Error),
}

impl fmt::Display for DevSecretsError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, error } => {
                write!(out, "the secrets of --dev could not be kept in {}: {error}", path.display())
            }
            Self::Exposed { path } => {
                let path = path.display();
                write!(out, "{path} holds secrets and can be read by others; run chmod 600 {path}")
            }
            Self::Random(error) => {
                write!(out, "the system gave no random bytes for the secrets of --dev: {error}")
            }
        }
    }
}

impl std::error::Error for DevSecretsError {}

/// The file that tells that a folder holds a store.
const STORE_FILE: &str = "superblock.json";

/// The secrets of a data folder.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DevSecrets {
    /// None are made up: the folder holds a store but no such file. It was made with secrets of the user's own, and ones
    /// made up now would not open it.
    None,
    /// In this file.
    File(PathBuf),
    /// As the file would hold them.
    Text(String),
}

/// The file of secrets in `data_dir`, made together with the folder if it is not there.
pub(crate) fn ensure(data_dir: &Path) -> Result<DevSecrets, DevSecretsError> {
    let text = match find(data_dir)? {
        DevSecrets::Text(text) => text,
        found => return Ok(found),
    };
    let path = data_dir.join(DEV_SECRETS_FILE);
    let failed = |error| DevSecretsError::Io { path: path.clone(), error };
    DirBuilder::new().recursive(true).mode(0o700).create(data_dir).map_err(failed)?;
    publish(data_dir, &path, &text).map_err(failed)?;
    Ok(DevSecrets::File(path))
}

/// The secrets that `data_dir` has; ones made up, and kept nowhere, when it has none. Changes nothing.
pub(crate) fn find(data_dir: &Path) -> Result<DevSecrets, DevSecretsError> {
    let path = data_dir.join(DEV_SECRETS_FILE);
    match std::fs::metadata(&path) {
        Ok(found) if found.permissions().mode() & OTHERS != 0 => Err(DevSecretsError::Exposed { path }),
        Ok(_) => Ok(DevSecrets::File(path)),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if data_dir.join(STORE_FILE).exists() {
                return Ok(DevSecrets::None);
            }
            made_up().map(DevSecrets::Text).map_err(DevSecretsError::Random)
        }
        Err(error) => Err(DevSecretsError::Io { path, error }),
    }
}

/// Writes the file under another name and links it to its own, so that it is whole when it is seen, and so that of two
/// processes starting at once only one makes it.
fn publish(data_dir: &Path, path: &Path, text: &str) -> std::io::Result<()> {
    let draft = data_dir.join(format!("{DEV_SECRETS_FILE}.{}", std::process::id()));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    let linked = match std::fs::hard_link(&draft, path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        other => other,
    };
    std::fs::remove_file(&draft)?;
    linked?;
    File::open(data_dir)?.sync_all()
}

fn made_up() -> Result<String, getrandom::Error> {
    let mut random = [0; 32 + 8 + 20 + 32];
    getrandom::fill(&mut random)?;
    let (master_key, rest) = random.split_at(32);
    let (access_key, rest) = rest.split_at(8);
    let (secret_key, system_token) = rest.split_at(20);
    Ok(format!(
        "# Made by `cairn serve --dev`. The store opens only with this master key.\n\
         [auth]\n\
         credential_master_key = \"{}\"\n\
         root_access_key = \"CAIRN{}\"\n\
         root_secret_key = \"{}\"\n\
         management_system_token = \"{}\"\n",
        hex::encode(master_key),
        hex::encode_upper(access_key),
        hex::encode(secret_key),
        hex::encode(system_token),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_made_once_and_only_the_owner_reads_them() {
        let folder = tempfile::tempdir().unwrap();
        let data_dir = folder.path().join("data");
        let DevSecrets::File(path) = ensure(&data_dir).unwrap() else { panic!("a file") };
        let first = std::fs::read_to_string(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::metadata(&data_dir).unwrap().permissions().mode() & 0o777, 0o700);
        ensure(&data_dir).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), first);
        assert_eq!(std::fs::read_dir(&data_dir).unwrap().count(), 1, "no draft is left");
    }

    #[test]
    fn no_secrets_are_made_up_for_a_store_that_has_its_own() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(STORE_FILE), "{}").unwrap();
        assert_eq!(ensure(folder.path()).unwrap(), DevSecrets::None);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn looking_makes_neither_file_nor_folder() {
        let folder = tempfile::tempdir().unwrap();
        let data_dir = folder.path().join("data");
        assert!(matches!(find(&data_dir), Ok(DevSecrets::Text(_))));
        assert!(!data_dir.exists());
        ensure(&data_dir).unwrap();
        assert!(matches!(find(&data_dir), Ok(DevSecrets::File(_))));
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let DevSecrets::File(path) = ensure(folder.path()).unwrap() else { panic!("a file") };
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(ensure(folder.path()), Err(DevSecretsError::Exposed { .. })));
    }
}
