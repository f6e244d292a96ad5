//! Runs a campaign of simulated power cuts: `cut_campaign [--cuts N] [--seed S] [--folder F]`.
//!
//! The folder holds the metadata of the stores; in memory (`/dev/shm`, the default) the campaign is fast. Prints what was done
//! and exits with 1 when something acknowledged was lost, torn or leaked. The seed repeats the campaign.

use cairn_engine::simulation::campaign::{CampaignOptions, run};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]
fn main() -> ExitCode {
    let Some(options) = options(std::env::args().skip(1)) else {
        eprintln!("usage: cut_campaign [--cuts N] [--seed S] [--folder F]");
        return ExitCode::from(2);
    };
    let started = Instant::now();
    let report = match run(&options) {
        Ok(report) => report,
        Err(error) => {
            eprintln!("the campaign cannot run: {error}");
            return ExitCode::from(2);
        }
    };
    println!(
        "{} cuts ({} torn) at {} points of {} sessions ({} encrypting), {} changes acknowledged, {} objects read meanwhile, \
         {} flushes, {} growth steps, {} holes punched, \
         seed {}, {} s",
        report.cuts,
        report.torn,
        report.cut_points,
        report.sessions,
        report.encrypted_sessions,
        report.acknowledged,
        report.reads,
        report.flushes,
        report.growths,
        report.punches,
        options.seed,
        started.elapsed().as_secs(),
    );
    match report.violation {
        None => {
            // After a violation the folder is kept for examination.
            let _ = std::fs::remove_dir_all(&options.folder);
            println!("0 acknowledged changes lost, 0 torn, 0 units leaked");
            ExitCode::SUCCESS
        }
        Some(violation) => {
            eprintln!("FOUND: {violation}");
            ExitCode::FAILURE
        }
    }
}

fn options(mut arguments: impl Iterator<Item = String>) -> Option<CampaignOptions> {
    let memory = PathBuf::from("/dev/shm");
    let base = if memory.is_dir() { memory } else { std::env::temp_dir() };
    let folder = base.join(format!("cairn-cuts-{}", std::process::id()));
    let mut options = CampaignOptions { folder, cuts: 10_000, seed: 1, flaw: None, faults: Vec::new() };
    while let Some(name) = arguments.next() {
        let value = arguments.next()?;
        match name.as_str() {
            "--cuts" => options.cuts = value.parse().ok()?,
            "--seed" => options.seed = value.parse().ok()?,
            "--folder" => options.folder = value.into(),
            _ => return None,
        }
    }
    Some(options)
}
