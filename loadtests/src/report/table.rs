//! Formats medians and ratios of a campaign as a Markdown table.
//!
//! The results are in one folder, in files named `WORK@SERVER@ROUND.json`. For every work and server, the table shows the
//! median round by requests per second, and the lowest and the highest round. The last column is the subject's median divided
//! by that server's.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::failure::{LoadError, while_doing};
use crate::report::{Report, Verdict};

/// The rounds of each work and server.
type Rounds = BTreeMap<String, BTreeMap<String, Vec<Report>>>;

/// Returns the table of the results in a folder.
///
/// # Errors
/// [`LoadError`] if the folder or a file in it cannot be read.
pub fn table(folder: &Path, subject: &str) -> Result<String, LoadError> {
    let rounds = read(folder)?;
    if rounds.is_empty() {
        return Err(LoadError::Results(format!("{}: no WORK@SERVER@ROUND.json in it", folder.display())));
    }
    Ok(render(&rounds, subject))
}

fn read(folder: &Path) -> Result<Rounds, LoadError> {
    let mut rounds = Rounds::new();
    let doing = || format!("reading {}", folder.display());
    for entry in fs::read_dir(folder).map_err(while_doing(doing()))? {
        let path = entry.map_err(while_doing(doing()))?.path();
        let name =
            path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".json"));
        let parts: Vec<&str> = name.map(|name| name.split('@').collect()).unwrap_or_default();
        let [work, server, _round] = parts[..] else { continue };
        let text = fs::read(&path).map_err(while_doing(doing()))?;
        let report = serde_json::from_slice(&text)
            .map_err(|error| LoadError::Results(format!("{}: {error}", path.display())))?;
        rounds.entry(work.to_owned()).or_default().entry(server.to_owned()).or_default().push(report);
    }
    Ok(rounds)
}

fn render(rounds: &Rounds, subject: &str) -> String {
    let mut out = format!(
        "| work | server | rounds | requests/s: median (lowest to highest) | MiB/s | p50 us | p99 us | errors | \
         generator CPU: share, us a request | {subject} ÷ this |\n|---|---|---|---|---|---|---|---|---|---|\n"
    );
    for (work, servers) in rounds {
        let own = servers.get(subject).map(|rounds| median(rounds).total.requests_per_second);
        for (server, rounds) in servers {
            write_row(work, server, rounds, own, &mut out).expect("writing to a string does not fail");
        }
    }
    out
}

fn write_row(
    work: &str,
    server: &str,
    rounds: &[Report],
    own: Option<f64>,
    out: &mut String,
) -> std::fmt::Result {
    let middle = median(rounds);
    let rates = rounds.iter().map(|round| round.total.requests_per_second);
    let (low, high) =
        rates.fold((f64::INFINITY, 0.0_f64), |(low, high), rate| (low.min(rate), high.max(rate)));
    let latency = middle.total.latency_us.as_ref();
    let figure = |figure: Option<f64>| figure.map_or("-".to_owned(), |figure| format!("{figure:.0}"));
    let errors: u64 = rounds.iter().map(|round| round.error_count).sum();
    let corrupt = rounds.iter().any(|round| round.verdict(false) == Verdict::Corrupt);
    let share =
        middle.generator_cpu_seconds.zip(middle.machine_cpu_seconds).map(|(own, all)| own / all * 100.0);
    let ratio = own.map(|own| own / middle.total.requests_per_second).filter(|ratio| ratio.is_finite());
    writeln!(
        out,
        "| {work} | {server} | {} | {:.1} ({low:.1} to {high:.1}) | {:.1} | {} | {} | {errors}{} | {} %, {} | {} |",
        rounds.len(),
        middle.total.requests_per_second,
        middle.total.bytes_per_second / f64::from(1 << 20),
        figure(latency.map(|latency| latency.p50)),
        figure(latency.map(|latency| latency.p99)),
        if corrupt { " WRONG BYTES" } else { "" },
        figure(share),
        middle.generator_cpu_us_per_request.map_or("-".to_owned(), |each| format!("{each:.1}")),
        ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}")),
    )
}

/// Returns the median round by requests per second. Of an even number it is the lower one, so that it is an actual round.
fn median(rounds: &[Report]) -> &Report {
    let mut sorted: Vec<&Report> = rounds.iter().collect();
    sorted.sort_by(|left, right| left.total.requests_per_second.total_cmp(&right.total.requests_per_second));
    sorted[(sorted.len() - 1) / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(rate: f64) -> String {
        format!(
            r#"{{"workload":"get","endpoint":"e","auth":"header","connections":1,"threads":1,"keys":1,"sizes":"4KiB","seed":1,
            "window_seconds":1.0,"load_model":"","total":{{"requests":1,"requests_per_second":{rate},"bytes":1,
            "bytes_per_second":1048576.0,"latency_us":null}},"operations":{{}},"errors":{{}},"error_count":0,
            "absent":0,"reconnects":0,"verification":null,"generator_cpu_seconds":1.0,
            "generator_cpu_us_per_request":12.5,"machine_cpu_seconds":4.0,
            "machine_cpus":2,"server":null}}"#
        )
    }

    #[test]
    fn a_row_has_median_range_and_ratio() {
        let folder = tempfile::tempdir().unwrap();
        for (name, rate) in [
            ("get@cairn@1", 100.0),
            ("get@cairn@2", 300.0),
            ("get@cairn@3", 200.0),
            ("get@nginx@1", 400.0),
            ("put@other@1", 5.0),
        ] {
            fs::write(folder.path().join(format!("{name}.json")), round(rate)).unwrap();
        }
        fs::write(folder.path().join("notes.txt"), "not a result").unwrap();
        let text = table(folder.path(), "cairn").unwrap();
        assert!(
            text.contains(
                "| get | cairn | 3 | 200.0 (100.0 to 300.0) | 1.0 | - | - | 0 | 25 %, 12.5 | 1.00 |"
            ),
            "{text}"
        );
        assert!(
            text.contains(
                "| get | nginx | 1 | 400.0 (400.0 to 400.0) | 1.0 | - | - | 0 | 25 %, 12.5 | 0.50 |"
            )
        );
        assert!(text.lines().last().unwrap().ends_with("| - |"));
    }

    #[test]
    fn an_empty_folder_and_a_broken_file_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        assert!(table(folder.path(), "cairn").is_err());
        fs::write(folder.path().join("a@b@1.json"), "{").unwrap();
        assert!(matches!(table(folder.path(), "cairn"), Err(LoadError::Results(_))));
    }
}
