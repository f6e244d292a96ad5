//! Formats a server's responses: lists as columns, records as labelled lines.

use serde_json::Value;

use crate::quantity;
use crate::terminal::{plain, word};

/// Labels, each with a function that returns its text for a record.
pub(crate) type Columns = &'static [(&'static str, fn(&Value) -> String)];

/// Shown for a missing value.
const NOTHING: &str = "-";

/// Formats records as aligned columns under their labels.
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

/// Formats one record, with a line for each label and the values aligned.
pub(crate) fn record(columns: Columns, record: &Value) -> String {
    let rows: Vec<_> = columns.iter().map(|(label, text)| ((*label).to_owned(), text(record))).collect();
    labelled(&rows)
}

/// Formats lines of labels and aligned values.
pub(crate) fn labelled(rows: &[(String, String)]) -> String {
    let width = rows.iter().map(|(label, _)| label.chars().count() + 1).max().unwrap_or(0);
    rows.iter()
        .map(|(label, text)| format!("{:<width$} {text}", format!("{label}:")).trim_end().to_owned() + "\n")
        .collect()
}

/// Formats a value; booleans become yes and no.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::Null => NOTHING.to_owned(),
        Value::Bool(is_so) => (if *is_so { "yes" } else { "no" }).to_owned(),
        Value::String(empty) if plain(empty).is_empty() => NOTHING.to_owned(),
        other => word(other),
    }
}

/// Formats a name of the API in words: `not_ready` becomes `not ready`.
pub(crate) fn words(value: &Value) -> String {
    text(value).replace('_', " ")
}

/// Formats a number of bytes with a unit.
pub(crate) fn bytes(value: &Value) -> String {
    value.as_u64().map_or_else(|| text(value), quantity::bytes_text)
}

/// Formats a list of texts.
pub(crate) fn joined(texts: &Value, separator: &str) -> String {
    let texts: Vec<String> = texts.as_array().into_iter().flatten().map(word).collect();
    if texts.is_empty() { NOTHING.to_owned() } else { texts.join(separator) }
}

/// Formats a dimension of a quota: its limit, or its mode if there is none.
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
    fn columns_and_labels_are_aligned() {
        let records =
            [json!({"name": "é\u{1b}[0m", "size": 2048, "on": true}), json!({"size": "x", "on": [1]})];
        assert_eq!(
            table(COLUMNS, &records),
            "NAME  SIZE                ON\né[0m  2 KiB (2048 bytes)  yes\n-     x                   [1]\n"
        );
        assert_eq!(table(COLUMNS, &[]), "NAME  SIZE  ON\n");
        assert_eq!(record(COLUMNS, &json!({"name": "", "size": 1})), "name: -\nsize: 1 B\non:   -\n");
    }
}
