//! `cairn import verify`: compares everything with the source, and writes a signed report.

mod compare;
mod difference;
mod report;

use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use cairn_api::{Bucket, VersioningState};
use cairn_http1::iso8601_millis;
use serde_json::{Value, json};

use super::buckets::{SourceBucket, chosen, failure};
use super::copy::Copier;
use super::permits::Permits;
use super::tally::get;
use super::target::{Refused, Target};
use super::throttle::Throttle;
use crate::client::{Request, read};
use crate::commands::macros::command;
use crate::commands::remote::{Remote, Trouble, Variables};
use crate::commands::signals::{nap, stop_flag};
use crate::failure::{Failure, Outcome};
use crate::moment::now_millis;
use crate::output::new_file::OutputPath;
use crate::output::progress::Progress;
use crate::output::table::labelled;
use crate::quantity::{Whole, bytes_text};
use crate::s3::endpoint::Endpoint;
use compare::{Comparison, Counts, Reading};
use difference::{Difference, Subject};
use report::Report;

/// Versions that are compared at a time.
const WORKERS: u64 = 16;
/// The interval at which the progress is shown.
const SHOWN_EVERY: Duration = Duration::from_millis(500);

command! {
    /// Compare all versions with the source: ids, order, dates to the second, entity tags, sizes, headers, metadata, tags,
    /// delete markers and locks, and with --read also bytes. Nothing is changed. The exit code is 0 if everything is equal.
    struct Verify("verify") {
        /// the address of the source's S3 interface, such as https://minio:9000. SOURCE_ACCESS_KEY and SOURCE_SECRET_KEY hold
        /// a credential that may list and read
        #[argh(option, arg_name = "url")]
        from: Endpoint,
        /// a bucket; may be repeated (default: all buckets)
        #[argh(option, arg_name = "bucket")]
        bucket: Vec<String>,
        /// which contents are read on both sides and compared byte by byte: none, all, or a part such as 5% (default: none)
        #[argh(option, arg_name = "part")]
        read: Option<Reading>,
        /// the file for the signed report (JSON), which cairn verify proof checks; a name that ends in .html gets a page, and
        /// the signed report is beside it
        #[argh(option, arg_name = "file")]
        report: Option<OutputPath>,
        /// number of versions that are compared at a time (default: 16)
        #[argh(option, arg_name = "n")]
        concurrency: Option<Whole<1, 256>>,
    }
}

impl FromStr for Reading {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "expected none, all, or a percentage such as 5%";
        match text {
            "none" => Ok(Self::NONE),
            "all" => Ok(Self::ALL),
            text => {
                let digits = text.strip_suffix('%').ok_or(FORM)?;
                let (whole, hundredths) = digits.split_once('.').unwrap_or((digits, ""));
                let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
                if whole.is_empty()
                    || whole.len() > 3
                    || hundredths.len() > 2
                    || !is_digits(whole)
                    || !is_digits(hundredths)
                {
                    return Err(FORM);
                }
                let number: u32 = format!("{whole}{hundredths:0<2}").parse().map_err(|_| FORM)?;
                if number <= Self::ALL.0 { Ok(Self(number)) } else { Err(FORM) }
            }
        }
    }
}

impl Verify {
    pub(super) fn run(&self) -> Outcome {
        let workers =
            usize::try_from(self.concurrency.map_or(WORKERS, |number| number.0)).unwrap_or(usize::MAX);
        let source = Remote::new(&Variables::SOURCE, &self.from, 2 * workers + 1, stop_flag()?)?;
        let client = self.client()?.with_connections(2 * workers + 1);
        let target = Target::new(&client, &source, false);
        let reading = self.read.unwrap_or(Reading::NONE);
        let names = chosen(&source, &self.bucket)?;
        let heading = json!({
            "source": self.from.url(),
            "started_at": iso8601_millis(now_millis()),
            "read_hundredths_of_percent": reading.0,
        });
        let report = Report::begin(&client, heading, self.report.as_ref())?;
        let (mut buckets, progress) = (Vec::new(), Progress::described());
        for name in &names {
            let counts = Counts::default();
            let there = source_bucket(&source, name)?;
            let is_over = AtomicBool::new(false);
            thread::scope(|scope| {
                if !progress.is_hidden() {
                    scope.spawn(|| show(&progress, name, &counts, &is_over));
                }
                let (throttle, permits) = (Throttle::new(0), Permits::new(workers));
                let copier = Copier {
                    source: &source,
                    target: &target,
                    journal: None,
                    throttle: &throttle,
                    permits: &permits,
                    bucket: name,
                    has_locks: there.has_object_lock,
                };
                let comparison = Comparison {
                    copier,
                    source: &source,
                    there: &there,
                    reading,
                    workers,
                    counts: &counts,
                    report: &report,
                };
                let done = one_bucket(&there, &target, &counts, &report)
                    .and_then(|is_here| if is_here { comparison.run() } else { Ok(()) });
                is_over.store(true, Ordering::Relaxed);
                done
            })?;
            buckets.push(json_of(name, &counts));
        }
        drop(progress);
        let (differences, first) = report.found();
        let results = json!({"buckets": buckets, "differences": differences, "completed_at": iso8601_millis(now_millis())});
        report.finish(&results)?;
        let body = body(&self.from, &results, &first);
        client.print(&body, || text(&buckets))?;
        match differences {
            0 => Ok(()),
            1 => Err("there is 1 difference".into()),
            count => Err(format!("there are {count} differences").into()),
        }
    }
}

/// The most differences in the output as JSON. The report has all.
const PRINTED_MAX: usize = 1000;

fn body(from: &Endpoint, results: &Value, first: &[Difference]) -> Value {
    let mut body = results.clone();
    body["source"] = from.url().into();
    body["first_differences"] = json!(&first[..first.len().min(PRINTED_MAX)]);
    body
}

fn source_bucket(source: &Remote, name: &str) -> Result<SourceBucket, Failure> {
    SourceBucket::of(source, name).map_err(|trouble| match trouble {
        trouble @ (Trouble::NoAnswer(_) | Trouble::Stopped) => failure(&trouble),
        trouble => Failure::Failed(format!("the bucket {name} cannot be read: {}", trouble.text())),
    })
}

/// Compares versioning and object lock. Returns whether the bucket is here.
fn one_bucket(
    there: &SourceBucket,
    target: &Target<'_>,
    counts: &Counts,
    report: &Report<'_>,
) -> Result<bool, Failure> {
    let name = there.name.as_str();
    let note = |there: String, here: String| {
        counts.differences.fetch_add(1, Ordering::Relaxed);
        report.add(&Subject { bucket: name, key: "", id: "" }.difference("bucket", there, here))
    };
    let request = Request::get(super::target::bucket_path(name));
    let here: Bucket = match target.call(&request) {
        Ok(here) => read(&here)?,
        Err(Refused::Command(Failure::Failed(why))) if why.starts_with("BUCKET_NOT_FOUND") => {
            note("there".to_owned(), "not here".to_owned())?;
            return Ok(false);
        }
        Err(Refused::Command(failure)) => return Err(failure),
        Err(Refused::Version { code, message }) => return Err(format!("{code}: {message}").into()),
    };
    let versioning = |text: Option<&str>| match text {
        Some(text @ ("Enabled" | "Suspended")) => text.to_owned(),
        // Object lock turns versions on here.
        _ if there.has_object_lock => "Enabled".to_owned(),
        _ => "never versioned".to_owned(),
    };
    let lock = |is_on: bool| if is_on { "object lock" } else { "no object lock" }.to_owned();
    let (at_source, at_target) = (
        versioning(there.versioning.as_deref()),
        versioning(match here.versioning {
            VersioningState::Unversioned => None,
            VersioningState::Enabled => Some("Enabled"),
            VersioningState::Suspended => Some("Suspended"),
        }),
    );
    if at_source != at_target {
        note(at_source, at_target)?;
    }
    let (at_source, at_target) = (lock(there.has_object_lock), lock(here.object_lock));
    if at_source != at_target {
        note(at_source, at_target)?;
    }
    Ok(true)
}

fn json_of(name: &str, counts: &Counts) -> Value {
    json!({
        "bucket": name,
        "versions": get(&counts.versions),
        "delete_markers": get(&counts.delete_markers),
        "bytes": get(&counts.bytes),
        "read_versions": get(&counts.read_versions),
        "read_bytes": get(&counts.read_bytes),
        "written_here": get(&counts.written_here),
        "differences": get(&counts.differences),
    })
}

fn text(buckets: &[Value]) -> String {
    let mut text = String::new();
    for bucket in buckets {
        let number = |name: &str| bucket[name].as_u64().unwrap_or_default();
        text += &labelled(&[
            ("bucket".to_owned(), crate::terminal::word(&bucket["bucket"])),
            ("versions compared".to_owned(), number("versions").to_string()),
            ("delete markers".to_owned(), number("delete_markers").to_string()),
            ("size".to_owned(), bytes_text(number("bytes"))),
            ("read on both sides".to_owned(), bytes_text(number("read_bytes"))),
            ("written here since".to_owned(), number("written_here").to_string()),
            ("differences".to_owned(), number("differences").to_string()),
        ]);
        text.push('\n');
    }
    text
}

/// Shows the progress until the bucket is done.
fn show(progress: &Progress, name: &str, counts: &Counts, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        let done = get(&counts.versions) + get(&counts.delete_markers);
        let read = indicatif::HumanBytes(get(&counts.read_bytes));
        let differences = get(&counts.differences);
        progress.show(0, 1, format!("{name}: {done} versions, {read} read, {differences} differences"));
        nap(SHOWN_EVERY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_to_read_are_percentages() {
        for (text, hundredths) in
            [("none", 0), ("all", 10_000), ("5%", 500), ("0.25%", 25), ("1.5%", 150), ("100%", 10_000)]
        {
            assert_eq!(text.parse(), Ok(Reading(hundredths)), "{text}");
        }
        for wrong in ["", "5", "101%", "%", "1.234%", "-1%", "some", ".5%"] {
            assert!(wrong.parse::<Reading>().is_err(), "{wrong}");
        }
    }
}
