//! Lines of the lists that a salvage writes.

use cairn_engine::{SalvageLoss, SalvagedVersion};
use cairn_http1::iso8601_millis;
use serde_json::{Map, Value, json};

/// Returns the line about a version. `file` is its path below the folder.
pub(super) fn of_version(version: &SalvagedVersion, file: Option<&str>) -> Value {
    let info = &version.info;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let headers: Map<_, _> =
        info.attributes.headers.iter().map(|(name, value)| (name.clone(), json!(text(value)))).collect();
    let tags: Map<_, _> =
        info.attributes.tags.iter().map(|(name, value)| (name.to_owned(), json!(value))).collect();
    let mut line = json!({
        "bucket": version.bucket,
        "key": text(&version.key),
        "version_id": info.version_name().to_string(),
        "last_modified": iso8601_millis(info.last_modified.0),
        "is_latest": version.is_latest,
        "certain": version.is_certain,
        "delete_marker": version.is_delete_marker,
        "file": file,
    });
    if !version.is_delete_marker {
        line["etag"] = json!(info.etag.to_string());
        line["size"] = json!(info.size);
        line["headers"] = Value::Object(headers);
        line["tags"] = Value::Object(tags);
    }
    line
}

/// Returns the loss of a version whose content is damaged.
pub(super) fn loss_of(version: &SalvagedVersion, reason: String) -> SalvageLoss {
    SalvageLoss {
        bucket: Some(version.bucket.clone()),
        key: Some(version.key.clone()),
        version: Some(version.info.version_name().to_string()),
        reason,
        ..SalvageLoss::default()
    }
}

/// Returns the line about a loss.
pub(super) fn of_loss(loss: &SalvageLoss) -> Value {
    let mut line = Map::new();
    let mut add = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            line.insert(name.to_owned(), value);
        }
    };
    add("slice", loss.slice.map(Value::from));
    add("bucket", loss.bucket.clone().map(Value::from));
    add("key", loss.key.as_deref().map(|key| json!(String::from_utf8_lossy(key))));
    add("version_id", loss.version.clone().map(Value::from));
    add("from", loss.range.as_ref().map(|(from, _)| json!(hex::encode(from))));
    add("to", loss.range.as_ref().map(|(_, to)| json!(to.as_deref().map(hex::encode))));
    add("reason", Some(json!(loss.reason)));
    Value::Object(line)
}
