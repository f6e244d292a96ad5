//! `cairn import plan`: counts what would come, names what would not, and estimates the time. It changes nothing.

use std::thread;

use serde::Serialize;
use serde_json::{Value, json};

use super::accounts::{self, Wider};
use super::buckets::{SourceBucket, chosen, failure};
use super::fitting::{bucket_loss, key_loss, uploads_loss, version_loss};
use super::groups::{Detail, Groups, Settings};
use super::loss::Loss;
use super::samples::{Samples, WORKERS};
use super::settings::losses_of_settings;
use crate::commands::macros::command;
use crate::commands::remote::{Entry, Remote, Trouble, Variables};
use crate::commands::signals::stop_flag;
use crate::failure::Outcome;
use crate::output::progress::Progress;
use crate::output::table::labelled;
use crate::quantity::{bytes_text, counted};
use crate::s3::endpoint::Endpoint;
use crate::terminal;

/// Most losses of one bucket that are listed by name. The others are counted.
const LOSSES_MAX: usize = 10_000;

command! {
    /// Count the versions that an import would copy, list what it would leave out, and estimate how long it takes. Nothing is
    /// changed. The exit code is 0 if everything could be read.
    struct Plan("plan") {
        /// the address of the source's S3 interface, such as https://minio:9000. SOURCE_ACCESS_KEY and SOURCE_SECRET_KEY hold
        /// a credential that may list and read
        #[argh(option, arg_name = "url")]
        from: Endpoint,
        /// a bucket; may be repeated (default: all buckets)
        #[argh(option, arg_name = "bucket")]
        bucket: Vec<String>,
        /// the archive of accounts and policies that `mc admin cluster iam export` writes: list what would be left out of it
        #[argh(option, arg_name = "zip")]
        iam: Option<String>,
        /// the access key of the source's root user, whose service accounts may do everything
        #[argh(option, arg_name = "access-key")]
        root: Option<String>,
        /// the archive of bucket settings that `mc admin cluster bucket export` writes: list what would be left out of it
        #[argh(option, arg_name = "zip")]
        settings: Option<String>,
    }
}

/// The content of a bucket at the source.
#[derive(Default, Serialize)]
struct Contents {
    bucket: String,
    versioning: Option<String>,
    object_lock: bool,
    keys: u64,
    versions: u64,
    delete_markers: u64,
    null_versions: u64,
    multipart: u64,
    /// Null if the source does not list it.
    tagged: Option<u64>,
    locked: Option<u64>,
    bytes: u64,
    largest: u64,
    /// Objects with entity tags that cannot be kept.
    unusual_etags: u64,
    /// Null if the source does not list them.
    unfinished_uploads: Option<u64>,
    unfinished_bytes: Option<u64>,
}

impl Plan {
    pub(super) fn run(&self) -> Outcome {
        let client = self.client()?;
        let (mut losses, mut wider) = (Vec::new(), Vec::new());
        if let Some(zip) = &self.iam {
            let accounts = accounts::planned(zip, self.root.as_deref())?;
            (losses, wider) = (accounts.losses, accounts.wider);
        }
        if let Some(zip) = &self.settings {
            losses.extend(losses_of_settings(zip)?);
        }
        let source = Remote::new(&Variables::SOURCE, &self.from, WORKERS, stop_flag()?)?;
        let mut failures = Vec::new();
        let mut found = Vec::new();
        let mut samples = Samples::default();
        let progress = Progress::count(0);
        for name in chosen(&source, &self.bucket)? {
            losses.extend(bucket_loss(&name));
            match contents(&source, &name, &mut losses, &mut samples, &progress) {
                Ok(contents) => found.push(contents),
                Err(trouble @ (Trouble::NoAnswer(_) | Trouble::Stopped)) => return Err(failure(&trouble)),
                Err(trouble) => failures.push(json!({"bucket": name, "reason": trouble.text()})),
            }
        }
        drop(progress);
        let versions = found.iter().map(|one| one.versions).sum();
        let bytes = found.iter().map(|one| one.bytes).sum();
        let (seconds, unreadable) =
            samples.read(&source, versions, bytes).map_err(|trouble| failure(&trouble))?;
        losses.extend(unreadable);
        let body = json!({
            "source": self.from.url(),
            "buckets": found,
            "losses": losses,
            "wider": wider,
            "failures": failures,
            "estimated_seconds": seconds,
        });
        client.print(&body, || text(&found, &losses, &wider, &failures, seconds))?;
        match failures.len() as u64 {
            0 => Ok(()),
            count => Err(format!("{} could not be read", counted(count, "bucket")).into()),
        }
    }
}

/// Lists a bucket.
fn contents(
    source: &Remote,
    name: &str,
    losses: &mut Vec<Loss>,
    samples: &mut Samples,
    progress: &Progress,
) -> Result<Contents, Trouble> {
    let bucket = SourceBucket::of(source, name)?;
    let mut contents = Contents {
        bucket: name.to_owned(),
        versioning: bucket.versioning.clone(),
        object_lock: bucket.has_object_lock,
        ..Contents::default()
    };
    let (mut tagged, mut locked, mut lost) = (0, 0, 0_usize);
    let (detail, is_ordered) = thread::scope(|scope| {
        let mut groups = Groups::begin(scope, source, &bucket, Settings::Always, Vec::new());
        while let Some(mut group) = groups.next_group()? {
            bucket.address(&mut group.entries);
            contents.keys += 1;
            for entry in group.entries {
                progress.add(1);
                contents.add(&entry);
                if let Some(settings) = &entry.settings {
                    tagged += u64::from(!settings.tags.is_empty());
                    locked += u64::from(settings.lock.legal_hold || settings.lock.retention.is_some());
                }
                if let Some(loss) = version_loss(name, &entry).or_else(|| key_loss(name, &entry.key)) {
                    lost += 1;
                    if lost <= LOSSES_MAX {
                        losses.push(loss);
                    }
                } else {
                    samples.offer(name, entry, contents.versions);
                }
            }
            if source.is_stopped() {
                return Err(Trouble::Stopped);
            }
        }
        Ok((groups.detail, groups.is_ordered))
    })?;
    if lost > LOSSES_MAX {
        let more = format!("{} more versions", lost - LOSSES_MAX);
        losses.push(Loss::new("version", terminal::plain(name), format!("{more} for the same reasons")));
    }
    if contents.unusual_etags > 0 {
        let why = format!(
            "{} no MD5, or none at all: they get other entity tags here",
            were_of(contents.unusual_etags)
        );
        losses.push(Loss::new("etags", terminal::plain(name), why));
    }
    if contents.object_lock && contents.versioning.is_none() {
        let why = "the bucket has object lock and no versions: here, object lock turns versions on";
        losses.push(Loss::new("versioning", terminal::plain(name), why));
    }
    if !is_ordered {
        let why = "the source does not list keys in the order of their bytes: `--delete` and `verify` refuse to work";
        losses.push(Loss::new("order", terminal::plain(name), why));
    }
    if let Some(unfinished) = source.unfinished(name)? {
        contents.unfinished_uploads = Some(unfinished.uploads);
        contents.unfinished_bytes = Some(unfinished.bytes);
        losses.extend(uploads_loss(name, unfinished));
    }
    match detail {
        Detail::Settings => (contents.tagged, contents.locked) = (Some(tagged), Some(locked)),
        Detail::Versions | Detail::Current => {}
        Detail::Objects => losses.push(Loss::new(
            "versions",
            terminal::plain(name),
            "the source cannot list versions: only current objects come, without version ids and delete markers",
        )),
    }
    Ok(contents)
}

fn were_of(count: u64) -> String {
    match count {
        1 => "the entity tag of 1 object is".to_owned(),
        count => format!("the entity tags of {count} objects are"),
    }
}

impl Contents {
    fn add(&mut self, entry: &Entry) {
        self.null_versions += u64::from(entry.id() == "null");
        if entry.is_marker {
            self.delete_markers += 1;
            return;
        }
        self.versions += 1;
        self.unusual_etags += u64::from(!entry.has_usual_tag());
        self.multipart += u64::from(entry.parts().is_some());
        self.bytes = self.bytes.saturating_add(entry.size);
        self.largest = self.largest.max(entry.size);
    }
}

fn text(found: &[Contents], losses: &[Loss], wider: &[Wider], failures: &[Value], seconds: u64) -> String {
    let mut text = String::new();
    for one in found {
        let mut rows = vec![
            ("bucket".to_owned(), terminal::plain(&one.bucket)),
            (
                "versioning".to_owned(),
                one.versioning.as_deref().map_or_else(|| "never".to_owned(), terminal::plain),
            ),
            ("object lock".to_owned(), if one.object_lock { "yes" } else { "no" }.to_owned()),
            ("keys".to_owned(), one.keys.to_string()),
            ("versions".to_owned(), one.versions.to_string()),
            ("delete markers".to_owned(), one.delete_markers.to_string()),
            ("uploaded in parts".to_owned(), one.multipart.to_string()),
            ("size".to_owned(), bytes_text(one.bytes)),
            ("largest".to_owned(), bytes_text(one.largest)),
        ];
        if let (Some(uploads @ 1..), Some(bytes)) = (one.unfinished_uploads, one.unfinished_bytes) {
            let counted = format!("{uploads}, with {}", bytes_text(bytes));
            rows.push(("unfinished uploads".to_owned(), counted));
        }
        if let (Some(tagged), Some(locked)) = (one.tagged, one.locked) {
            rows.insert(7, ("tagged".to_owned(), tagged.to_string()));
            rows.insert(8, ("locked".to_owned(), locked.to_string()));
        }
        text += &labelled(&rows);
        text.push('\n');
    }
    for loss in losses {
        text += &terminal::plain(&format!("will not come: {} {}: {}", loss.kind, loss.name, loss.reason));
        text.push('\n');
    }
    for wider in wider {
        text += &terminal::plain(&format!("will be allowed beside what it was: {}", wider.text()));
        text.push('\n');
    }
    for failed in failures {
        text += &format!(
            "could not be read: bucket {}: {}\n",
            terminal::word(&failed["bucket"]),
            terminal::word(&failed["reason"])
        );
    }
    let duration = match seconds {
        0 => "less than a second".to_owned(),
        seconds if seconds < 120 => counted(seconds, "second"),
        seconds if seconds < 7200 => counted(seconds.div_ceil(60), "minute"),
        seconds => counted(seconds.div_ceil(3600), "hour"),
    };
    text + &format!("estimated time: {duration}, at the rate at which the source could be read just now\n")
}
