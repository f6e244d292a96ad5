//! Compares webhooks with the file. Target, bucket and prefix tell them apart.

use cairn_api::{CreateWebhook, EventType, SetStatus, UpdateWebhook, Webhook};
use serde_json::{Value, json};

use crate::client::Request;
use crate::commands::apply::change::{Action, Change, Member, Step};
use crate::commands::apply::source::Problems;
use crate::commands::apply::state::State;
use crate::commands::apply::wanted::WantedWebhook;
use crate::commands::resources::WEBHOOKS;

/// Returns whether a webhook on the server is the one in the file.
pub(super) fn is_same(wanted: &WantedWebhook, webhook: &Webhook) -> bool {
    *webhook.target_url == *wanted.target_url
        && webhook.bucket_filter.as_deref() == wanted.bucket_filter.as_deref()
        && webhook.object_prefix_filter.as_deref() == wanted.object_prefix_filter.as_deref()
}

/// Returns what has to change for a webhook to be as the file says; `None` if it is.
pub(super) fn change(wanted: &WantedWebhook, state: &State, problems: &Problems) -> Option<Change> {
    let found: Vec<&Webhook> =
        state.webhooks.webhooks.iter().filter(|webhook| is_same(wanted, webhook)).collect();
    match found[..] {
        [] => {
            if !state.events {
                problems
                    .add(&wanted.place, "a webhook needs events, and events.enabled is false on the server");
            }
            Some(creation(wanted))
        }
        [existing] => {
            let change = existing_webhook(wanted, existing);
            (!change.steps.is_empty()).then_some(change)
        }
        _ => {
            let ids: Vec<&str> = found.iter().map(|webhook| &*webhook.id).collect();
            problems.add(&wanted.place, format_args!(
                "the server has {} webhooks with this target and these filters, so it is unclear which is meant: {}",
                ids.len(),
                ids.join(", ")
            ));
            None
        }
    }
}

fn typed(types: &[String]) -> Vec<EventType> {
    types.iter().cloned().map(EventType::from).collect()
}

fn creation(wanted: &WantedWebhook) -> Change {
    let name =
        shown(&wanted.target_url, wanted.bucket_filter.as_deref(), wanted.object_prefix_filter.as_deref());
    let mut change = Change::new(Action::Create, "webhook", name);
    change.members.push(Member::new("event_types", Value::Null, wanted.event_types.clone()));
    if wanted.enabled == Some(false) {
        change.members.push(Member::new("enabled", Value::Null, false));
    }
    let request = CreateWebhook {
        target_url: wanted.target_url.clone().into(),
        event_types: typed(&wanted.event_types),
        bucket_filter: wanted.bucket_filter.clone().map(Into::into),
        object_prefix_filter: wanted.object_prefix_filter.clone().map(Into::into),
        enabled: wanted.enabled.unwrap_or(true),
    };
    change.steps.push(("the webhook", Step::CreateWebhook(request)));
    change
}

/// Names a webhook on the server.
pub(super) fn name_of(webhook: &Webhook) -> String {
    shown(&webhook.target_url, webhook.bucket_filter.as_deref(), webhook.object_prefix_filter.as_deref())
}

fn existing_webhook(wanted: &WantedWebhook, existing: &Webhook) -> Change {
    let mut change = Change::new(Action::Change, "webhook", name_of(existing));
    let path = WEBHOOKS.path_of(&existing.id);
    let mut before: Vec<&str> = existing.event_types.iter().map(|kind| &**kind).collect();
    before.sort_unstable();
    if before != wanted.event_types {
        let update =
            UpdateWebhook { event_types: Some(typed(&wanted.event_types)), ..UpdateWebhook::default() };
        let step = Step::Send(Request::patch(path.as_str()).json(&update));
        change.set(Member::new("event_types", before, json!(wanted.event_types)), step);
    }
    if let Some(enabled) = wanted.enabled.filter(|enabled| *enabled != existing.enabled) {
        let step = Step::Send(Request::put(path + "/status").json(&SetStatus { enabled }));
        change.set(Member::new("enabled", existing.enabled, enabled), step);
    }
    change
}

/// Returns the deletion of a webhook that is not in the file.
pub(super) fn deletion(webhook: &Webhook) -> Change {
    let mut change = Change::new(Action::Delete, "webhook", name_of(webhook));
    let types: Vec<&str> = webhook.event_types.iter().map(|kind| &**kind).collect();
    change.members.push(Member::new("event_types", types, Value::Null));
    change.steps.push(("the webhook", Step::Send(Request::delete(WEBHOOKS.path_of(&webhook.id)))));
    change
}

/// Names a webhook. Path and query of a target may contain secrets of the receiver.
fn shown(target: &str, bucket: Option<&str>, prefix: Option<&str>) -> String {
    let host = target.find("://").map_or(0, |scheme| scheme + "://".len());
    let end = target[host..].find(['/', '?']).map_or(target.len(), |length| host + length);
    let mut name = target[..end].to_owned();
    if !matches!(&target[end..], "" | "/") {
        name.push_str("/…");
    }
    let filters =
        [bucket.map(|bucket| format!("bucket {bucket}")), prefix.map(|prefix| format!("prefix {prefix}"))];
    let filters: Vec<String> = filters.into_iter().flatten().collect();
    if filters.is_empty() { name } else { format!("{name} ({})", filters.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn a_webhook_is_named_without_the_secrets_of_its_target() {
        for (target, expected) in [
            ("https://a.example", "https://a.example"),
            ("https://a.example/", "https://a.example"),
            ("https://a.example:8443/token/x?key=y", "https://a.example:8443/…"),
            ("https://a.example?key=y", "https://a.example/…"),
        ] {
            assert_eq!(shown(target, None, None), expected);
        }
        assert_eq!(
            shown("https://a.example", Some("photos"), Some("x/")),
            "https://a.example (bucket photos, prefix x/)"
        );
    }
}
