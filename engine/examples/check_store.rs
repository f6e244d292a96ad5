//! Checks a stopped store: inspects its metadata, and reads and checks every payload.
//!
//! `check_store <data-dir>`, with the master key in `SERVICE_CREDENTIAL_MASTER_KEY`. Prints one line of JSON and exits with 1
//! when something is wrong.

use cairn_engine::limits::UNIT_BYTES;
use cairn_engine::{Engine, Finding, ListVersions, Store, StoreOptions, VersionPosition};
use cairn_fixtures::on_executor;
use cairn_model::{ObjectKey, VersionName};
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]
fn main() -> ExitCode {
    let folder = std::env::args_os().nth(1);
    let key = std::env::var("SERVICE_CREDENTIAL_MASTER_KEY");
    let (Some(folder), Ok(key)) = (folder, key) else {
        eprintln!("usage: SERVICE_CREDENTIAL_MASTER_KEY=... check_store <data-dir>");
        return ExitCode::from(2);
    };
    let options = StoreOptions::new(folder.into(), key.into_bytes().into());
    let store = match Store::open(options) {
        Ok(store) => store,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let inspection = match store.inspect(u64::MAX) {
        Ok(inspection) => inspection,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let opened = Arc::clone(&store);
    let damaged = on_executor(move || async move {
        match Engine::open(opened).await {
            Ok(engine) => read_all(&engine).await,
            Err(error) => vec![error.to_string()],
        }
    });
    store.close();
    let report = serde_json::json!({
        "objects": inspection.usage.objects,
        "bytes": inspection.usage.bytes,
        "owned_units": inspection.owned_bytes / UNIT_BYTES,
        "orphaned_units": inspection.orphaned_bytes / UNIT_BYTES,
        "inconsistencies": inspection.findings.len() as u64 + inspection.findings_omitted,
        "findings": inspection.findings.iter().map(describe).collect::<Vec<_>>(),
        "damaged": damaged,
    });
    println!("{report}");
    let is_sound = inspection.complete && inspection.is_clean() && damaged.is_empty();
    if is_sound { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Describes a finding in one line.
fn describe(finding: &Finding) -> String {
    let name = |part: &Option<String>| part.as_ref().map_or(String::new(), |part| format!(" {part}"));
    format!("{}{}{}: {}", finding.kind.name(), name(&finding.bucket), name(&finding.key), finding.detail)
}

/// Reads every version of every object; returns descriptions of those that fail.
async fn read_all(engine: &Rc<Engine>) -> Vec<String> {
    let mut damaged = Vec::new();
    for bucket in engine.store().buckets() {
        let mut after: Option<VersionPosition> = None;
        loop {
            let list = ListVersions { prefix: b"", delimiter: None, after: after.take(), max: 1000 };
            let page = match engine.list_versions(&bucket, &list) {
                Ok(page) => page,
                Err(error) => {
                    damaged.push(format!("list of {}: {error}", bucket.name));
                    break;
                }
            };
            for listed in page.versions.iter().filter(|listed| !listed.is_delete_marker) {
                let Ok(key) = ObjectKey::parse(&listed.object.key) else { continue };
                if let Err(error) = read_one(engine, &bucket, &key, listed.name).await {
                    damaged.push(format!("{}/{key} {}: {error}", bucket.name, listed.name));
                }
            }
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
    }
    damaged
}

async fn read_one(
    engine: &Rc<Engine>,
    bucket: &Arc<cairn_engine::Bucket>,
    key: &ObjectKey,
    version: VersionName,
) -> Result<(), cairn_engine::EngineError> {
    let mut reader = engine.open_whole(bucket, key, Some(version))?.read();
    while reader.next().await?.is_some() {}
    Ok(())
}
