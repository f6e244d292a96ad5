//! Creates files that get their name when they are complete.

use std::fs::{File, Permissions};
use std::io::{Error, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};
use tempfile::TempPath;

/// Start of the temporary names. It does not contain the final name, which can be as long as the file system allows.
const TEMPORARY_PREFIX: &str = ".cairn-";
/// Whoever the umask allows may read and write the file, as any new file.
const MODE: u32 = 0o666;
/// The folder with a link to each open file of this process.
const OPEN_FILES: &str = "/proc/self/fd";

/// The path of a file that an option names, for what a command writes. `-` is refused: standard output has the result.
#[derive(Debug)]
pub(crate) struct OutputPath(pub(crate) PathBuf);

impl FromStr for OutputPath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "-" => Err("must be a file: standard output has the result of the command".to_owned()),
            path => Ok(Self(PathBuf::from(path))),
        }
    }
}

/// A file until it is complete. An existing file of that name stays until then.
pub(crate) struct NewFile {
    path: PathBuf,
    name: Name,
    file: File,
}

/// The name of a file that is not complete.
enum Name {
    /// Its own: it is a terminal, a pipe or another device.
    Final,
    /// None yet. The file vanishes with the process, however that ends.
    Unnamed,
    /// A temporary one, where the file system has no files without a name. A killed process leaves it.
    Temporary(TempPath),
}

impl NewFile {
    /// Creates a file. Follows symbolic links, so that they are not replaced.
    pub(crate) fn create(path: &Path) -> Result<Self, Error> {
        let found = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        if std::fs::metadata(&found).is_ok_and(|there| !there.is_file()) {
            let file = File::options().write(true).open(&found)?;
            return Ok(Self { path: found, name: Name::Final, file });
        }
        let folder = folder_of(&found);
        if let Some(file) = unnamed_in(folder) {
            return Ok(Self { path: found, name: Name::Unnamed, file });
        }
        let named = temporary().permissions(Permissions::from_mode(MODE)).tempfile_in(folder)?;
        let (file, name) = named.into_parts();
        Ok(Self { path: found, name: Name::Temporary(name), file })
    }

    /// Returns the final name.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the content durable, and gives the file its final name.
    pub(crate) fn finish(self) -> Result<(), Error> {
        let name = match self.name {
            Name::Final => return Ok(()),
            Name::Temporary(name) => name,
            // A link cannot replace a file. A rename can.
            Name::Unnamed => {
                let link = |name: &Path| name_unnamed(&self.file, name);
                temporary().make_in(folder_of(&self.path), link)?.into_temp_path()
            }
        };
        self.file.sync_all()?;
        name.persist(&self.path).map_err(|refused| refused.error)
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The maker of random names, so that they never meet what a killed command left.
fn temporary() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(TEMPORARY_PREFIX).suffix(".tmp");
    builder
}

/// Creates a file without a name in a folder, if the file system has such files and the file can get a name later.
fn unnamed_in(folder: &Path) -> Option<File> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = File::from(open(folder, flags, Mode::from_raw_mode(MODE)).ok()?);
    link_of(&file).exists().then_some(file)
}

fn link_of(file: &File) -> PathBuf {
    Path::new(OPEN_FILES).join(file.as_raw_fd().to_string())
}

/// Gives a file without a name one. Source: Linux manual, open(2), `O_TMPFILE`.
fn name_unnamed(file: &File, name: &Path) -> Result<(), Error> {
    Ok(linkat(CWD, link_of(file), CWD, name, AtFlags::SYMLINK_FOLLOW)?)
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

    /// In a container every command has the process id 1, and a killed one left its file under a name with that id.
    #[test]
    fn a_killed_command_leaves_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("proof.json");
        let killed = NewFile::create(&path).expect("a file");
        NewFile::create(&path).expect("another file of the same process").finish().expect("renamed");
        std::mem::forget(killed);
        // A file system without unnamed files, such as NFS, keeps what was left.
        let left = usize::from(unnamed_in(folder.path()).is_none());
        assert_eq!(names(folder.path()).len(), 1 + left);
    }

    #[test]
    fn temporary_names_do_not_meet() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("proof.json");
        let named = || {
            let (file, name) = temporary().tempfile_in(folder.path()).expect("a file").into_parts();
            NewFile { path: path.clone(), name: Name::Temporary(name), file }
        };
        let (mut first, second) = (named(), named());
        first.write_all(b"content").expect("written");
        first.finish().expect("renamed");
        drop(second);
        assert_eq!(std::fs::read(&path).expect("the file"), b"content");
        assert_eq!(names(folder.path()), ["proof.json"]);
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
