//! `cairn object put`: uploads files.

use std::fs::{File, metadata, read_dir};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use cairn_engine::limits::PAYLOAD_BYTES_MAX;
use serde_json::{Value, json};

use super::place::{Place, route};
use crate::client::{Client, Request};
use crate::commands::macros::command;
use crate::commands::parallel::Tally;
use crate::failure::{Failure, Outcome};
use crate::output::progress::Progress;
use crate::output::table::{Columns, bytes, record, text};
use crate::quantity::bytes_text;

command! {
    /// Upload files of up to 5 GiB. The last argument is the destination: <bucket>/<key>, or a bucket or a key that ends in a
    /// slash as a folder.
    struct Put("put") {
        /// files or, with --recursive, folders, and the destination
        #[argh(positional, arg_name = "file")]
        paths: Vec<String>,
        /// upload the content of folders
        #[argh(switch)]
        recursive: bool,
        /// the content type (default: from the name of the file)
        #[argh(option, arg_name = "type")]
        content_type: Option<String>,
        /// do not overwrite existing objects
        #[argh(switch)]
        if_absent: bool,
    }
}

/// Maximum number of files of one command, which bounds memory.
const FILES_MAX: usize = 1_000_000;
/// Maximum depth of folders: deeper ones are a loop of links.
const DEPTH_MAX: usize = 64;

const UPLOADED: Columns = &[
    ("uploaded", |body| text(&body["uploaded"])),
    ("size", |body| bytes(&body["bytes"])),
    ("refused", |body| text(&body["refused"])),
];

/// A file and the key that it is uploaded to.
struct Item {
    file: PathBuf,
    key: String,
    size: u64,
}

impl Put {
    pub(super) fn run(&self) -> Outcome {
        let (destination, sources) = match self.paths.split_last() {
            Some((destination, sources)) if !sources.is_empty() => (destination, sources),
            _ => return Err(Failure::WrongUsage("a file and a destination are required".to_owned())),
        };
        let place: Place =
            destination.parse().map_err(|error| Failure::WrongUsage(format!("{destination}: {error}")))?;
        let client = self.client()?;
        let items = self.items(sources, &place.destination()?)?;
        let total = items.iter().fold(0_u64, |sum, item| sum.saturating_add(item.size));
        let (progress, mut tally, moved) = (Progress::bytes(total), Tally::default(), AtomicU64::new(0));
        if let [item] = &items[..] {
            let body = self.upload(&client, &place.bucket, item, &progress)?;
            drop(progress);
            let done = format!("{}/{} has {} bytes\n", place.bucket, item.key, item.size);
            return client.print(&body, || crate::terminal::lines(&done));
        }
        tally.each(
            &items,
            |item| item.file.display().to_string(),
            |item| {
                self.upload(&client, &place.bucket, item, &progress)?;
                moved.fetch_add(item.size, Ordering::Relaxed);
                Ok(())
            },
        )?;
        drop(progress);
        let body = json!({"uploaded": tally.done, "bytes": moved.into_inner(), "refused": tally.refused});
        client.print(&body, || record(UPLOADED, &body))?;
        tally.result("files were not uploaded")
    }

    fn upload(
        &self,
        client: &Client,
        bucket: &str,
        item: &Item,
        progress: &Progress,
    ) -> Result<Value, Failure> {
        let failed = |error| not_read(&item.file, &error);
        if item.size > PAYLOAD_BYTES_MAX {
            return Err(format!(
                "{} is larger than {}: upload it with an S3 client, which sends it in parts",
                item.file.display(),
                bytes_text(PAYLOAD_BYTES_MAX)
            )
            .into());
        }
        let file = File::open(&item.file).map_err(failed)?;
        let content_type = self.content_type.as_deref().or_else(|| type_of(&item.file));
        let mut headers: Vec<(&str, String)> = Vec::new();
        headers.extend(content_type.map(|name| ("content-type", name.to_owned())));
        headers.extend(self.if_absent.then(|| ("if-none-match", "*".to_owned())));
        let request = Request::put(route(bucket, "object", &item.key)).long_running();
        client.upload(&request, &headers, progress.counted(file), item.size)
    }

    /// Returns the files to upload, with their keys.
    fn items(&self, sources: &[String], destination: &str) -> Result<Vec<Item>, Failure> {
        let is_folder = destination.is_empty() || destination.ends_with('/');
        let mut items = Vec::new();
        for source in sources {
            let path = Path::new(source);
            let found = metadata(path).map_err(|error| not_read(path, &error))?;
            if !is_folder && (sources.len() > 1 || found.is_dir()) {
                let text =
                    "several files need a folder as destination: a bucket, or a key that ends in a slash";
                return Err(Failure::WrongUsage(text.to_owned()));
            }
            if found.is_dir() {
                if !self.recursive {
                    return Err(Failure::WrongUsage(format!(
                        "{source} is a folder; --recursive uploads its content"
                    )));
                }
                walk(path, destination, DEPTH_MAX, &mut items)?;
            } else {
                let name = path.file_name().and_then(|name| name.to_str());
                let name = name
                    .ok_or_else(|| Failure::WrongUsage(format!("{source} has no name that can be a key")))?;
                let key = if is_folder { format!("{destination}{name}") } else { destination.to_owned() };
                items.push(Item { file: path.to_path_buf(), key, size: found.len() });
            }
        }
        Ok(items)
    }
}

/// Adds the files of a folder and of the folders in it.
fn walk(folder: &Path, prefix: &str, depth_left: usize, items: &mut Vec<Item>) -> Outcome {
    let failed = |error| not_read(folder, &error);
    if depth_left == 0 {
        return Err(format!(
            "{} is more than {DEPTH_MAX} folders deep: is it a loop of links?",
            folder.display()
        )
        .into());
    }
    let entries: Result<Vec<_>, _> = read_dir(folder).map_err(failed)?.collect();
    let mut paths: Vec<PathBuf> = entries.map_err(failed)?.iter().map(std::fs::DirEntry::path).collect();
    paths.sort_unstable();
    for path in paths {
        let found = metadata(&path).map_err(|error| not_read(&path, &error))?;
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name
            .ok_or_else(|| format!("the name of {} is not UTF-8, so it cannot be a key", path.display()))?;
        if found.is_dir() {
            walk(&path, &format!("{prefix}{name}/"), depth_left - 1, items)?;
        } else if items.len() == FILES_MAX {
            return Err(format!("more than {FILES_MAX} files: upload folder by folder").into());
        } else {
            items.push(Item { key: format!("{prefix}{name}"), size: found.len(), file: path });
        }
    }
    Ok(())
}

fn not_read(path: &Path, error: &std::io::Error) -> Failure {
    format!("{} could not be read: {error}", path.display()).into()
}

/// Returns the content type of a file with a common extension.
fn type_of(file: &Path) -> Option<&'static str> {
    let extension = file.extension()?.to_str()?.to_ascii_lowercase();
    Some(match extension.as_str() {
        "css" => "text/css",
        "csv" => "text/csv",
        "gif" => "image/gif",
        "gz" => "application/gzip",
        "htm" | "html" => "text/html",
        "jpeg" | "jpg" => "image/jpeg",
        "js" | "mjs" => "text/javascript",
        "json" => "application/json",
        "log" | "txt" => "text/plain",
        "md" => "text/markdown",
        "mp3" => "audio/mpeg",
        "mp4" => "video/mp4",
        "pdf" => "application/pdf",
        "png" => "image/png",
        "svg" => "image/svg+xml",
        "tar" => "application/x-tar",
        "wasm" => "application/wasm",
        "webm" => "video/webm",
        "webp" => "image/webp",
        "xml" => "application/xml",
        "zip" => "application/zip",
        _ => return None,
    })
}
