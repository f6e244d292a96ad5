//! Creates files under a temporary name until they are complete.

use std::fs::File;
use std::io::{Error, Write};
use std::path::{Path, PathBuf};

/// A file until it is complete. An existing file of that name stays until then.
pub(crate) struct NewFile {
    path: PathBuf,
    /// The temporary name of the file until it is complete; `None` for a terminal, a pipe or another device.
    temporary: Option<PathBuf>,
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
        let mut temporary = found.clone().into_os_string();
        temporary.push(format!(".{}.tmp", std::process::id()));
        let file = File::options().write(true).create_new(true).open(&temporary)?;
        Ok(Self { path: found, temporary: Some(temporary.into()), file })
    }

    /// Returns the final name.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the content durable, and gives the file its final name.
    pub(crate) fn finish(mut self) -> Result<(), Error> {
        if let Some(temporary) = &self.temporary {
            self.file.sync_all()?;
            std::fs::rename(temporary, &self.path)?;
        }
        self.temporary = None;
        Ok(())
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.file.flush()
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // The file is incomplete.
            let _ = std::fs::remove_file(temporary);
        }
    }
}
