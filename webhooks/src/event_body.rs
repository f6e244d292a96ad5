//! The JSON form of a storage event, in lists and deliveries.
//!
//! Members have a fixed order, and members of `metadata` that do not apply are absent. So an event has the same bytes in every
//! attempt to deliver it.

use cairn_api::EventMetadata;
use cairn_engine::{EventType, StorageEvent};

/// The reason of removals by lifecycle rules.
const REASON_LIFECYCLE: &str = "lifecycle";

/// Returns the form of an event, as clients and receivers read it.
#[must_use]
pub fn event_body(event: &StorageEvent) -> cairn_api::StorageEvent {
    let object = event.object.as_ref();
    let is_marker = object.is_some_and(|object| object.is_delete_marker);
    let has_marker = matches!(event.kind, EventType::ObjectDeleted | EventType::ObjectRestored);
    let known = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    cairn_api::StorageEvent {
        id: event.id.to_string().into(),
        kind: event.kind.name().into(),
        time: event.time().into(),
        bucket: event.bucket.clone(),
        object: object.map(|object| object.key.clone()),
        version_id: object.map(|object| object.version.map(|version| version.to_string())),
        size: object.map(|object| object.size),
        metadata: EventMetadata {
            etag: object.and_then(|object| object.etag).map(|etag| etag.to_string()),
            content_type: object.and_then(|object| object.content_type.clone()),
            principal: known(&event.principal),
            request_id: known(&event.request_id),
            sequencer: format!("{:016x}", event.id.tick().0),
            delete_marker: (is_marker && has_marker).then_some(true),
            reason: event.lifecycle_rule.as_ref().map(|_| REASON_LIFECYCLE.into()),
            rule_id: event.lifecycle_rule.clone(),
            test: None,
        },
    }
}

/// Returns the JSON text of an event.
pub(crate) fn event_json(event: &StorageEvent) -> Vec<u8> {
    to_json(&event_body(event))
}

/// Returns the JSON text of an event that only tests a webhook.
pub(crate) fn test_event_json(event: &StorageEvent) -> Vec<u8> {
    let mut body = event_body(event);
    body.metadata.test = Some(true);
    to_json(&body)
}

fn to_json(body: &cairn_api::StorageEvent) -> Vec<u8> {
    serde_json::to_vec(body).expect("texts and numbers always have a JSON form")
}

#[cfg(test)]
mod tests {
    use super::{event_json, test_event_json};
    use cairn_engine::{EventId, EventType, ObjectOfEvent, StorageEvent, Tick};
    use cairn_model::{Etag, VersionId, VersionName};

    const TICK: Tick = Tick(1_767_225_600_123 << 12 | 0xABC);

    fn object(version: Option<VersionName>) -> ObjectOfEvent {
        ObjectOfEvent {
            key: "2026/\"é\".jpg".to_owned(),
            version,
            size: 7,
            is_delete_marker: false,
            etag: None,
            content_type: None,
        }
    }

    fn event(kind: EventType, object: Option<ObjectOfEvent>) -> StorageEvent {
        StorageEvent {
            id: EventId::new(TICK, &[7; 16]),
            kind,
            bucket: "photos".to_owned(),
            object,
            principal: String::new(),
            request_id: String::new(),
            lifecycle_rule: None,
        }
    }

    fn text(event: &StorageEvent) -> String {
        String::from_utf8(event_json(event)).expect("UTF-8")
    }

    const ID_AND_TYPE: &str = r#"{"id":"019b76da-a87b-7abc-8707-070707070707","type":"#;
    const REST: &str = r#""time":"2026-01-01T00:00:00.123Z","bucket":"photos","#;

    /// Receivers rely on these forms.
    #[test]
    fn members_have_their_order_and_are_absent_when_they_do_not_apply() {
        let of_bucket = text(&event(EventType::BucketCreated, None));
        let expected =
            format!(r#"{ID_AND_TYPE}"bucket.created",{REST}"metadata":{{"sequencer":"{:016x}"}}}}"#, TICK.0);
        assert_eq!(of_bucket, expected);

        let mut created = object(Some(VersionName::Id(VersionId(10))));
        created.etag = Some(Etag { md5: [0xAB; 16], parts: 2 });
        created.content_type = Some("image/jpeg".to_owned());
        let mut created = event(EventType::ObjectCreated, Some(created));
        created.principal = "web".to_owned();
        created.request_id = "r1".to_owned();
        let expected = format!(
            concat!(
                r#"{}"object.created",{}"object":"2026/\"é\".jpg","version_id":"000000000000000a","size":7,"#,
                r#""metadata":{{"etag":"{}-2","content_type":"image/jpeg","principal":"web","request_id":"r1","#,
                r#""sequencer":"{:016x}"}}}}"#
            ),
            ID_AND_TYPE,
            REST,
            "ab".repeat(16),
            TICK.0
        );
        assert_eq!(text(&created), expected);
    }

    #[test]
    fn null_versions_and_aborted_uploads_differ() {
        let of_null = text(&event(EventType::ObjectUpdated, Some(object(Some(VersionName::Null)))));
        assert!(of_null.contains(r#""version_id":"null","size":7"#), "{of_null}");
        let aborted = text(&event(EventType::MultipartAborted, Some(object(None))));
        assert!(aborted.contains(r#""version_id":null,"size":7"#), "{aborted}");
    }

    #[test]
    fn removals_by_rules_and_tests_say_so() {
        let mut marker = object(Some(VersionName::Id(VersionId(1))));
        marker.is_delete_marker = true;
        let mut removed = event(EventType::ObjectDeleted, Some(marker));
        removed.lifecycle_rule = Some("rule".to_owned());
        let ending = r#","delete_marker":true,"reason":"lifecycle","rule_id":"rule"}}"#;
        assert!(text(&removed).ends_with(ending), "{}", text(&removed));
        let of_test = String::from_utf8(test_event_json(&removed)).expect("UTF-8");
        assert!(of_test.ends_with(r#""rule_id":"rule","test":true}}"#), "{of_test}");
    }
}
