//! The report of a comparison: all differences, in parts that the server signs.

use std::io::Write;
use std::path::Path;

use cairn_sync::Mutex;
use serde_json::{Value, json};

use super::super::tally::place;
use super::difference::Difference;
use crate::client::{Client, Request};
use crate::failure::{Failure, Outcome};
use crate::output::new_file::{NewFile, OutputPath};
use crate::output::print_error;
use crate::terminal::plain;

/// Differences of one signed part, whose body the server limits to 1 MiB.
const PART_DIFFERENCES: usize = 200;
/// Longest text of a difference that is kept: metadata of both sides may have kilobytes.
const TEXT_CHARACTERS_MAX: usize = 600;
/// Differences that are shown, and that the page has. The report has all.
const SHOWN_MAX: usize = 20;
const PAGE_MAX: usize = 10_000;

/// A report that is being written.
pub(crate) struct Report<'c> {
    client: &'c Client,
    /// The members at the beginning of all parts.
    heading: Value,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    file: Option<NewFile>,
    page: Option<NewFile>,
    /// Differences that are not signed yet.
    waiting: Vec<Value>,
    /// The first differences, for the page and the screen.
    first: Vec<Difference>,
    count: u64,
    parts: u64,
}

impl<'c> Report<'c> {
    /// Begins a report. Without a path, differences are only shown. A path that ends in `.html` is that of a page, beside which
    /// the signed report has the ending `.json`.
    pub(crate) fn begin(
        client: &'c Client,
        heading: Value,
        path: Option<&OutputPath>,
    ) -> Result<Self, Failure> {
        let mut state = State::default();
        if let Some(OutputPath(path)) = path {
            let create = |path: &Path| NewFile::create(path).map_err(|error| not_written(path, &error));
            if path.extension().is_some_and(|end| end.eq_ignore_ascii_case("html")) {
                state.page = Some(create(path)?);
                state.file = Some(create(&path.with_extension("json"))?);
            } else {
                state.file = Some(create(path)?);
            }
        }
        Ok(Self { client, heading, state: Mutex::new(state) })
    }

    /// Adds a difference.
    pub(crate) fn add(&self, difference: &Difference) -> Outcome {
        let mut state = self.state.lock();
        let Difference { bucket, key, version_id, kind, source, here } = difference;
        state.count += 1;
        if state.first.len() < SHOWN_MAX {
            let text = format!(
                "cairn: {}: {kind}: {source:?} at the source, {here:?} here",
                place(bucket, key, version_id)
            );
            print_error(&(plain(&text) + "\n"));
        }
        if state.first.len() < PAGE_MAX {
            state.first.push(difference.clone());
        }
        if state.file.is_some() {
            let cut = |text: &str| text.chars().take(TEXT_CHARACTERS_MAX).collect::<String>();
            state.waiting.push(json!({
                "bucket": bucket, "key": key, "version_id": version_id, "kind": kind, "source": cut(source), "here": cut(here),
            }));
            if state.waiting.len() >= PART_DIFFERENCES {
                self.sign(&mut state, None)?;
            }
        }
        Ok(())
    }

    /// Returns the number of differences, and the first of them.
    pub(crate) fn found(&self) -> (u64, Vec<Difference>) {
        let state = self.state.lock();
        (state.count, state.first.clone())
    }

    /// Signs the last part, which has the results, and gives the files their names.
    pub(crate) fn finish(self, results: &Value) -> Outcome {
        let mut state = self.state.lock();
        if state.file.is_none() {
            return Ok(());
        }
        let proof = self.sign(&mut state, Some(results))?;
        let State { file, page, first, count, .. } = &mut *state;
        if let Some(mut file) = file.take() {
            let path = file.path().to_path_buf();
            let written = file.write_all(b"\n]}\n").and_then(|()| file.finish());
            written.map_err(|error| not_written(&path, &error))?;
        }
        if let Some(mut page) = page.take() {
            let path = page.path().to_path_buf();
            let written = page.write_all(html(&proof, first, *count).as_bytes()).and_then(|()| page.finish());
            written.map_err(|error| not_written(&path, &error))?;
        }
        Ok(())
    }

    /// Has the differences that wait signed, and writes the proof.
    fn sign(&self, state: &mut State, results: Option<&Value>) -> Result<Value, Failure> {
        let mut report = self.heading.clone();
        report["part"] = (state.parts + 1).into();
        report["differences"] = std::mem::take(&mut state.waiting).into();
        if let Some(results) = results {
            report["parts"] = (state.parts + 1).into();
            report["results"] = results.clone();
        }
        let request = Request::post("/api/v1/verify/imports").json(&json!({"report": report}));
        let proof = self.client.call(&request)?["proof"].take();
        if let Some(file) = &mut state.file {
            let before = if state.parts == 0 { "{\"proofs\": [\n" } else { ",\n" };
            let written = write!(file, "{before}{proof}");
            written.map_err(|error| not_written(file.path(), &error))?;
        }
        state.parts += 1;
        Ok(proof)
    }
}

fn not_written(path: &Path, error: &std::io::Error) -> Failure {
    format!("the report could not be written to {}: {error}", path.display()).into()
}

/// The report as a page for people.
fn html(proof: &Value, first: &[Difference], count: u64) -> String {
    let payload = &proof["payload"];
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut page = String::from(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Import report</title>\
         <style>body{font:16px sans-serif;margin:2rem;max-width:80rem}table{border-collapse:collapse}\
         td,th{border:1px solid #999;padding:.2rem .5rem;text-align:left;overflow-wrap:anywhere}</style>",
    );
    let verdict =
        if count == 0 { "All versions are equal".to_owned() } else { format!("{count} differences") };
    page += &format!(
        "<h1>{verdict}</h1><p>Import from {} into the store {}.</p>",
        escaped(&text(&payload["source"])),
        escaped(&text(&payload["store_id"]))
    );
    page += "<table><tr>";
    const COLUMNS: [&str; 7] =
        ["bucket", "versions", "delete_markers", "bytes", "read_bytes", "written_here", "differences"];
    for column in COLUMNS {
        page += &format!("<th>{}</th>", column.replace('_', " "));
    }
    page += "</tr>";
    for bucket in payload["results"]["buckets"].as_array().into_iter().flatten() {
        page += "<tr>";
        for column in COLUMNS {
            page += &format!("<td>{}</td>", escaped(&text(&bucket[column])));
        }
        page += "</tr>";
    }
    page += "</table>";
    if !first.is_empty() {
        page += "<h2>Differences</h2><table><tr><th>bucket</th><th>key</th><th>version</th><th>kind</th><th>source</th><th>here</th></tr>";
        for Difference { bucket, key, version_id, kind, source, here } in first {
            page += "<tr>";
            for cell in [bucket, key, version_id, &(*kind).to_owned(), source, here] {
                page += &format!("<td>{}</td>", escaped(cell));
            }
            page += "</tr>";
        }
        page += "</table>";
    }
    let signed = [
        ("signed", &payload["signed_at"]),
        ("public key", &proof["public_key"]),
        ("signature", &proof["signature"]),
    ];
    page += "<h2>Signature</h2><p>The file with the ending .json beside this page is signed: <code>cairn verify proof</code> checks it.</p><table>";
    for (name, value) in signed {
        page += &format!("<tr><th>{name}</th><td>{}</td></tr>", escaped(&text(value)));
    }
    page + "</table></html>\n"
}

fn escaped(text: &str) -> String {
    plain(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
