//! `cairn object get`: downloads objects into files.

use std::io::Error as IoError;
use std::path::{Component, Path, PathBuf};

use cairn_api::ObjectEntry;
use serde_json::json;

use super::place::{Place, Selection, below, count, for_each_page, route_at};
use crate::client::{Client, Request, receive, receive_to_stdout};
use crate::commands::macros::command;
use crate::commands::parallel::Batch;
use crate::failure::{Failure, Outcome};
use crate::moment::Moment;
use crate::output::new_file::NewFile;
use crate::output::progress::Progress;
use crate::quantity::counted;

command! {
    /// Download an object, or the objects that match a pattern. A file gets its name when it is complete; an existing one is
    /// replaced.
    struct Get("get") {
        /// the object, as <bucket>/<key>, or <bucket>/<pattern>
        #[argh(positional)]
        object: Place,
        /// the file or folder (default: the current folder); - means standard output
        #[argh(positional, arg_name = "file")]
        destination: Option<String>,
        /// download the objects whose keys begin with the key, into folders
        #[argh(switch)]
        recursive: bool,
        /// the version (default: the current one)
        #[argh(option, arg_name = "id")]
        version_id: Option<String>,
        /// the object as of this moment: an age such as 2h, a date or a time
        #[argh(option, arg_name = "time")]
        at: Option<Moment>,
    }
}

impl Get {
    pub(super) fn run(&self) -> Outcome {
        let client = self.client()?;
        let bucket = &self.object.bucket;
        let destination = self.destination.as_deref().unwrap_or(".");
        let (prefix, pattern) = match self.object.selection(self.recursive)? {
            Selection::One(key) => return self.one(&client, &key, destination),
            Selection::Many { prefix, pattern } => (prefix, pattern),
        };
        if self.version_id.is_some() || self.at.is_some() || destination == "-" {
            let text = "--version-id, --at and standard output need one object, not a pattern";
            return Err(Failure::WrongUsage(text.to_owned()));
        }
        let pattern = pattern.as_ref();
        let (_, total) = count(&client, bucket, &prefix, pattern)?;
        let (progress, mut batch) = (Progress::bytes(total), Batch::default());
        let mut moved = 0_u64;
        for_each_page(&client, bucket, &prefix, pattern, |found| {
            let name = |one: &ObjectEntry| format!("{bucket}/{}", one.key);
            let sizes = std::sync::atomic::AtomicU64::new(0);
            batch.run(&found, name, |one| {
                let path = local_path(Path::new(destination), below(&prefix, &one.key))?;
                if let Some(folder) = path.parent() {
                    std::fs::create_dir_all(folder).map_err(|error| not_written(folder, &error))?;
                }
                // The others follow: damage of one object ends only its own content early.
                let size = self.download(&client, &one.key, &path, &progress, Failure::Failed)?;
                sizes.fetch_add(size, std::sync::atomic::Ordering::Relaxed);
                Ok(())
            })?;
            moved += sizes.into_inner();
            Ok(())
        })?;
        drop(progress);
        batch.print(&client, "downloaded", Some(moved))?;
        batch.result("object", "downloaded")
    }

    /// Downloads one object into a file, into a folder, or to standard output.
    fn one(&self, client: &Client, key: &str, destination: &str) -> Outcome {
        if destination == "-" {
            if self.json {
                return Err(Failure::WrongUsage("--json and - both need standard output".to_owned()));
            }
            let download = client.download(&self.request(key)?)?;
            let progress = Progress::bytes(download.size);
            return receive_to_stdout(progress.counted(download.content));
        }
        let mut path = PathBuf::from(destination);
        if path.is_dir() || destination.ends_with('/') {
            path = local_path(&path, key.rsplit('/').next().unwrap_or(key))?;
        }
        let progress = Progress::bytes(0);
        let size = self.download(client, key, &path, &progress, Failure::NoResponse)?;
        drop(progress);
        let body = json!({"downloaded": 1, "bytes": size, "refused": 0, "file": path.to_string_lossy()});
        client.print(&body, || {
            crate::terminal::lines(&format!("{} has {}\n", path.display(), counted(size, "byte")))
        })
    }

    fn request(&self, key: &str) -> Result<Request, Failure> {
        let (version, at) = (self.version_id.as_deref(), self.at.as_ref());
        let route = route_at(&self.object.bucket, "object-content", key, version, at)?;
        Ok(Request::get(route).long_running())
    }

    /// Downloads one object into a file. Returns its size. `cut_failure` makes the failure for content that ends early.
    fn download(
        &self,
        client: &Client,
        key: &str,
        path: &Path,
        progress: &Progress,
        cut_failure: fn(String) -> Failure,
    ) -> Result<u64, Failure> {
        let failed = |error: IoError| not_written(path, &error);
        let download = client.download(&self.request(key)?)?;
        let mut file = NewFile::create(path).map_err(failed)?;
        progress.expect(download.size);
        let received = receive(progress.counted(download.content), &mut file);
        let size = received.map_err(|error| error.failure(cut_failure, failed))?;
        file.finish().map_err(failed)?;
        Ok(size)
    }
}

fn not_written(path: &Path, error: &IoError) -> Failure {
    format!("{} could not be written: {error}", path.display()).into()
}

/// Returns the path of a key below a folder. A key that would lead out of it is refused.
fn local_path(folder: &Path, key: &str) -> Result<PathBuf, Failure> {
    let below = Path::new(key);
    let is_below = below.components().all(|component| matches!(component, Component::Normal(_)));
    // `components` skips empty ones and `.`, so two keys could become one file.
    let is_exact = key.split('/').all(|part| !part.is_empty() && part != "." && !part.contains('\0'));
    if is_below && is_exact {
        Ok(folder.join(below))
    } else {
        Err("the key is not a path of a file: download it alone, with the name of a file".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_leads_out_of_the_folder() {
        let path = |key| local_path(Path::new("/folder"), key);
        assert_eq!(path("a/b"), Ok(PathBuf::from("/folder/a/b")));
        assert_eq!(path("..."), Ok(PathBuf::from("/folder/...")));
        for key in ["../a", "a/../../b", "/etc/passwd", "", "a//b", "./a", "a/", "..", "a\0b"] {
            assert!(path(key).is_err(), "{key:?}");
        }
    }
}
