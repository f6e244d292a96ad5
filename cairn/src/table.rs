//! What a server answered, for people: lists as columns, records as lines with a label.

use serde_json::Value;

use crate::output::{plain, word};
use crate::quantity;

/// Labels, and how the text of each is taken from a record.
pub(crate) type Columns = &'static [(&'static str, fn(&Value) -> String)];

/// Stands for what is not there.
const NOTHING: &str = "-";

/// Aligned columns under their labels; only the labels when there is nothing.
pub(crate) fn table(columns: Columns, records: &[Value]) -> String {
    let labels = columns.iter().map(|(label, _)| label.to_uppercase()).collect();
    let rows: Vec<Vec<String>> = std::iter::once(labels)
        .chain(records.iter().map(|record| columns.iter().map(|(_, text)| text(record)).collect()))
        .collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// One line for each label, the values aligned.
pub(crate) fn record(columns: Columns, record: &Value) -> String {
    let width = columns.iter().map(|(label, _)| label.len() + 1).max().unwrap_or(0);
    let line = |(label, text): &(&str, fn(&Value) -> String)| {
        let label = format!("{label}:");
        format!("{label:<width$} {}\n", text(record))
    };
    columns.iter().map(line).collect()
}

/// Text or a number as it is, truth as yes and no.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::Null => NOTHING.to_owned(),
        Value::Bool(is_so) => (if *is_so { "yes" } else { "no" }).to_owned(),
        Value::String(empty) if plain(empty).is_empty() => NOTHING.to_owned(),
        other => word(other),
    }
}

/// A number of bytes, in units.
pub(crate) fn bytes(value: &Value) -> String {
    value.as_u64().map_or_else(|| text(value), quantity::bytes_text)
}

/// A dimension of a quota: its limit, or that there is none.
pub(crate) fn limit(dimension: &Value, name: &str, number: fn(&Value) -> String) -> String {
    if dimension["mode"] == "limit" { number(&dimension[name]) } else { text(&dimension["mode"]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const COLUMNS: Columns = &[
        ("name", |one| text(&one["name"])),
        ("size", |one| bytes(&one["size"])),
        ("on", |one| text(&one["on"])),
    ];

    #[test]
    fn columns_and_labels_are_aligned_whatever_is_in_the_records() {
        let records =
            [json!({"name": "é\u{1b}[0m", "size": 2048, "on": true}), json!({"size": "x", "on": [1]})];
        assert_eq!(table(COLUMNS, &records), "NAME  SIZE   ON\né[0m  2 KiB  yes\n-     x      [1]\n");
        assert_eq!(table(COLUMNS, &[]), "NAME  SIZE  ON\n");
        assert_eq!(record(COLUMNS, &json!({"name": "", "size": 1})), "name: -\nsize: 1 B\non:   -\n");
    }
}
