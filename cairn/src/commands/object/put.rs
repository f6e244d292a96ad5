//! `cairn object put`: uploads files.

use std::fs::{File, Metadata, metadata, read_dir};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

use cairn_engine::limits::PAYLOAD_BYTES_MAX;
use serde_json::Value;
use ureq::http::HeaderValue;

use super::place::{Place, route};
use super::spool::spooled;
use crate::client::{Client, Request};
use crate::commands::macros::command;
use crate::commands::parallel::Batch;
use crate::failure::{Failure, Outcome};
use crate::output::progress::Progress;
use crate::quantity::{bytes_text, counted};
use crate::terminal::plain;

command! {
    /// Upload files of up to 5 GiB. The last argument is the destination: <bucket>/<key>, or a bucket or a key that ends in a
    /// slash as a folder.
    #[argh(usage = "[--recursive] [--content-type <type>] [--if-absent] [--json] [--endpoint <url>] [--] <file>... <destination>")]
    struct Put("put") {
        /// files or, with --recursive, folders, and then the destination; - means standard input
        #[argh(positional, arg_name = "file")]
        paths: Vec<String>,
        /// upload the content of folders
        #[argh(switch)]
        recursive: bool,
        /// the content type (default: from the name of the file)
        #[argh(option, arg_name = "type")]
        content_type: Option<ContentType>,
        /// do not overwrite existing objects
        #[argh(switch)]
        if_absent: bool,
    }
}

/// A content type that can be the value of a header.
#[derive(Clone, PartialEq, Eq, Debug)]
struct ContentType(String);

impl FromStr for ContentType {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = HeaderValue::from_str(text).ok().filter(|value| !value.is_empty());
        known.map(|_| Self(text.to_owned())).ok_or("expected a content type such as image/png")
    }
}

/// Maximum number of files of one command, which bounds memory.
const FILES_MAX: usize = 1_000_000;
/// Maximum depth of folders, which bounds the stack.
const DEPTH_MAX: usize = 64;

/// The name of standard input.
const STDIN: &str = "-";

/// A file and the key that it is uploaded to.
struct Item {
    file: PathBuf,
    key: String,
    /// `None` if only reading shows it: the size of a pipe, of a device or of a file in /proc is said to be 0.
    size: Option<u64>,
}

/// The files that a command uploads.
#[derive(Default)]
struct Items {
    found: Vec<Item>,
    /// Files in folders that cannot be uploaded, and why.
    skipped: Vec<(PathBuf, Failure)>,
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
        let Items { found: items, skipped } = self.items(sources, &place.destination()?)?;
        let total = items.iter().filter_map(|item| item.size).fold(0_u64, u64::saturating_add);
        let (progress, mut batch, moved) = (Progress::bytes(total), Batch::default(), AtomicU64::new(0));
        if let ([item], []) = (&items[..], &skipped[..]) {
            let (body, size) = self.upload(&client, &place.bucket, item, &progress)?;
            drop(progress);
            let done = format!("{}/{} has {}\n", place.bucket, item.key, counted(size, "byte"));
            return client.print(&body, || crate::terminal::lines(&done));
        }
        for (file, failure) in &skipped {
            batch.refuse(&file.display().to_string(), failure);
        }
        batch.run(
            &items,
            |item| item.file.display().to_string(),
            |item| {
                let (_, size) = self.upload(&client, &place.bucket, item, &progress)?;
                moved.fetch_add(size, Ordering::Relaxed);
                Ok(())
            },
        )?;
        drop(progress);
        batch.print(&client, "uploaded", Some(moved.into_inner()))?;
        batch.result("file", "uploaded")
    }

    /// Uploads one file. Returns the record of the new version and the size.
    fn upload(
        &self,
        client: &Client,
        bucket: &str,
        item: &Item,
        progress: &Progress,
    ) -> Result<(Value, u64), Failure> {
        let (file, size) = opened(item)?;
        let content_type =
            self.content_type.as_ref().map(|own| own.0.as_str()).or_else(|| type_of(&item.file));
        let mut headers: Vec<(&str, String)> = Vec::new();
        headers.extend(content_type.map(|name| ("content-type", name.to_owned())));
        headers.extend(self.if_absent.then(|| ("if-none-match", "*".to_owned())));
        let request = Request::put(route(bucket, "object", &item.key)).long_running();
        let body = client.upload(&request, &headers, progress.counted(file), size)?;
        Ok((body, size))
    }

    /// Returns the files to upload, with their keys.
    fn items(&self, sources: &[String], destination: &str) -> Result<Items, Failure> {
        let is_folder = destination.is_empty() || destination.ends_with('/');
        let mut items = Items::default();
        for source in sources {
            let path = Path::new(source);
            if source == STDIN {
                if is_folder || sources.len() > 1 {
                    let text = "standard input has no name: upload it alone, to <bucket>/<key>";
                    return Err(Failure::WrongUsage(text.to_owned()));
                }
                items.found.push(Item { file: path.to_path_buf(), key: destination.to_owned(), size: None });
                continue;
            }
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
                walk(path, &found, destination, &mut Vec::new(), &mut items)?;
            } else {
                let name = path.file_name().and_then(|name| name.to_str());
                let name = name
                    .ok_or_else(|| Failure::WrongUsage(format!("{source} has no name that can be a key")))?;
                let key = if is_folder { format!("{destination}{name}") } else { destination.to_owned() };
                items.found.push(Item { file: path.to_path_buf(), key, size: size_of(&found) });
            }
        }
        Ok(items)
    }
}

/// The number of a device, and of a folder on it.
type FolderId = (u64, u64);

/// Adds the files of a folder and of the folders in it, and follows links. What cannot be uploaded does not stop the others.
/// `around` are the folders that the folder is in.
fn walk(
    folder: &Path,
    found: &Metadata,
    prefix: &str,
    around: &mut Vec<FolderId>,
    items: &mut Items,
) -> Outcome {
    let id = (found.dev(), found.ino());
    let refused = if around.contains(&id) {
        Some("it is a link to a folder that it is in".to_owned())
    } else if around.len() == DEPTH_MAX {
        Some(format!("it is more than {DEPTH_MAX} folders deep"))
    } else {
        None
    };
    if let Some(why) = refused {
        items.skipped.push((folder.to_path_buf(), why.into()));
        return Ok(());
    }
    around.push(id);
    let walked = walk_content(folder, prefix, around, items);
    around.pop();
    walked
}

fn walk_content(folder: &Path, prefix: &str, around: &mut Vec<FolderId>, items: &mut Items) -> Outcome {
    let entries = read_dir(folder).and_then(|entries| {
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<PathBuf>, _>>()
    });
    let mut paths = match entries {
        Ok(paths) => paths,
        Err(error) => {
            items.skipped.push((folder.to_path_buf(), error.to_string().into()));
            return Ok(());
        }
    };
    paths.sort_unstable();
    for path in paths {
        if items.found.len() + items.skipped.len() == FILES_MAX {
            return Err(format!("more than {FILES_MAX} files: upload folder by folder").into());
        }
        let name = path.file_name().and_then(|name| name.to_str());
        match (metadata(&path), name) {
            (Err(error), _) => items.skipped.push((path, error.to_string().into())),
            (_, None) => items.skipped.push((path, "its name is not UTF-8, so it cannot be a key".into())),
            (Ok(found), Some(name)) if found.is_dir() => {
                walk(&path, &found, &format!("{prefix}{name}/"), around, items)?;
            }
            (Ok(found), Some(name)) if found.is_file() => {
                items.found.push(Item { key: format!("{prefix}{name}"), size: size_of(&found), file: path });
            }
            // Opening a pipe would wait for its writer.
            _ => items.skipped.push((path, "it is not a regular file".into())),
        }
    }
    Ok(())
}

/// Returns the size of a file, if reading it is not needed for that.
fn size_of(found: &Metadata) -> Option<u64> {
    Some(found.len()).filter(|size| found.is_file() && *size > 0)
}

/// Opens a file for its upload. Returns its size too.
fn opened(item: &Item) -> Result<(File, u64), Failure> {
    let failed = |error| not_read(&item.file, &error);
    let open = || File::open(&item.file).map_err(failed);
    let (file, size) = match item.size {
        Some(size) => (open()?, size),
        None if item.file == Path::new(STDIN) => {
            spooled(std::io::stdin().lock(), PAYLOAD_BYTES_MAX).map_err(failed)?
        }
        None => spooled(open()?, PAYLOAD_BYTES_MAX).map_err(failed)?,
    };
    if size > PAYLOAD_BYTES_MAX {
        return Err(format!(
            "{} is larger than {}: upload it with an S3 client, which sends it in parts",
            name_of(&item.file),
            bytes_text(PAYLOAD_BYTES_MAX)
        )
        .into());
    }
    Ok((file, size))
}

/// Returns the name of a file in messages.
fn name_of(file: &Path) -> String {
    if file == Path::new(STDIN) { "standard input".to_owned() } else { plain(&file.display().to_string()) }
}

fn not_read(path: &Path, error: &std::io::Error) -> Failure {
    format!("{} could not be read: {error}", name_of(path)).into()
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
