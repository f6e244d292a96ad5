//! Creates files under a temporary name until they are complete.

use std::fs::{File, Permissions};
use std::io::{Error, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::{NamedTempFile, TempPath};

/// Start of the temporary names. It does not contain the final name, which can be as long as the file system allows.
const TEMPORARY_PREFIX: &str = ".cairn-";

/// A file until it is complete. An existing file of that name stays until then.
pub(crate) struct NewFile {
    path: PathBuf,
    /// The temporary name of the file until it is complete, which is removed if that never happens; `None` for a terminal, a
    /// pipe or another device.
    temporary: Option<TempPath>,
    file: File,
}

impl NewFile {
    /// Creates a file. Follows symbolic links, so that they are not replaced.
    pub(crate) fn create(path: &Path) -> Result<Self, Error> {
        let found = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        if std::fs::metadata(&found).is_ok_and(|there| !there.is_file()) {
            let file = File::options().write(true).open(&found)?;
            return Ok(Self { path: found, temporary: None, file });
        }
        let folder = found.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let (file, temporary) = temporary_in(folder)?.into_parts();
        Ok(Self { path: found, temporary: Some(temporary), file })
    }

    /// Returns the final name.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the content durable, and gives the file its final name.
    pub(crate) fn finish(self) -> Result<(), Error> {
        if let Some(temporary) = self.temporary {
            self.file.sync_all()?;
            temporary.persist(&self.path).map_err(|refused| refused.error)?;
        }
        Ok(())
    }
}

/// Creates a file with a random name, so that it never meets what a killed command left. Those whom the umask allows may read
/// it, as any new file.
fn temporary_in(folder: &Path) -> Result<NamedTempFile, Error> {
    let mode = Permissions::from_mode(0o666);
    tempfile::Builder::new().prefix(TEMPORARY_PREFIX).suffix(".tmp").permissions(mode).tempfile_in(folder)
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let names = std::fs::read_dir(folder).expect("a folder");
        let mut names: Vec<_> =
            names.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8")).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_visible_when_it_is_complete() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x".repeat(255));
        let mut file = NewFile::create(&path).expect("the longest name");
        file.write_all(b"content").expect("written");
        assert!(!path.exists());
        file.finish().expect("renamed");
        assert_eq!(std::fs::read(&path).expect("the file"), b"content");
        assert_eq!(names(folder.path()).len(), 1);
        drop(NewFile::create(&path).expect("a second file"));
        assert_eq!(std::fs::read(&path).expect("the file that was there"), b"content");
        assert_eq!(names(folder.path()).len(), 1);
    }

    /// In a container every command has the process id 1, and a killed one leaves its file.
    #[test]
    fn what_a_killed_command_left_is_not_in_the_way() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("proof.json");
        let left = NewFile::create(&path).expect("a file");
        NewFile::create(&path).expect("another file of the same process").finish().expect("renamed");
        std::mem::forget(left);
        assert_eq!(names(folder.path()).len(), 2);
    }

    #[test]
    fn a_new_file_has_the_mode_that_the_umask_leaves() {
        let folder = tempfile::tempdir().expect("a folder");
        let (ours, other) = (folder.path().join("ours"), folder.path().join("other"));
        NewFile::create(&ours).expect("a file").finish().expect("renamed");
        File::create(&other).expect("a file");
        let mode = |path: &Path| std::fs::metadata(path).expect("a file").permissions().mode();
        assert_eq!(mode(&ours), mode(&other));
    }
}
