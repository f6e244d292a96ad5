//! `cairn history`: requests, latency and space over time.

use cairn_api::{MetricHistory, Time};

use crate::choice::choice;
use crate::client::Request;
use crate::commands::macros::command;
use crate::failure::Outcome;
use crate::output::table::{Columns, bytes, table, text};

command! {
    /// Show requests of S3 clients, their latency and the stored bytes over time, the latest last.
    struct History("history") {
        /// the period: hour (an interval is ten seconds), day (a minute) or month (an hour) (default: hour)
        #[argh(option, arg_name = "hour|day|month", default = "Period(\"hour\")")]
        period: Period,
    }
}

choice! {
    /// A period that the server keeps.
    Period = "hour" | "day" | "month"
}

/// The figures of one interval.
struct Interval {
    time: Time,
    seconds: f64,
    reads: u64,
    writes: u64,
    lists: u64,
    client_errors: u64,
    server_errors: u64,
    latency_p50: Option<f64>,
    latency_p99: Option<f64>,
    physical_bytes: u64,
}

const COLUMNS: Columns<Interval> = &[
    ("time", |row| text(&row.time)),
    ("seconds", |row| text(&row.seconds)),
    ("reads", |row| text(&row.reads)),
    ("writes", |row| text(&row.writes)),
    ("lists", |row| text(&row.lists)),
    ("4xx", |row| text(&row.client_errors)),
    ("5xx", |row| text(&row.server_errors)),
    ("p50", |row| milliseconds(row.latency_p50)),
    ("p99", |row| milliseconds(row.latency_p99)),
    ("stored", |row| bytes(&row.physical_bytes)),
];

fn milliseconds(seconds: Option<f64>) -> String {
    text(&seconds.map(|seconds| format!("{:.2} ms", seconds * 1000.0)))
}

impl History {
    pub(crate) fn run(&self) -> Outcome {
        let client = self.client()?;
        let Period(period) = self.period;
        let body = client.call(&Request::get(format!("/api/v1/system/metrics/history?period={period}")))?;
        client.print_as(&body, |history| table(COLUMNS, &intervals(history)))
    }
}

/// Returns the figures of each interval. The server sends a list for each figure, and all lists have the same length.
fn intervals(history: &MetricHistory) -> Vec<Interval> {
    let Some(data) = history.planes.get("data") else { return Vec::new() };
    let interval = |index: usize| {
        Some(Interval {
            time: history.time.get(index)?.clone(),
            seconds: *history.seconds.get(index)?,
            reads: *data.reads.get(index)?,
            writes: *data.writes.get(index)?,
            lists: *data.lists.get(index)?,
            client_errors: *data.client_errors.get(index)?,
            server_errors: *data.server_errors.get(index)?,
            latency_p50: *data.latency_p50.get(index)?,
            latency_p99: *data.latency_p99.get(index)?,
            physical_bytes: *history.storage.physical_bytes.get(index)?,
        })
    };
    (0..history.time.len()).map_while(interval).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lists_become_rows() {
        let history = json!({
            "period": "hour", "period_seconds": 3600, "interval_seconds": 10, "started_at": "a", "time": ["a", "b"],
            "seconds": [10.0, 9.5],
            "planes": {"data": {
                "reads": [1, 2], "writes": [0, 0], "lists": [0, 0], "other": [0, 0], "client_errors": [0, 0],
                "server_errors": [0, 0], "bytes_in": [0, 0], "bytes_out": [0, 0], "latency_p50": [null, 0.0005],
                "latency_p99": [null, null],
            }},
            "storage": {
                "logical_bytes": [1, 1], "physical_bytes": [3, 4], "available_bytes": [9, 9], "capacity_bytes": [9, 9],
            },
        });
        let rows = intervals(&crate::client::read(&history).expect("a history"));
        assert_eq!((&*rows[1].time, rows[1].reads, rows[1].physical_bytes), ("b", 2, 4));
        assert_eq!(milliseconds(rows[1].latency_p50), "0.50 ms");
        assert_eq!(milliseconds(rows[0].latency_p50), "-");
    }
}
