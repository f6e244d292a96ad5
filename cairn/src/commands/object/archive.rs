//! `cairn object archive`: downloads objects as one ZIP archive.

use std::io::Error as IoError;
use std::path::{Path, PathBuf};

use cairn_http1::{encode_strict, file_name};
use serde_json::json;

use super::place::{Place, Selection};
use crate::client::{Request, query, receive, receive_to_stdout, with_query};
use crate::commands::macros::command;
use crate::failure::{Failure, Outcome};
use crate::moment::Moment;
use crate::output::new_file::NewFile;
use crate::output::progress::Progress;
use crate::quantity::counted;
use crate::terminal::lines;

command! {
    /// Download the objects whose keys begin with a prefix as one ZIP archive. Nothing is compressed. A file gets its name when
    /// it is complete.
    struct Archive("archive") {
        /// the folder or prefix, as <bucket> or <bucket>/<prefix>
        #[argh(positional)]
        prefix: Place,
        /// the file (default: the name of the folder, with .zip); - means standard output
        #[argh(positional)]
        file: Option<String>,
        /// the objects as of this moment: an age such as 2h, a date or a time
        #[argh(option, arg_name = "time")]
        at: Option<Moment>,
    }
}

impl Archive {
    pub(super) fn run(&self) -> Outcome {
        let client = self.client()?;
        let Selection::Many { prefix, pattern: None } = self.prefix.selection(true)? else {
            return Err(Failure::WrongUsage("give a prefix in place of a pattern".to_owned()));
        };
        let at = self.at.as_ref().map(|at| at.0.as_str());
        let path = format!("/api/v1/buckets/{}/archive", encode_strict(&self.prefix.bucket));
        let path = with_query(&path, &query([("prefix", Some(prefix.as_str())), ("at", at)]));
        let request = Request::get(path).long_running();
        match self.file.as_deref() {
            Some("-") if self.json => {
                Err(Failure::WrongUsage("--json and - both need standard output".to_owned()))
            }
            Some("-") => {
                let content = client.download_stream(&request)?;
                receive_to_stdout(Progress::bytes(0).counted(content))
            }
            file => {
                let path = file.map_or_else(|| PathBuf::from(self.name(&prefix)), PathBuf::from);
                let failed = |error: IoError| Failure::from(not_written(&path, &error));
                let mut file = NewFile::create(&path).map_err(failed)?;
                let content = client.download_stream(&request)?;
                let received = receive(Progress::bytes(0).counted(content), &mut file);
                let size = received.map_err(|error| error.failure(Failure::NoResponse, failed))?;
                file.finish().map_err(failed)?;
                let body = json!({"bytes": size, "file": path.to_string_lossy()});
                client.print(&body, || lines(&format!("{} has {}\n", path.display(), counted(size, "byte"))))
            }
        }
    }

    /// Returns the name of the file if none is given.
    fn name(&self, prefix: &str) -> String {
        let folder = prefix.trim_end_matches('/');
        file_name(if folder.is_empty() { &self.prefix.bucket } else { folder }) + ".zip"
    }
}

fn not_written(path: &Path, error: &IoError) -> String {
    format!("{} could not be written: {error}", path.display())
}
