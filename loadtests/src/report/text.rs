//! Formats a report as text.

use std::fmt;

use crate::report::{Report, Summary};

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(self, out)
    }
}

fn write(report: &Report, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    writeln!(
        out,
        "{} {}: {} connections on {} threads, {} keys of {}, auth {}, {:.2} s measured",
        report.workload,
        report.endpoint,
        report.connections,
        report.threads,
        report.keys,
        report.sizes,
        report.auth,
        report.window_seconds
    )?;
    if let Some(rate) = report.rate {
        writeln!(out, "  due        {rate} requests/s")?;
    }
    if report.operations.len() > 1 {
        for (name, summary) in &report.operations {
            write_summary(name, summary, out)?;
        }
    }
    write_summary("total", &report.total, out)?;
    for (label, count) in &report.errors {
        writeln!(out, "  error      {label}: {count}")?;
    }
    if report.absent + report.reconnects > 0 {
        writeln!(out, "  absent {}, reconnects {}", report.absent, report.reconnects)?;
    }
    if let Some(verification) = &report.verification {
        let (bytes, failures) = (verification.verified_bytes, verification.failures);
        writeln!(out, "  verified   {bytes} bytes; {failures} failures")?;
        for example in &verification.examples {
            writeln!(out, "             {example}")?;
        }
    }
    if let (Some(own), Some(machine)) = (report.generator_cpu_seconds, report.machine_cpu_seconds) {
        let cpus = report.machine_cpus;
        let each = report.generator_cpu_us_per_request.unwrap_or_default();
        writeln!(
            out,
            "  CPU        generator {own:.2} s ({each:.1} us a request) of {machine:.2} s used on {cpus} CPUs"
        )?;
    }
    if let Some(server) = &report.server {
        let memory = server.resident;
        let (first, last, min, max) = (memory.first_kib, memory.last_kib, memory.min_kib, memory.max_kib);
        write!(out, "  server     resident {first} KiB first, {last} last, {min} to {max}")?;
        writeln!(out, "{}", server.cpu_seconds.map_or(String::new(), |cpu| format!("; CPU {cpu:.2} s")))?;
    }
    writeln!(out, "  {}", report.load_model)
}

fn write_summary(name: &str, summary: &Summary, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mebibytes = summary.bytes_per_second / f64::from(1 << 20);
    writeln!(
        out,
        "  {name:<10} {:.1} requests/s, {mebibytes:.2} MiB/s ({} requests, {} bytes)",
        summary.requests_per_second, summary.requests, summary.bytes
    )?;
    if let Some(latency) = &summary.latency_us {
        writeln!(
            out,
            "             latency us: mean {:.0}, p50 {:.0}, p90 {:.0}, p99 {:.0}, p99.9 {:.0}, max {:.0}",
            latency.mean, latency.p50, latency.p90, latency.p99, latency.p99_9, latency.max
        )?;
    }
    Ok(())
}
