//! Formats a server's responses: lists as columns, records as labelled lines.

use std::ops::Deref;

use serde::Serialize;
use serde_json::Value;

use crate::quantity;
use crate::terminal::{plain, word};

/// A label, with a function that returns its text for a record.
pub(crate) type Column<T> = (&'static str, fn(&T) -> String);
/// The columns of a list, or the lines of a record.
pub(crate) type Columns<T> = &'static [Column<T>];

/// Shown for a missing value.
const NOTHING: &str = "-";

/// Formats records as aligned columns under their labels.
pub(crate) fn table<T>(columns: &[Column<T>], records: &[T]) -> String {
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
pub(crate) fn record<T>(columns: &[Column<T>], record: &T) -> String {
    labelled(&lines(columns, record))
}

/// Returns the labels of a record with their texts.
pub(crate) fn lines<T>(columns: &[Column<T>], record: &T) -> Vec<(String, String)> {
    columns.iter().map(|(label, text)| ((*label).to_owned(), text(record))).collect()
}

/// Formats lines of labels and aligned values.
pub(crate) fn labelled(rows: &[(String, String)]) -> String {
    let width = rows.iter().map(|(label, _)| label.chars().count() + 1).max().unwrap_or(0);
    rows.iter()
        .map(|(label, text)| format!("{:<width$} {text}", format!("{label}:")).trim_end().to_owned() + "\n")
        .collect()
}

/// Formats a value; booleans become yes and no.
pub(crate) fn text<T: Serialize + ?Sized>(value: &T) -> String {
    match json(value) {
        Value::Null => NOTHING.to_owned(),
        Value::Bool(is_so) => (if is_so { "yes" } else { "no" }).to_owned(),
        Value::String(empty) if plain(&empty).is_empty() => NOTHING.to_owned(),
        other => word(&other),
    }
}

/// Returns a value as it is written in JSON.
fn json<T: Serialize + ?Sized>(value: &T) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// Formats a name of the API in words: `not_ready` becomes `not ready`.
pub(crate) fn words<T: Serialize + ?Sized>(value: &T) -> String {
    text(value).replace('_', " ")
}

/// Formats a number of bytes with a unit.
pub(crate) fn bytes<T: Serialize + ?Sized>(value: &T) -> String {
    json(value).as_u64().map_or_else(|| text(value), quantity::bytes_text)
}

/// Formats a list of texts.
pub(crate) fn joined<T: Deref<Target = str>>(texts: &[T], separator: &str) -> String {
    let texts: Vec<String> = texts.iter().map(|text| plain(text)).collect();
    if texts.is_empty() { NOTHING.to_owned() } else { texts.join(separator) }
}

/// Formats a limit of a quota.
pub(crate) fn limit(limit: Option<u64>, number: fn(&u64) -> String) -> String {
    limit.map_or_else(|| "unlimited".to_owned(), |limit| number(&limit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const COLUMNS: Columns<Value> = &[
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
