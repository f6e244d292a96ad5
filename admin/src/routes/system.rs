//! Routes of the system: health, metrics, and what needs attention.

use cairn_api::*;

use super::Route;
use super::row::*;
use crate::call::Call;
use crate::error::AdminError;
use crate::handlers::{attention, metrics, openapi, system};
use crate::operation::{Access, MemberAccess};
use crate::reply::Reply;

/// `GET /api/v1/openapi.json`: needs the table that it is a row of.
async fn openapi_document(_: Call<'_, '_>) -> Result<Reply, AdminError> {
    Ok(openapi::document(super::described()))
}

pub(super) static ROUTES: &[Route] = &[
    get("/health", Access::Public, "get_health")
        .summary("Whether the process accepts connections.")
        .answers(&[ok::<Health>()], &[])
        .any_query()
        .handler(boxed!(system::health)),
    get("/ready", Access::Public, "get_readiness")
        .summary("Whether every subsystem is ready.")
        .answers(&[ok::<Readiness>(), success::<Readiness>(503, "A subsystem is not ready.")], &[])
        .any_query()
        .handler(boxed!(system::ready)),
    get("/metrics", Access::Scraper, "scrape_metrics")
        .summary("Returns the metrics in the text format of Prometheus.")
        .answers(&[METRICS], &[])
        .any_query()
        .handler(boxed!(metrics::text)),
    get("/api/v1/openapi.json", ALL, "get_openapi")
        .summary("Returns this document.")
        .answers(&[ok::<OpenApiDocument>()], &[])
        .handler(boxed!(openapi_document)),
    get("/api/v1/system/info", ALL, "get_system_info")
        .summary("Shows version and capabilities.")
        .answers(&[ok::<SystemInfo>()], &[])
        .handler(boxed!(system::system_info)),
    get("/api/v1/system/metrics", ALL, "get_metrics")
        .summary("Returns the metrics as JSON.")
        .answers(&[ok::<Metrics>()], &[])
        .handler(boxed!(metrics::json)),
    get("/api/v1/system/metrics/history", ALL, "get_metric_history")
        .summary("Returns requests, latency and space over the last hour, day or month.")
        .query(&[optional::<HistoryPeriod>("period")])
        .answers(&[ok::<MetricHistory>()], &[])
        .handler(boxed!(metrics::history)),
    get("/api/v1/auth/session", ALL, "get_session")
        .summary("Role of the credential.")
        .answers(&[ok::<Session>()], &[])
        .open_to_members(MemberAccess::Session)
        .handler(boxed!(system::session)),
    get("/api/v1/attention", ALL, "get_attention")
        .summary("Shows what was dismissed, when backups were made, and when certificates expire.")
        .answers(&[ok::<Attention>()], &[])
        .handler(boxed!(attention::get)),
    post("/api/v1/attention/dismissals", STORAGE, "dismiss_attention")
        .summary(
            "Dismisses something that needs attention for at most a day, or with 0 seconds shows \
             it again.",
        )
        .body(json::<DismissAttention>())
        .answers(&[ok::<DismissedAttention>()], &[])
        .handler(boxed!(attention::dismiss)),
];
