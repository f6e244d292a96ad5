//! Runs the quota campaign: no quota exceeded, no counter drifts.
//!
//! Usage: `quota_campaign [--operations N] [--seed S] [--folder F]`.
//!
//! The folder holds the store and is removed at the end. Prints what was done and exits with 1 when a limit was exceeded or a
//! counter is wrong.

#[path = "../tests/quota/campaign.rs"]
mod campaign;

use campaign::{CampaignOptions, run};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// Operations after which everything is compared and the store is opened again.
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
    let started = Instant::now();
    let report = run(&options);
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{} operations, {:.0} per second, {} and {} removals refused because of a quota; limits set {} times, {} of those \
         refused; {} checks of limits, {} comparisons, drift {} objects, {} bytes; seed {}, {seconds:.0} s",
        report.operations,
        report.operations as f64 / seconds,
        report.refused,
        report.refused_removals,
        report.limits_set,
        report.limits_refused,
        report.limit_checks,
        report.comparisons,
        report.drift_objects,
        report.drift_bytes,
        options.seed,
    );
    match report.violation {
        None => {
            // After a violation the folder is kept for examination.
            let _ = std::fs::remove_dir_all(&options.folder);
            println!("no limit was exceeded, no counter drifted");
            ExitCode::SUCCESS
        }
        Some(violation) => {
            eprintln!("FOUND: {violation}");
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
