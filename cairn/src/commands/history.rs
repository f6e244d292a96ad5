//! `cairn history`: requests, latency and space over the last hour or day.

use serde_json::Value;

use crate::choice::choice;
use crate::client::Request;
use crate::commands::macros::command;
use crate::failure::Outcome;
use crate::output::table::{Columns, bytes, table, text};

command! {
    /// Show requests of S3 clients, their latency and the stored bytes over time, the latest last.
    struct History("history") {
        /// the period: hour (an interval is ten seconds) or day (a minute) (default: hour)
        #[argh(option, arg_name = "hour|day", default = "Period(\"hour\")")]
        period: Period,
    }
}

choice! {
    /// A period that the server keeps.
    Period = "hour" | "day"
}

const COLUMNS: Columns = &[
    ("time", |row| text(&row["time"])),
    ("seconds", |row| text(&row["seconds"])),
    ("reads", |row| text(&row["reads"])),
    ("writes", |row| text(&row["writes"])),
    ("lists", |row| text(&row["lists"])),
    ("4xx", |row| text(&row["client_errors"])),
    ("5xx", |row| text(&row["server_errors"])),
    ("p50", |row| milliseconds(&row["latency_p50"])),
    ("p99", |row| milliseconds(&row["latency_p99"])),
    ("stored", |row| bytes(&row["physical_bytes"])),
];

fn milliseconds(seconds: &Value) -> String {
    seconds.as_f64().map_or_else(|| text(seconds), |seconds| format!("{:.2} ms", seconds * 1000.0))
}

impl History {
    pub(crate) fn run(&self) -> Outcome {
        let client = self.client()?;
        let Period(period) = self.period;
        let body = client.call(&Request::get(format!("/api/v1/system/metrics/history?period={period}")))?;
        let count = body["time"].as_array().map_or(0, Vec::len);
        client.print(&body, || table(COLUMNS, &(0..count).map(|index| row(&body, index)).collect::<Vec<_>>()))
    }
}

/// Returns the figures of one interval. The server sends a list for each figure.
fn row(history: &Value, index: usize) -> Value {
    let mut row = serde_json::Map::new();
    for figures in [history, &history["planes"]["data"], &history["storage"]] {
        let lists = figures.as_object().into_iter().flatten();
        row.extend(lists.filter_map(|(name, list)| Some((name.clone(), list.get(index)?.clone()))));
    }
    row.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lists_become_rows() {
        let history = json!({
            "period": "hour", "time": ["a", "b"], "seconds": [10.0, 9.5],
            "planes": {"data": {"reads": [1, 2], "latency_p50": [null, 0.0005]}},
            "storage": {"physical_bytes": [3, 4]},
        });
        let second = row(&history, 1);
        assert_eq!(
            (&second["time"], &second["reads"], &second["physical_bytes"]),
            (&json!("b"), &json!(2), &json!(4))
        );
        assert_eq!(milliseconds(&second["latency_p50"]), "0.50 ms");
        assert_eq!(milliseconds(&row(&history, 0)["latency_p50"]), "-");
    }
}
