//! Webhooks from the notifications of an export.
//!
//! The export names a target and not its URL, which is in the configuration of the source. A target of another kind than
//! `webhook` has no counterpart.

use cairn_api::EventType;

use crate::s3::xml::Element;

/// Events of the source that have a counterpart.
const EVENTS: [(&str, &[&str]); 9] = [
    ("s3:ObjectCreated:*", &["object.created", "object.updated"]),
    ("s3:ObjectCreated:Put", &["object.created", "object.updated"]),
    ("s3:ObjectCreated:Post", &["object.created", "object.updated"]),
    ("s3:ObjectCreated:Copy", &["object.created", "object.updated"]),
    ("s3:ObjectCreated:CompleteMultipartUpload", &["multipart.completed"]),
    ("s3:ObjectRemoved:*", &["object.deleted"]),
    ("s3:ObjectRemoved:Delete", &["object.deleted"]),
    ("s3:BucketCreated:*", &["bucket.created"]),
    ("s3:BucketRemoved:*", &["bucket.deleted"]),
];

/// A notification that can become a webhook.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Notification {
    /// The name of the target: the part of its ARN before the kind.
    pub(super) target: String,
    pub(super) events: Vec<&'static str>,
    pub(super) prefix: Option<String>,
}

impl Notification {
    pub(super) fn event_types(&self) -> Vec<EventType> {
        self.events.iter().map(|name| (*name).into()).collect()
    }
}

/// Reads the notifications of a configuration. `lose` gets the reasons for what is left out.
pub(super) fn read(configuration: &Element, lose: &mut dyn FnMut(String)) -> Vec<Notification> {
    let mut found = Vec::new();
    for element in configuration.children() {
        let arn = ["Queue", "Topic", "CloudFunction"].iter().find_map(|name| element.text_of(name));
        let arn = arn.unwrap_or_default().trim();
        let mut lose = |reason: String| lose(format!("the notification to {arn}: {reason}"));
        match read_one(element, arn, &mut lose) {
            Ok(notification) => found.push(notification),
            Err(reason) => lose(reason),
        }
    }
    found
}

fn read_one(element: &Element, arn: &str, lose: &mut dyn FnMut(String)) -> Result<Notification, String> {
    // arn:minio:sqs:<region>:<name>:<kind>
    let parts: Vec<_> = arn.split(':').collect();
    let target = match parts[..] {
        ["arn", "minio", "sqs", _, name, "webhook"] => name.to_owned(),
        _ => return Err("its target is no webhook".to_owned()),
    };
    let mut events = Vec::new();
    for event in element.children().iter().filter(|child| child.name() == "Event") {
        let name = event.text().trim();
        match EVENTS.iter().find(|(known, _)| *known == name) {
            Some((_, here)) => {
                for event in *here {
                    if !events.contains(event) {
                        events.push(*event);
                    }
                }
            }
            None => lose(format!("the event {name} has no counterpart")),
        }
    }
    if events.is_empty() {
        return Err("it has no event with a counterpart".to_owned());
    }
    let mut prefix = None;
    let rules =
        element.child("Filter").and_then(|filter| filter.child("S3Key")).map_or(&[][..], Element::children);
    for rule in rules {
        match (rule.text_of("Name").map(str::trim), rule.text_of("Value")) {
            (Some("prefix"), Some(value)) => {
                prefix = Some(value.to_owned()).filter(|prefix| !prefix.is_empty())
            }
            (_, None | Some("")) => {}
            (name, _) => {
                return Err(format!(
                    "its filter by {} has no counterpart: webhooks select by prefix",
                    name.unwrap_or("?")
                ));
            }
        }
    }
    Ok(Notification { target, events, prefix })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::s3::xml::parse;

    fn read_text(text: &str) -> (Vec<Notification>, Vec<String>) {
        let document = format!("<NotificationConfiguration>{text}</NotificationConfiguration>");
        let mut lost = Vec::new();
        (read(&parse(&document).unwrap(), &mut |reason| lost.push(reason)), lost)
    }

    #[test]
    fn notifications_of_webhooks_are_read() {
        let (found, lost) = read_text(
            "<QueueConfiguration><Id>1</Id><Filter><S3Key><FilterRule><Name>prefix</Name><Value>in/</Value></FilterRule></S3Key></Filter>\
             <Event>s3:ObjectCreated:*</Event><Event>s3:ObjectRemoved:*</Event><Event>s3:ObjectAccessed:Get</Event>\
             <Queue>arn:minio:sqs::shop:webhook</Queue></QueueConfiguration>",
        );
        let expected = Notification {
            target: "shop".to_owned(),
            events: vec!["object.created", "object.updated", "object.deleted"],
            prefix: Some("in/".to_owned()),
        };
        assert_eq!(found, [expected]);
        assert!(lost.len() == 1 && lost[0].contains("s3:ObjectAccessed:Get"), "{lost:?}");
        assert_eq!(read_text(""), (vec![], vec![]));
    }

    #[test]
    fn others_are_left_out_by_name() {
        let with = |arn: &str, rest: &str| {
            read_text(&format!("<QueueConfiguration>{rest}<Queue>{arn}</Queue></QueueConfiguration>"))
        };
        let created = "<Event>s3:ObjectCreated:Put</Event>";
        let suffix =
            "<Filter><S3Key><FilterRule><Name>suffix</Name><Value>.jpg</Value></FilterRule></S3Key></Filter>";
        for (arn, rest, part) in [
            ("arn:minio:sqs::k:kafka", created.to_owned(), "no webhook"),
            ("arn:minio:sqs::k:webhook", format!("{created}{suffix}"), "filter by suffix"),
            ("arn:minio:sqs::k:webhook", String::new(), "no event"),
        ] {
            let (found, lost) = with(arn, &rest);
            assert!(found.is_empty() && lost.last().is_some_and(|reason| reason.contains(part)), "{lost:?}");
        }
    }
}
