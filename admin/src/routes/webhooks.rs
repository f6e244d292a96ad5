//! Routes of webhooks and their deliveries.

use cairn_api::*;

use super::Route;
use super::row::*;
use crate::handlers::webhooks;

pub(super) static ROUTES: &[Route] = &[
    get("/api/v1/webhooks", ALL, "list_webhooks")
        .summary("Lists all webhooks.")
        .answers(&[ok::<WebhookList>()], &[])
        .handler(boxed!(webhooks::list)),
    post("/api/v1/webhooks", SYSTEM, "create_webhook")
        .summary("Creates a webhook. Only this response contains its signing secret.")
        .body(json::<CreateWebhook>())
        .answers(&[created::<NewWebhook>()], &[TARGET, BUCKET_NAME, (409, "EVENTS_DISABLED"), LIMIT])
        .handler(boxed!(webhooks::create)),
    get("/api/v1/webhooks/{id}", ALL, "get_webhook")
        .summary("Shows one webhook and its health.")
        .answers(&[ok::<Webhook>()], &[WEBHOOK])
        .handler(boxed!(webhooks::get)),
    patch("/api/v1/webhooks/{id}", SYSTEM, "update_webhook")
        .summary(
            "Changes the target, the events or the filters of a webhook. A filter that is null is \
             removed.",
        )
        .body(json::<UpdateWebhook>())
        .answers(&[ok::<Webhook>()], &[TARGET, BUCKET_NAME, WEBHOOK])
        .handler(boxed!(webhooks::update)),
    delete("/api/v1/webhooks/{id}", SYSTEM, "delete_webhook")
        .summary("Deletes a webhook with its secret and its pending deliveries.")
        .answers(&[DONE], &[WEBHOOK])
        .handler(boxed!(webhooks::delete)),
    put("/api/v1/webhooks/{id}/status", SYSTEM, "set_webhook_status")
        .summary("Enables or disables a webhook. Disabling drops its pending deliveries.")
        .body(json::<SetStatus>())
        .answers(&[ok::<Webhook>()], &[WEBHOOK])
        .handler(boxed!(webhooks::set_status)),
    post("/api/v1/webhooks/{id}/rotate-secret", SYSTEM, "rotate_webhook_secret")
        .summary("Creates a new signing secret. For a while deliveries are signed with both.")
        .body(optional_json::<RotateSecret>())
        .answers(&[created::<RotatedSecret>()], &[WEBHOOK])
        .handler(boxed!(webhooks::rotate_secret)),
    post("/api/v1/webhooks/{id}/test", SYSTEM, "test_webhook")
        .summary("Sends one signed event for a test, and shows each step.")
        .answers(&[ok::<WebhookTest>()], &[WEBHOOK])
        .handler(boxed!(webhooks::test)),
    post("/api/v1/webhooks/{id}/resume", SYSTEM, "resume_webhook")
        .summary("Sends the deliveries that wait because the target was away.")
        .answers(&[ok::<Webhook>()], &[WEBHOOK, DISABLED])
        .handler(boxed!(webhooks::resume)),
    post("/api/v1/webhooks/{id}/redeliver", SYSTEM, "redeliver_events")
        .summary("Delivers the events of a period again: those whose delivery failed, or all.")
        .body(json::<RedeliverEvents>())
        .answers(&[accepted::<QueuedDeliveries>()], &[WEBHOOK, DISABLED])
        .handler(boxed!(webhooks::redeliver_period)),
    get("/api/v1/webhook-deliveries", ALL, "list_webhook_deliveries")
        .summary("Returns the delivery log, the latest entry first.")
        .query(&[
            optional::<PageLimit>("limit"),
            optional::<EventId>("webhook_id"),
            optional::<EventId>("event_id"),
            optional::<DeliveryStatus>("status"),
            optional::<bool>("lost"),
            optional::<bool>("details"),
            optional::<Time>("after_time"),
            optional::<Id>("after_id"),
        ])
        .answers(&[ok::<DeliveryPage>()], &[(400, "INVALID_EVENT_CURSOR")])
        .handler(boxed!(webhooks::list_deliveries)),
    post("/api/v1/webhook-deliveries/{id}/redeliver", SYSTEM, "redeliver_delivery")
        .summary("Delivers the event of one delivery again.")
        .answers(&[accepted::<Delivery>()], &[(404, "DELIVERY_NOT_FOUND"), DISABLED])
        .handler(boxed!(webhooks::redeliver_delivery)),
];
