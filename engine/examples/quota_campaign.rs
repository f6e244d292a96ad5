//! Works at the edge of quotas and checks that none is passed and nothing drifts:
//! `quota_campaign [--operations N] [--seed S] [--folder F]`.
//!
//! The folder takes the store, and is removed in the end. Prints one line; exits with 1 when a limit was passed or a counter
//! is wrong.

#[path = "../tests/quota/campaign.rs"]
mod campaign;

use campaign::{CampaignOptions, run};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// Operations after which all is compared and the store is opened anew.
const ROUND: u64 = 250_000;

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]
fn main() -> ExitCode {
    let Some(options) = options(std::env::args().skip(1)) else {
        eprintln!("usage: quota_campaign [--operations N] [--seed S] [--folder F]");
        return ExitCode::from(2);
    };
    if let Err(error) = std::fs::create_dir_all(&options.folder) {
        eprintln!("{}: {error}", options.folder.display());
        return ExitCode::from(2);
    }
    let begun = Instant::now();
    let report = run(&options);
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "{} operations, {:.0} a second, {} refused for a quota and {} removals; limits set {} times, {} of those refused; \
         {} looks, {} comparisons, drift {} objects, {} bytes; seed {}, {seconds:.0} s",
        report.operations,
        report.operations as f64 / seconds,
        report.refused,
        report.kept,
        report.limits_set,
        report.limits_refused,
        report.looks,
        report.comparisons,
        report.drift_objects,
        report.drift_bytes,
        options.seed,
    );
    match report.finding {
        None => {
            // A finding leaves its store for whoever looks into it.
            let _ = std::fs::remove_dir_all(&options.folder);
            println!("no limit was passed, no counter drifted");
            ExitCode::SUCCESS
        }
        Some(finding) => {
            eprintln!("FOUND: {finding}");
            ExitCode::FAILURE
        }
    }
}

fn options(mut arguments: impl Iterator<Item = String>) -> Option<CampaignOptions> {
    let folder = std::env::temp_dir().join(format!("cairn-quota-{}", std::process::id()));
    let (slices, executors, tasks) = (4, 2, 256);
    let mut options =
        CampaignOptions { folder, operations: 1_000_000, round: ROUND, seed: 1, slices, executors, tasks };
    while let Some(name) = arguments.next() {
        let value = arguments.next()?;
        match name.as_str() {
            "--operations" => options.operations = value.parse().ok()?,
            "--seed" => options.seed = value.parse().ok()?,
            "--folder" => options.folder = PathBuf::from(value),
            _ => return None,
        }
    }
    Some(options)
}
