//! The secrets of `serve --dev`: generated on first use and stored in the data folder, readable by the owner only.
//!
//! The file is a configuration file; the user's own file and the environment override it. It must never be overwritten: a
//! store opens only with the master key that it was created with.

use std::fmt;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::config::{Key, keys};
use crate::host::data_folder::write_hint;

/// The name of the file in the data folder.
pub(crate) const DEV_SECRETS_FILE: &str = "dev-secrets.toml";

/// The keys that are generated. If all of them are configured, no file is created or read.
pub(crate) static GENERATED: [&Key; 4] =
    [&keys::MASTER_KEY, &keys::ROOT_ACCESS_KEY, &keys::ROOT_SECRET_KEY, &keys::SYSTEM_TOKEN];

/// Permission bits of the group and of other users; none may be set.
const OTHERS: u32 = 0o077;

/// Errors of loading or creating the secrets of `--dev`.
#[derive(Debug)]
pub enum DevSecretsError {
    /// The file could not be read or written.
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// Other users can read the file.
    Exposed {
        /// The file.
        path: PathBuf,
    },
    /// The folder contains a store, but not the file with its secrets.
    Lost {
        /// The file.
        path: PathBuf,
        /// The variables of the secrets that are not configured.
        missing: Vec<String>,
    },
    /// The system provided no random bytes.
    Random(getrandom::Error),
}

impl fmt::Display for DevSecretsError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, error } => {
                let (path, hint) = (path.display(), write_hint(error));
                write!(out, "the secrets of --dev could not be stored in {path}: {error}{hint}")
            }
            Self::Exposed { path } => {
                let path = path.display();
                write!(out, "{path} contains secrets but can be read by other users; run chmod 600 {path}")
            }
            Self::Lost { path, missing } => {
                let (folder, path) = (path.parent().unwrap_or(path).display(), path.display());
                let are = if missing.len() == 1 { "is" } else { "are" };
                write!(
                    out,
                    "{path} is missing, and {} {are} not set. The store in {folder} opens only with the master key that it was \
                     created with. If serve --dev created it, put that file back; otherwise set the secrets that it was \
                     created with. If it holds nothing of value, remove {folder}, and the next start creates a new store",
                    missing.join(", ")
                )
            }
            Self::Random(error) => {
                write!(out, "the system provided no random bytes for the secrets of --dev: {error}")
            }
        }
    }
}

impl std::error::Error for DevSecretsError {}

/// The file that marks a folder as a store.
const STORE_FILE: &str = "superblock.json";

/// The source of a data folder's secrets.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DevSecrets {
    /// They are stored in this file.
    File(PathBuf),
    /// They were generated and are not stored; this is the content that the file would have.
    Text(String),
}

/// Returns the file of secrets in `data_dir`; creates it, and the folder, if it is missing. `missing` are the secrets that are
/// not configured.
///
/// # Errors
/// Those of [`find`], and of creating the file.
pub(crate) fn ensure(data_dir: &Path, missing: &[&Key]) -> Result<DevSecrets, DevSecretsError> {
    let DevSecrets::Text(text) = find(data_dir, missing)? else {
        return Ok(DevSecrets::File(data_dir.join(DEV_SECRETS_FILE)));
    };
    let path = data_dir.join(DEV_SECRETS_FILE);
    let failed = |error| DevSecretsError::Io { path: path.clone(), error };
    DirBuilder::new().recursive(true).mode(0o700).create(data_dir).map_err(failed)?;
    publish(data_dir, &path, &text).map_err(failed)?;
    Ok(DevSecrets::File(path))
}

/// Returns the secrets of `data_dir`, or generated ones that are not stored if it has none. Changes nothing. `missing` are the
/// secrets that are not configured.
///
/// # Errors
/// [`DevSecretsError::Lost`] if the folder contains a store without its secrets: generated ones would not open it.
pub(crate) fn find(data_dir: &Path, missing: &[&Key]) -> Result<DevSecrets, DevSecretsError> {
    let path = data_dir.join(DEV_SECRETS_FILE);
    match std::fs::metadata(&path) {
        Ok(found) if found.permissions().mode() & OTHERS != 0 => Err(DevSecretsError::Exposed { path }),
        Ok(_) => Ok(DevSecrets::File(path)),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if data_dir.join(STORE_FILE).exists() {
                let missing = missing.iter().map(|key| key.variable()).collect();
                return Err(DevSecretsError::Lost { path, missing });
            }
            generate().map(DevSecrets::Text).map_err(DevSecretsError::Random)
        }
        Err(error) => Err(DevSecretsError::Io { path, error }),
    }
}

/// Writes the file under a temporary name and links it to its own name. So it is complete as soon as it is visible, and only
/// one of two processes that start at the same time creates it.
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

fn generate() -> Result<String, getrandom::Error> {
    let mut random = [0; 32 + 8 + 20 + 32];
    getrandom::fill(&mut random)?;
    let (master_key, rest) = random.split_at(32);
    let (access_key, rest) = rest.split_at(8);
    let (secret_key, system_token) = rest.split_at(20);
    Ok(format!(
        "# Created by `cairn serve --dev`. The store opens only with this master key.\n\
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
    fn secrets_are_created_once_and_readable_by_the_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let data_dir = folder.path().join("data");
        let DevSecrets::File(path) = ensure(&data_dir, &GENERATED).unwrap() else { panic!("a file") };
        let first = std::fs::read_to_string(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::metadata(&data_dir).unwrap().permissions().mode() & 0o777, 0o700);
        ensure(&data_dir, &GENERATED).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), first);
        assert_eq!(std::fs::read_dir(&data_dir).unwrap().count(), 1, "no draft is left");
    }

    #[test]
    fn no_secrets_are_generated_for_a_store_that_has_its_own() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(STORE_FILE), "{}").unwrap();
        let text = ensure(folder.path(), &[&keys::MASTER_KEY]).unwrap_err().to_string();
        let file = folder.path().join(DEV_SECRETS_FILE);
        assert!(text.contains(&format!("{} is missing", file.display())), "{text}");
        assert!(text.contains("SERVICE_CREDENTIAL_MASTER_KEY is not set"), "{text}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn find_creates_neither_file_nor_folder() {
        let folder = tempfile::tempdir().unwrap();
        let data_dir = folder.path().join("data");
        assert!(matches!(find(&data_dir, &GENERATED), Ok(DevSecrets::Text(_))));
        assert!(!data_dir.exists());
        ensure(&data_dir, &GENERATED).unwrap();
        assert!(matches!(find(&data_dir, &GENERATED), Ok(DevSecrets::File(_))));
    }

    #[test]
    fn a_file_that_other_users_can_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let DevSecrets::File(path) = ensure(folder.path(), &GENERATED).unwrap() else { panic!("a file") };
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(ensure(folder.path(), &GENERATED), Err(DevSecretsError::Exposed { .. })));
    }
}
