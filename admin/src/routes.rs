//! The table of routes: method, path, permission, operation name, handler. A route exists only if it is a row of it.

use std::future::Future;
use std::pin::Pin;

use cairn_identity::Role;
use cairn_observe::AuditKind;
use cairn_sharing::{Embed, Share};
use http::Method;

use crate::call::Call;
use crate::error::AdminError;
use crate::handlers::{
    access, accounts, attention, audit_events, backup, bucket_tags, buckets, compaction, console, cors,
    credentials, events, imports, lifecycle, links, metrics, object_lock, objects, openapi, policies,
    public_access, refused_requests, storage, system, tokens, verify, webhooks,
};
use crate::operation::{Access, Operation};
use crate::reply::Reply;
use crate::request::path::{Segments, match_path};

/// All roles.
const ALL: Access = Access::Roles(&[Role::SystemAdmin, Role::StorageAdmin, Role::Auditor]);
/// Operations that change stored data, or read the content of objects.
const STORAGE: Access = Access::Roles(&[Role::SystemAdmin, Role::StorageAdmin]);
/// Operations that change service accounts, policies, tokens and webhooks.
const SYSTEM: Access = Access::Roles(&[Role::SystemAdmin]);
/// Operations that show service accounts, policies and audit events.
const OVERSIGHT: Access = Access::Roles(&[Role::SystemAdmin, Role::Auditor]);

/// Answers the requests of a route.
pub(crate) type Handler =
    for<'a, 'b> fn(Call<'a, 'b>) -> Pin<Box<dyn Future<Output = Result<Reply, AdminError>> + 'a>>;

/// One route.
pub(crate) struct Route {
    pub(crate) operation: Operation,
    pub(crate) handler: Handler,
}

/// Makes a handler of an async function.
macro_rules! handler {
    ($function:path) => {
        |call| Box::pin($function(call))
    };
}

const fn route(
    method: Method,
    path: &'static str,
    access: Access,
    name: &'static str,
    recorded_as: Option<AuditKind>,
    handler: Handler,
) -> Route {
    Route { operation: Operation { name, method, path, access, recorded_as }, handler }
}

const fn get(path: &'static str, access: Access, name: &'static str, handler: Handler) -> Route {
    route(Method::GET, path, access, name, None, handler)
}

const fn post(path: &'static str, access: Access, name: &'static str, handler: Handler) -> Route {
    route(Method::POST, path, access, name, Some(AuditKind::Change), handler)
}

const fn put(path: &'static str, access: Access, name: &'static str, handler: Handler) -> Route {
    route(Method::PUT, path, access, name, Some(AuditKind::Change), handler)
}

const fn patch(path: &'static str, access: Access, name: &'static str, handler: Handler) -> Route {
    route(Method::PATCH, path, access, name, Some(AuditKind::Change), handler)
}

const fn delete(path: &'static str, access: Access, name: &'static str, handler: Handler) -> Route {
    route(Method::DELETE, path, access, name, Some(AuditKind::Change), handler)
}

impl Route {
    const fn recorded_as(mut self, kind: Option<AuditKind>) -> Self {
        self.operation.recorded_as = kind;
        self
    }

    /// Returns the route without audit records, for a POST that changes nothing.
    const fn unrecorded(self) -> Self {
        self.recorded_as(None)
    }

    /// Returns the route as one that discloses a secret, or ends a session.
    const fn access(self) -> Self {
        self.recorded_as(Some(AuditKind::Access))
    }

    /// Returns the route as one that changes an object or an upload.
    const fn object_change(self) -> Self {
        self.recorded_as(Some(AuditKind::ObjectChange))
    }

    /// Returns the route as one that reads objects or lists them.
    const fn data_read(self) -> Self {
        self.recorded_as(Some(AuditKind::Read))
    }
}

/// `GET /api/v1/openapi.json`: needs the table that it is a row of.
async fn openapi_document(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let own = ROUTES.iter().map(|route| &route.operation);
    openapi::document(&call, own.chain(openapi::PUBLIC_OPERATIONS))
}

/// All routes of the management plane.
pub(crate) static ROUTES: &[Route] = &[
    get("/health", Access::Public, "get_health", handler!(system::health)),
    get("/ready", Access::Public, "get_readiness", handler!(system::ready)),
    get("/metrics", Access::Scraper, "scrape_metrics", handler!(metrics::text)),
    get("/api/v1/openapi.json", ALL, "get_openapi", handler!(openapi_document)),
    get("/api/v1/system/info", ALL, "get_system_info", handler!(system::system_info)),
    get("/api/v1/system/metrics", ALL, "get_metrics", handler!(metrics::json)),
    get("/api/v1/system/metrics/history", ALL, "get_metric_history", handler!(metrics::history)),
    get("/api/v1/auth/session", ALL, "get_session", handler!(system::session)),
    get("/api/v1/buckets", ALL, "list_buckets", handler!(buckets::list)),
    post("/api/v1/buckets", STORAGE, "create_bucket", handler!(buckets::create)),
    get("/api/v1/buckets/{bucket}", ALL, "get_bucket", handler!(buckets::get)),
    get("/api/v1/buckets/{bucket}/contents", ALL, "get_bucket_contents", handler!(buckets::contents)),
    delete("/api/v1/buckets/{bucket}", STORAGE, "delete_bucket", handler!(buckets::delete)),
    get("/api/v1/buckets/{bucket}/versioning", ALL, "get_versioning", handler!(buckets::versioning)),
    put("/api/v1/buckets/{bucket}/versioning", STORAGE, "set_versioning", handler!(buckets::set_versioning)),
    put("/api/v1/buckets/{bucket}/quota", STORAGE, "set_quota", handler!(buckets::set_quota)),
    get("/api/v1/buckets/{bucket}/cors", ALL, "get_cors", handler!(cors::get)),
    put("/api/v1/buckets/{bucket}/cors", STORAGE, "set_cors", handler!(cors::set)),
    delete("/api/v1/buckets/{bucket}/cors", STORAGE, "delete_cors", handler!(cors::delete)),
    get("/api/v1/buckets/{bucket}/tags", ALL, "get_bucket_tags", handler!(bucket_tags::get)),
    put("/api/v1/buckets/{bucket}/tags", STORAGE, "set_bucket_tags", handler!(bucket_tags::set)),
    get("/api/v1/buckets/{bucket}/public-access", ALL, "get_public_access", handler!(public_access::get)),
    put("/api/v1/buckets/{bucket}/public-access", STORAGE, "set_public_access", handler!(public_access::set)),
    get("/api/v1/public-access", ALL, "list_public_access", handler!(public_access::list)),
    get("/api/v1/buckets/{bucket}/object-lock", ALL, "get_object_lock", handler!(object_lock::get)),
    put("/api/v1/buckets/{bucket}/object-lock", STORAGE, "set_object_lock", handler!(object_lock::set)),
    get("/api/v1/buckets/{bucket}/lifecycle", ALL, "list_lifecycle_rules", handler!(lifecycle::list)),
    post("/api/v1/buckets/{bucket}/lifecycle", STORAGE, "create_lifecycle_rule", handler!(lifecycle::create)),
    post(
        "/api/v1/buckets/{bucket}/lifecycle/preview",
        STORAGE,
        "preview_lifecycle_rule",
        handler!(lifecycle::preview),
    )
    .unrecorded(),
    put(
        "/api/v1/buckets/{bucket}/lifecycle/{rule_id}",
        STORAGE,
        "replace_lifecycle_rule",
        handler!(lifecycle::replace),
    ),
    delete("/api/v1/lifecycle-rules/{id}", STORAGE, "delete_lifecycle_rule", handler!(lifecycle::delete)),
    get("/api/v1/lifecycle/status", ALL, "get_lifecycle_status", handler!(lifecycle::status)),
    post("/api/v1/lifecycle/resume", STORAGE, "resume_lifecycle", handler!(lifecycle::resume)),
    get("/api/v1/buckets/{bucket}/objects", ALL, "list_objects", handler!(objects::list)).data_read(),
    get("/api/v1/buckets/{bucket}/object/{key}", ALL, "get_object", handler!(objects::metadata)).data_read(),
    put("/api/v1/buckets/{bucket}/object/{key}", STORAGE, "upload_object", handler!(objects::put))
        .object_change(),
    delete("/api/v1/buckets/{bucket}/object/{key}", STORAGE, "delete_object", handler!(objects::delete))
        .object_change(),
    get(
        "/api/v1/buckets/{bucket}/object-content/{key}",
        STORAGE,
        "download_object",
        handler!(objects::content),
    )
    .data_read(),
    get(
        "/api/v1/buckets/{bucket}/object-preview/{key}",
        STORAGE,
        "preview_object",
        handler!(objects::preview),
    )
    .data_read(),
    get(
        "/api/v1/buckets/{bucket}/object-versions",
        ALL,
        "list_object_versions",
        handler!(objects::list_versions),
    )
    .data_read(),
    delete(
        "/api/v1/buckets/{bucket}/object-versions/{key}",
        STORAGE,
        "delete_object_version",
        handler!(objects::delete_version),
    )
    .object_change(),
    put(
        "/api/v1/buckets/{bucket}/object-retention/{key}",
        STORAGE,
        "set_object_retention",
        handler!(objects::set_retention),
    ),
    put(
        "/api/v1/buckets/{bucket}/object-legal-hold/{key}",
        STORAGE,
        "set_object_legal_hold",
        handler!(objects::set_legal_hold),
    ),
    put(
        "/api/v1/buckets/{bucket}/object-tags/{key}",
        STORAGE,
        "set_object_tags",
        handler!(objects::set_tags),
    )
    .object_change(),
    put(
        "/api/v1/buckets/{bucket}/object-metadata/{key}",
        STORAGE,
        "set_object_metadata",
        handler!(objects::set_metadata),
    )
    .object_change(),
    get(
        "/api/v1/buckets/{bucket}/multipart-uploads",
        ALL,
        "list_multipart_uploads",
        handler!(objects::list_uploads),
    ),
    delete(
        "/api/v1/buckets/{bucket}/multipart-uploads/{key}",
        STORAGE,
        "abort_multipart_upload",
        handler!(objects::abort_upload),
    )
    .object_change(),
    post("/api/v1/buckets/{bucket}/object-copy/{key}", STORAGE, "copy_object", handler!(objects::copy))
        .object_change(),
    post(
        "/api/v1/buckets/{bucket}/object-move/{key}",
        STORAGE,
        "move_object",
        handler!(objects::move_object),
    )
    .object_change(),
    get("/api/v1/buckets/{bucket}/archive", STORAGE, "download_archive", handler!(objects::archive_prefix))
        .data_read(),
    post("/api/v1/buckets/{bucket}/archive", STORAGE, "download_objects", handler!(objects::archive_keys))
        .data_read(),
    post("/api/v1/buckets/{bucket}/imports", SYSTEM, "begin_import", handler!(imports::begin)),
    post("/api/v1/buckets/{bucket}/imported-objects", SYSTEM, "import_objects", handler!(imports::put_batch))
        .unrecorded(),
    put("/api/v1/buckets/{bucket}/imported-objects/{key}", SYSTEM, "import_object", handler!(imports::put))
        .unrecorded(),
    patch(
        "/api/v1/buckets/{bucket}/imported-objects/{key}",
        SYSTEM,
        "change_imported_object",
        handler!(imports::change),
    )
    .unrecorded(),
    post(
        "/api/v1/buckets/{bucket}/imported-uploads/{key}",
        SYSTEM,
        "begin_imported_upload",
        handler!(imports::begin_upload),
    )
    .unrecorded(),
    put(
        "/api/v1/buckets/{bucket}/imported-uploads/{key}",
        SYSTEM,
        "import_part",
        handler!(imports::put_part),
    )
    .unrecorded(),
    get("/api/v1/imports", ALL, "list_imports", handler!(imports::list)),
    get("/api/v1/imports/{id}", ALL, "get_import", handler!(imports::get)),
    post("/api/v1/imports/{id}/pause", SYSTEM, "pause_import", handler!(imports::pause)),
    post("/api/v1/imports/{id}/resume", SYSTEM, "resume_import", handler!(imports::resume)),
    get("/api/v1/buckets/{bucket}/changes", ALL, "count_changes", handler!(objects::changes::of_bucket))
        .data_read(),
    get("/api/v1/buckets/{bucket}/find", ALL, "find_objects", handler!(objects::find)).data_read(),
    get("/api/v1/buckets/{bucket}/folder-usage", ALL, "get_folder_usage", handler!(objects::folder_usage))
        .data_read(),
    get(
        "/api/v1/buckets/{bucket}/object-history/{key}",
        ALL,
        "get_object_history",
        handler!(objects::history),
    )
    .data_read(),
    get(
        "/api/v1/buckets/{bucket}/deleted-objects",
        ALL,
        "list_deleted_objects",
        handler!(objects::list_deleted),
    )
    .data_read(),
    post("/api/v1/buckets/{bucket}/delete", STORAGE, "delete_objects", handler!(objects::delete_objects)),
    post("/api/v1/buckets/{bucket}/undelete", STORAGE, "undelete_objects", handler!(objects::undelete)),
    post("/api/v1/buckets/{bucket}/restore", STORAGE, "restore_bucket", handler!(objects::restore_bucket)),
    post("/api/v1/restore/{bucket}/{key}", STORAGE, "restore_object", handler!(objects::restore))
        .object_change(),
    get(
        "/api/v1/buckets/{bucket}/object-shares/{key}",
        ALL,
        "list_object_shares",
        handler!(links::list_of_object::<Share>),
    ),
    post(
        "/api/v1/buckets/{bucket}/object-shares/{key}",
        STORAGE,
        "create_share",
        handler!(links::shares::create),
    ),
    get("/api/v1/shares", ALL, "list_shares", handler!(links::list::<Share>)),
    get("/api/v1/shares/{id}", ALL, "get_share", handler!(links::get::<Share>)),
    patch("/api/v1/shares/{id}", STORAGE, "update_share", handler!(links::shares::update)),
    delete("/api/v1/shares/{id}", STORAGE, "delete_share", handler!(links::delete::<Share>)),
    get("/api/v1/shares/{id}/url", STORAGE, "get_share_url", handler!(links::url::<Share>)).access(),
    post("/api/v1/shares/{id}/revoke", STORAGE, "revoke_share", handler!(links::revoke::<Share>)),
    get(
        "/api/v1/buckets/{bucket}/object-embeds/{key}",
        ALL,
        "list_object_embeds",
        handler!(links::list_of_object::<Embed>),
    ),
    post(
        "/api/v1/buckets/{bucket}/object-embeds/{key}",
        STORAGE,
        "create_embed",
        handler!(links::embeds::create),
    ),
    get("/api/v1/embeds", ALL, "list_embeds", handler!(links::list::<Embed>)),
    get("/api/v1/embeds/{id}", ALL, "get_embed", handler!(links::get::<Embed>)),
    patch("/api/v1/embeds/{id}", STORAGE, "update_embed", handler!(links::embeds::update)),
    delete("/api/v1/embeds/{id}", STORAGE, "delete_embed", handler!(links::delete::<Embed>)),
    get("/api/v1/embeds/{id}/url", STORAGE, "get_embed_url", handler!(links::url::<Embed>)).access(),
    post("/api/v1/embeds/{id}/revoke", STORAGE, "revoke_embed", handler!(links::revoke::<Embed>)),
    get("/api/v1/sharing/settings", ALL, "get_sharing_settings", handler!(links::settings)),
    get("/api/v1/service-accounts", OVERSIGHT, "list_service_accounts", handler!(accounts::list)),
    post("/api/v1/service-accounts", SYSTEM, "create_service_account", handler!(accounts::create)),
    get("/api/v1/service-accounts/{id}", OVERSIGHT, "get_service_account", handler!(accounts::get)),
    delete("/api/v1/service-accounts/{id}", SYSTEM, "delete_service_account", handler!(accounts::delete)),
    put(
        "/api/v1/service-accounts/{id}/status",
        SYSTEM,
        "set_service_account_status",
        handler!(accounts::set_status),
    ),
    post(
        "/api/v1/service-accounts/{id}/credentials",
        SYSTEM,
        "create_credential",
        handler!(credentials::rotate),
    ),
    post(
        "/api/v1/service-accounts/{id}/temporary-credentials",
        SYSTEM,
        "create_temporary_credential",
        handler!(credentials::create_temporary),
    ),
    delete(
        "/api/v1/service-accounts/{id}/credentials/{credential_id}",
        SYSTEM,
        "delete_credential",
        handler!(credentials::delete),
    ),
    put(
        "/api/v1/service-accounts/{id}/credentials/{credential_id}/status",
        SYSTEM,
        "set_credential_status",
        handler!(credentials::set_status),
    ),
    get(
        "/api/v1/service-accounts/{id}/policies",
        OVERSIGHT,
        "list_service_account_policies",
        handler!(access::policies_of),
    ),
    post("/api/v1/access/check", OVERSIGHT, "check_access", handler!(access::check)).unrecorded(),
    get("/api/v1/policies", OVERSIGHT, "list_policies", handler!(policies::list)),
    post("/api/v1/policies", SYSTEM, "create_policy", handler!(policies::create)),
    get("/api/v1/policies/{policy_id}", OVERSIGHT, "get_policy", handler!(policies::get)),
    put("/api/v1/policies/{policy_id}", SYSTEM, "replace_policy", handler!(policies::replace)),
    delete("/api/v1/policies/{policy_id}", SYSTEM, "delete_policy", handler!(policies::delete)),
    put(
        "/api/v1/policies/{policy_id}/bindings/{account_id}",
        SYSTEM,
        "attach_policy",
        handler!(policies::attach),
    ),
    delete(
        "/api/v1/policies/{policy_id}/bindings/{account_id}",
        SYSTEM,
        "detach_policy",
        handler!(policies::detach),
    ),
    get("/api/v1/management-tokens", SYSTEM, "list_management_tokens", handler!(tokens::list)),
    post("/api/v1/management-tokens", SYSTEM, "create_management_token", handler!(tokens::create)),
    delete("/api/v1/management-tokens/{id}", SYSTEM, "delete_management_token", handler!(tokens::delete)),
    get("/api/v1/audit/events", OVERSIGHT, "list_audit_events", handler!(audit_events::events)),
    get("/api/v1/refused-requests", OVERSIGHT, "list_refused_requests", handler!(refused_requests::list)),
    get(
        "/api/v1/refused-requests/{request_id}",
        OVERSIGHT,
        "get_refused_request",
        handler!(refused_requests::get),
    ),
    get("/api/v1/events", ALL, "list_events", handler!(events::list)),
    get("/api/v1/events/changes", ALL, "count_all_changes", handler!(objects::changes::of_store)),
    get("/api/v1/webhooks", ALL, "list_webhooks", handler!(webhooks::list)),
    post("/api/v1/webhooks", SYSTEM, "create_webhook", handler!(webhooks::create)),
    get("/api/v1/webhooks/{id}", ALL, "get_webhook", handler!(webhooks::get)),
    patch("/api/v1/webhooks/{id}", SYSTEM, "update_webhook", handler!(webhooks::update)),
    delete("/api/v1/webhooks/{id}", SYSTEM, "delete_webhook", handler!(webhooks::delete)),
    put("/api/v1/webhooks/{id}/status", SYSTEM, "set_webhook_status", handler!(webhooks::set_status)),
    post(
        "/api/v1/webhooks/{id}/rotate-secret",
        SYSTEM,
        "rotate_webhook_secret",
        handler!(webhooks::rotate_secret),
    ),
    post("/api/v1/webhooks/{id}/test", SYSTEM, "test_webhook", handler!(webhooks::test)),
    post("/api/v1/webhooks/{id}/resume", SYSTEM, "resume_webhook", handler!(webhooks::resume)),
    post("/api/v1/webhooks/{id}/redeliver", SYSTEM, "redeliver_events", handler!(webhooks::redeliver_period)),
    get("/api/v1/webhook-deliveries", ALL, "list_webhook_deliveries", handler!(webhooks::list_deliveries)),
    post(
        "/api/v1/webhook-deliveries/{id}/redeliver",
        SYSTEM,
        "redeliver_delivery",
        handler!(webhooks::redeliver_delivery),
    ),
    get("/api/v1/verify/progress", ALL, "get_verification_progress", handler!(verify::progress)),
    post("/api/v1/verify/objects/{bucket}/{key}", STORAGE, "verify_object", handler!(verify::object))
        .unrecorded(),
    post("/api/v1/verify/imports", SYSTEM, "sign_import_report", handler!(verify::import_report)),
    post("/api/v1/verify/backups", STORAGE, "sign_backup_manifest", handler!(verify::backup_manifest)),
    post("/api/v1/verify/buckets/{bucket}", STORAGE, "verify_bucket", handler!(verify::bucket)).unrecorded(),
    get("/api/v1/storage/status", ALL, "get_storage_status", handler!(storage::status)),
    get("/api/v1/storage/usage", ALL, "get_storage_usage", handler!(storage::usage)),
    get("/api/v1/storage/history", ALL, "get_storage_history", handler!(metrics::days)),
    get("/api/v1/attention", ALL, "get_attention", handler!(attention::get)),
    post("/api/v1/attention/dismissals", STORAGE, "dismiss_attention", handler!(attention::dismiss)),
    get("/api/v1/storage/inspect", ALL, "inspect_storage", handler!(storage::inspect)),
    post("/api/v1/storage/repair", STORAGE, "repair_storage", handler!(storage::repair)),
    post("/api/v1/storage/upgrade", STORAGE, "upgrade_storage", handler!(storage::upgrade)),
    get("/api/v1/storage/compact", ALL, "get_compaction", handler!(compaction::status)),
    post("/api/v1/storage/compact", STORAGE, "compact_storage", handler!(compaction::begin)),
    get("/api/v1/storage/backup", ALL, "get_backup", handler!(backup::status)),
    post("/api/v1/storage/backup", STORAGE, "begin_backup", handler!(backup::begin)),
    delete("/api/v1/storage/backup", STORAGE, "end_backup", handler!(backup::end)),
];

/// The operation that is several reads at once. It cannot contain itself.
pub(crate) const READ_BATCH: &str = "read_batch";

/// The routes that only the console's listener has.
static CONSOLE_ROUTES: &[Route] = &[
    get("/session", Access::Public, "get_console_session", handler!(console::current)),
    post("/session", Access::Public, "begin_console_session", handler!(console::begin)).unrecorded(),
    delete("/session", Access::Public, "end_console_session", handler!(console::end)).unrecorded(),
    get("/sign-in", Access::Public, "get_sign_in", handler!(console::sign_in)),
    post("/sign-in", Access::Public, "begin_sign_in", handler!(console::begin_sign_in)).unrecorded(),
    get("/sign-in/callback", Access::Redirected, "finish_sign_in", handler!(console::finish_sign_in)),
    post("/sign-in/logout", Access::Signed, "end_sessions_of_provider", handler!(console::end_of_provider))
        .access(),
    get("/members", OVERSIGHT, "list_members", handler!(console::members)),
    get("/batch", ALL, READ_BATCH, handler!(console::batch)),
    get("/sessions", ALL, "list_console_sessions", handler!(console::list)),
    delete("/sessions", ALL, "end_own_sessions", handler!(console::end_own)).access(),
    delete("/sessions/{id}", ALL, "end_session_by_id", handler!(console::end_by_id)).access(),
    post("/uploads", STORAGE, "begin_browser_upload", handler!(console::create)).object_change(),
    get("/uploads/{id}", STORAGE, "get_browser_upload", handler!(console::parts)),
    put("/uploads/{id}/{number}", STORAGE, "upload_browser_part", handler!(console::put_part)).unrecorded(),
    post("/uploads/{id}/complete", STORAGE, "complete_browser_upload", handler!(console::complete))
        .object_change(),
    delete("/uploads/{id}", STORAGE, "abort_browser_upload", handler!(console::abort)).object_change(),
];

/// The listener that a route belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Surface {
    /// All of the management plane.
    Management,
    /// Those below `/api/v1`, and those of the console alone.
    Console,
}

impl Surface {
    fn routes(self) -> impl Iterator<Item = &'static Route> {
        let is_console = self == Self::Console;
        let shared =
            ROUTES.iter().filter(move |route| !is_console || route.operation.path.starts_with("/api/v1/"));
        shared.chain(CONSOLE_ROUTES.iter().filter(move |_| is_console))
    }
}

/// Result of a lookup.
pub(crate) struct Match<'p> {
    /// The path pattern, even if its routes do not have the method; empty when no pattern matches.
    pub(crate) pattern: &'static str,
    pub(crate) route: Result<(&'static Route, Segments<'p>), AdminError>,
}

/// Finds the route of a request. `path` is as sent.
pub(crate) fn find<'p>(surface: Surface, method: &Method, path: &'p str) -> Match<'p> {
    let method = if *method == Method::HEAD { &Method::GET } else { method };
    let mut pattern = "";
    let mut allow = Vec::new();
    let matching =
        || surface.routes().filter_map(|route| Some((route, match_path(route.operation.path, path)?)));
    // Fixed segments take precedence: `preview` is not the id of a rule.
    let fewest = matching().map(|(_, segments)| segments.iter().count()).min();
    for (route, segments) in matching().filter(|(_, segments)| Some(segments.iter().count()) == fewest) {
        pattern = route.operation.path;
        if route.operation.method == *method {
            return Match { pattern, route: Ok((route, segments)) };
        }
        allow.push(route.operation.method.as_str());
        if route.operation.method == Method::GET {
            allow.push(Method::HEAD.as_str());
        }
    }
    let error =
        if allow.is_empty() { AdminError::NotFound } else { AdminError::MethodNotAllowed(allow.join(", ")) };
    Match { pattern, route: Err(error) }
}

#[cfg(test)]
mod tests;
