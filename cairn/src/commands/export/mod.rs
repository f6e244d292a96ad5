//! `cairn export`: copies a bucket to a folder or to another S3 store.
//!
//! Objects are read through the management plane, key by key. Their content is compared with entity tags and checksums on
//! its way. A manifest lists what was exported, with ids, dates and checksums that the target may not keep.

mod content;
mod destination;
mod digests;
mod folder;
mod history;
mod listing;
mod manifest;
mod names;
mod outcome;
mod run;
mod store;

use std::path::PathBuf;

use serde_json::json;

use crate::client::{Client, Request, read};
use crate::commands::macros::command;
use crate::commands::remote::{Remote, Variables};
use crate::commands::resources::BUCKETS;
use crate::commands::signals::stop_flag;
use crate::environment::TARGET_ENDPOINT_VARIABLE;
use crate::failure::{Failure, Outcome};
use crate::output::new_file::OutputPath;
use crate::output::print_error;
use crate::output::table::labelled;
use crate::quantity::{Whole, bytes_text, counted, were};
use crate::s3::endpoint::Endpoint;
use crate::terminal::plain;
use destination::Destination;
use folder::Folder;
use manifest::Manifest;
use run::{Run, Totals};
use store::Store;

/// Keys at a time.
const WORKERS: u64 = 8;
/// The manifest in a folder, and by default of another store.
const MANIFEST: &str = "manifest.jsonl";

command! {
    /// Copy the objects of a bucket into a folder or to another S3 store, with a manifest. Every byte is compared with entity
    /// tags and checksums. It can be interrupted and repeated; what is there already is not copied again. The exit code is 0 if
    /// everything arrived.
    struct Export("export") {
        /// the bucket
        #[argh(option, arg_name = "bucket")]
        from_bucket: String,
        /// a folder, or s3://<bucket>. TARGET_ACCESS_KEY and TARGET_SECRET_KEY hold a credential of that store
        #[argh(option, arg_name = "place")]
        to: Destination,
        /// the address of that store's S3 interface (default: TARGET_ENDPOINT)
        #[argh(option, arg_name = "url")]
        to_endpoint: Option<Endpoint>,
        /// only objects whose keys begin with this prefix
        #[argh(option)]
        prefix: Option<String>,
        /// export all versions and delete markers, oldest first (default: the current objects)
        #[argh(switch)]
        versions: bool,
        /// the file for the manifest (default: manifest.jsonl, in the target folder or else in the current one)
        #[argh(option, arg_name = "file")]
        manifest: Option<OutputPath>,
        /// number of keys that are copied at a time (default: 8)
        #[argh(option, arg_name = "n")]
        concurrency: Option<Whole<1, 256>>,
    }
}

impl Export {
    pub(super) fn run(&self) -> Outcome {
        let workers = usize::try_from(self.concurrency.map_or(WORKERS, |number| number.0)).unwrap_or(1);
        let client = self.client()?.with_connections(workers + 1);
        let stop = stop_flag()?;
        let remote;
        let (target, manifest): (run::Target<'_>, PathBuf) = match &self.to {
            Destination::Folder(folder) => {
                if self.to_endpoint.is_some() {
                    return Err(Failure::WrongUsage("--to-endpoint needs --to s3://<bucket>".to_owned()));
                }
                self.check_bucket(&client)?;
                (run::Target::Folder(Folder::new(folder)?), folder.join(MANIFEST))
            }
            Destination::Bucket(bucket) => {
                let endpoint = self.target_endpoint()?;
                remote = Remote::new(&Variables::TARGET, &endpoint, workers, std::sync::Arc::clone(&stop))?;
                self.check_bucket(&client)?;
                (run::Target::Store(Store::new(&remote, bucket, self.versions)?), MANIFEST.into())
            }
        };
        let path = self.manifest.as_ref().map_or(manifest, |OutputPath(path)| path.clone());
        let run = Run {
            client: &client,
            bucket: &self.from_bucket,
            prefix: self.prefix.as_deref().unwrap_or_default(),
            versions: self.versions,
            workers,
            target: &target,
            stop: &stop,
        };
        let mut manifest = Manifest::create(&path, &self.from_bucket)?;
        let totals = run.run(&mut manifest)?;
        manifest.finish()?;
        self.print(&client, &totals, &path)?;
        match totals.failed {
            0 => Ok(()),
            failed => {
                let all = manifest::failures_path(&path);
                Err(format!("{} not exported; {} lists all", were(failed, "version"), all.display()).into())
            }
        }
    }

    /// Refuses a bucket that does not exist, before anything is made.
    fn check_bucket(&self, client: &Client) -> Outcome {
        let _: cairn_api::Bucket = read(&client.call(&Request::get(BUCKETS.path_of(&self.from_bucket)))?)?;
        Ok(())
    }

    fn target_endpoint(&self) -> Result<Endpoint, Failure> {
        if let Some(endpoint) = &self.to_endpoint {
            return Ok(endpoint.clone());
        }
        let text = std::env::var(TARGET_ENDPOINT_VARIABLE).unwrap_or_default();
        if text.is_empty() {
            return Err(Failure::WrongUsage(format!(
                "--to s3://<bucket> needs --to-endpoint, or {TARGET_ENDPOINT_VARIABLE}; of AWS it is \
                 https://s3.<region>.amazonaws.com"
            )));
        }
        text.parse().map_err(|error| Failure::WrongUsage(format!("{TARGET_ENDPOINT_VARIABLE}: {error}")))
    }

    fn print(&self, client: &Client, totals: &Totals, manifest: &std::path::Path) -> Outcome {
        let Totals { exported, unchanged, markers, bytes, failed, locks, tags } = totals;
        let body = json!({
            "exported": exported, "unchanged": unchanged, "delete_markers": markers, "bytes": bytes, "failed": failed,
            "locks_lost": locks, "other_etags": tags, "manifest": manifest.to_string_lossy(),
        });
        let rows = [
            ("exported", exported.to_string()),
            ("unchanged", unchanged.to_string()),
            ("delete markers", markers.to_string()),
            ("size", bytes_text(*bytes)),
            ("failed", failed.to_string()),
            ("manifest", plain(&manifest.to_string_lossy())),
        ];
        client.print(&body, || labelled(&rows.map(|(name, value)| (name.to_owned(), value))))?;
        if *locks > 0 {
            let text = "the target does not keep retention and legal hold of";
            print_error(&format!("cairn: {text} {}; the manifest has them\n", counted(*locks, "version")));
        }
        if *tags > 0 {
            let text = "have other entity tags at the target; their content was compared";
            print_error(&format!("cairn: {} {text}\n", counted(*tags, "version")));
        }
        Ok(())
    }
}
