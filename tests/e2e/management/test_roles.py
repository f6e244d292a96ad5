"""Role matrix: every route with every role, without credentials and with wrong ones.

The expected matrix is independent of the server's table and is compared with the server's OpenAPI description, so that a
new route without a decision about its roles fails.
"""

from collections.abc import Callable

import pytest
import requests

from harness.management import Management, basic, bearer, expect
from harness.server import Cairn

SYSTEM, STORAGE, AUDITOR = "system_admin", "storage_admin", "auditor"
EVERYONE, MANAGERS, OVERSIGHT, SYSTEM_ONLY = {SYSTEM, STORAGE, AUDITOR}, {SYSTEM, STORAGE}, {SYSTEM, AUDITOR}, {SYSTEM}
ID = "01890000-0000-7000-8000-000000000000"

# Operation: method, path with names that do not exist, allowed roles.
MATRIX: dict[str, tuple[str, str, set[str]]] = {
    "get_openapi": ("GET", "/openapi.json", EVERYONE),
    "get_system_info": ("GET", "/system/info", EVERYONE),
    "get_metrics": ("GET", "/system/metrics", EVERYONE),
    "get_attention": ("GET", "/attention", EVERYONE),
    "dismiss_attention": ("POST", "/attention/dismissals", MANAGERS),
    "get_metric_history": ("GET", "/system/metrics/history", EVERYONE),
    "get_session": ("GET", "/auth/session", EVERYONE),
    "list_refused_requests": ("GET", "/refused-requests", OVERSIGHT),
    "get_refused_request": ("GET", "/refused-requests/0000000000000000", OVERSIGHT),
    "list_buckets": ("GET", "/buckets", EVERYONE),
    "create_bucket": ("POST", "/buckets", MANAGERS),
    "get_bucket": ("GET", "/buckets/no-such-bucket", EVERYONE),
    "get_bucket_contents": ("GET", "/buckets/no-such-bucket/contents", EVERYONE),
    "delete_bucket": ("DELETE", "/buckets/no-such-bucket", MANAGERS),
    "get_versioning": ("GET", "/buckets/no-such-bucket/versioning", EVERYONE),
    "set_versioning": ("PUT", "/buckets/no-such-bucket/versioning", MANAGERS),
    "set_quota": ("PUT", "/buckets/no-such-bucket/quota", MANAGERS),
    "get_cors": ("GET", "/buckets/no-such-bucket/cors", EVERYONE),
    "set_cors": ("PUT", "/buckets/no-such-bucket/cors", MANAGERS),
    "delete_cors": ("DELETE", "/buckets/no-such-bucket/cors", MANAGERS),
    "get_bucket_tags": ("GET", "/buckets/no-such-bucket/tags", EVERYONE),
    "set_bucket_tags": ("PUT", "/buckets/no-such-bucket/tags", MANAGERS),
    "get_object_lock": ("GET", "/buckets/no-such-bucket/object-lock", EVERYONE),
    "set_object_lock": ("PUT", "/buckets/no-such-bucket/object-lock", MANAGERS),
    "set_object_retention": ("PUT", "/buckets/no-such-bucket/object-retention/a/b", MANAGERS),
    "set_object_legal_hold": ("PUT", "/buckets/no-such-bucket/object-legal-hold/a/b", MANAGERS),
    "list_lifecycle_rules": ("GET", "/buckets/no-such-bucket/lifecycle", EVERYONE),
    "create_lifecycle_rule": ("POST", "/buckets/no-such-bucket/lifecycle", MANAGERS),
    "preview_lifecycle_rule": ("POST", "/buckets/no-such-bucket/lifecycle/preview", MANAGERS),
    "replace_lifecycle_rule": ("PUT", f"/buckets/no-such-bucket/lifecycle/{ID}", MANAGERS),
    "delete_lifecycle_rule": ("DELETE", f"/lifecycle-rules/{ID}", MANAGERS),
    "get_lifecycle_status": ("GET", "/lifecycle/status", EVERYONE),
    "resume_lifecycle": ("POST", "/lifecycle/resume", MANAGERS),
    "list_objects": ("GET", "/buckets/no-such-bucket/objects", EVERYONE),
    "get_object": ("GET", "/buckets/no-such-bucket/object/a/b", EVERYONE),
    "upload_object": ("PUT", "/buckets/no-such-bucket/object/a/b", MANAGERS),
    "delete_object": ("DELETE", "/buckets/no-such-bucket/object/a/b", MANAGERS),
    "download_object": ("GET", "/buckets/no-such-bucket/object-content/a/b", MANAGERS),
    "preview_object": ("GET", "/buckets/no-such-bucket/object-preview/a/b", MANAGERS),
    "list_object_versions": ("GET", "/buckets/no-such-bucket/object-versions", EVERYONE),
    "delete_object_version": ("DELETE", "/buckets/no-such-bucket/object-versions/a/b", MANAGERS),
    "set_object_tags": ("PUT", "/buckets/no-such-bucket/object-tags/a/b", MANAGERS),
    "set_object_metadata": ("PUT", "/buckets/no-such-bucket/object-metadata/a/b", MANAGERS),
    "list_multipart_uploads": ("GET", "/buckets/no-such-bucket/multipart-uploads", EVERYONE),
    "abort_multipart_upload": ("DELETE", "/buckets/no-such-bucket/multipart-uploads/a/b?upload_id=0", MANAGERS),
    "copy_object": ("POST", "/buckets/no-such-bucket/object-copy/a/b", MANAGERS),
    "move_object": ("POST", "/buckets/no-such-bucket/object-move/a/b", MANAGERS),
    "download_archive": ("GET", "/buckets/no-such-bucket/archive", MANAGERS),
    "download_objects": ("POST", "/buckets/no-such-bucket/archive", MANAGERS),
    "begin_import": ("POST", "/buckets/no-such-bucket/imports", SYSTEM_ONLY),
    "import_objects": ("POST", "/buckets/no-such-bucket/imported-objects", SYSTEM_ONLY),
    "import_object": ("PUT", "/buckets/no-such-bucket/imported-objects/a/b", SYSTEM_ONLY),
    "change_imported_object": ("PATCH", "/buckets/no-such-bucket/imported-objects/a/b", SYSTEM_ONLY),
    "begin_imported_upload": ("POST", "/buckets/no-such-bucket/imported-uploads/a/b", SYSTEM_ONLY),
    "import_part": ("PUT", "/buckets/no-such-bucket/imported-uploads/a/b", SYSTEM_ONLY),
    "list_imports": ("GET", "/imports", EVERYONE),
    "get_import": ("GET", f"/imports/{ID}", EVERYONE),
    "pause_import": ("POST", f"/imports/{ID}/pause", SYSTEM_ONLY),
    "resume_import": ("POST", f"/imports/{ID}/resume", SYSTEM_ONLY),
    "count_changes": ("GET", "/buckets/no-such-bucket/changes", EVERYONE),
    "count_all_changes": ("GET", "/events/changes", EVERYONE),
    "find_objects": ("GET", "/buckets/no-such-bucket/find", EVERYONE),
    "get_folder_usage": ("GET", "/buckets/no-such-bucket/folder-usage", EVERYONE),
    "get_object_history": ("GET", "/buckets/no-such-bucket/object-history/a/b", EVERYONE),
    "list_deleted_objects": ("GET", "/buckets/no-such-bucket/deleted-objects", EVERYONE),
    "delete_objects": ("POST", "/buckets/no-such-bucket/delete", MANAGERS),
    "undelete_objects": ("POST", "/buckets/no-such-bucket/undelete", MANAGERS),
    "restore_bucket": ("POST", "/buckets/no-such-bucket/restore", MANAGERS),
    "restore_object": ("POST", "/restore/no-such-bucket/a/b", MANAGERS),
    "list_object_shares": ("GET", "/buckets/no-such-bucket/object-shares/a/b", EVERYONE),
    "create_share": ("POST", "/buckets/no-such-bucket/object-shares/a/b", MANAGERS),
    "list_shares": ("GET", "/shares", EVERYONE),
    "get_share": ("GET", f"/shares/{ID}", EVERYONE),
    "update_share": ("PATCH", f"/shares/{ID}", MANAGERS),
    "delete_share": ("DELETE", f"/shares/{ID}", MANAGERS),
    "get_share_url": ("GET", f"/shares/{ID}/url", MANAGERS),
    "revoke_share": ("POST", f"/shares/{ID}/revoke", MANAGERS),
    "list_object_embeds": ("GET", "/buckets/no-such-bucket/object-embeds/a/b", EVERYONE),
    "create_embed": ("POST", "/buckets/no-such-bucket/object-embeds/a/b", MANAGERS),
    "list_embeds": ("GET", "/embeds", EVERYONE),
    "get_embed": ("GET", f"/embeds/{ID}", EVERYONE),
    "update_embed": ("PATCH", f"/embeds/{ID}", MANAGERS),
    "delete_embed": ("DELETE", f"/embeds/{ID}", MANAGERS),
    "get_embed_url": ("GET", f"/embeds/{ID}/url", MANAGERS),
    "revoke_embed": ("POST", f"/embeds/{ID}/revoke", MANAGERS),
    "get_sharing_settings": ("GET", "/sharing/settings", EVERYONE),
    "list_service_accounts": ("GET", "/service-accounts", OVERSIGHT),
    "create_service_account": ("POST", "/service-accounts", SYSTEM_ONLY),
    "get_service_account": ("GET", f"/service-accounts/{ID}", OVERSIGHT),
    "delete_service_account": ("DELETE", f"/service-accounts/{ID}", SYSTEM_ONLY),
    "set_service_account_status": ("PUT", f"/service-accounts/{ID}/status", SYSTEM_ONLY),
    "create_credential": ("POST", f"/service-accounts/{ID}/credentials", SYSTEM_ONLY),
    "create_temporary_credential": ("POST", f"/service-accounts/{ID}/temporary-credentials", SYSTEM_ONLY),
    "delete_credential": ("DELETE", f"/service-accounts/{ID}/credentials/{ID}", SYSTEM_ONLY),
    "set_credential_status": ("PUT", f"/service-accounts/{ID}/credentials/{ID}/status", SYSTEM_ONLY),
    "list_service_account_policies": ("GET", f"/service-accounts/{ID}/policies", OVERSIGHT),
    "check_access": ("POST", "/access/check", OVERSIGHT),
    "list_policies": ("GET", "/policies", OVERSIGHT),
    "create_policy": ("POST", "/policies", SYSTEM_ONLY),
    "get_policy": ("GET", f"/policies/{ID}", OVERSIGHT),
    "get_public_access": ("GET", "/buckets/no-such-bucket/public-access", EVERYONE),
    "set_public_access": ("PUT", "/buckets/no-such-bucket/public-access", MANAGERS),
    "list_public_access": ("GET", "/public-access", EVERYONE),
    "replace_policy": ("PUT", f"/policies/{ID}", SYSTEM_ONLY),
    "delete_policy": ("DELETE", f"/policies/{ID}", SYSTEM_ONLY),
    "attach_policy": ("PUT", f"/policies/{ID}/bindings/{ID}", SYSTEM_ONLY),
    "detach_policy": ("DELETE", f"/policies/{ID}/bindings/{ID}", SYSTEM_ONLY),
    "list_management_tokens": ("GET", "/management-tokens", SYSTEM_ONLY),
    "create_management_token": ("POST", "/management-tokens", SYSTEM_ONLY),
    "delete_management_token": ("DELETE", f"/management-tokens/{ID}", SYSTEM_ONLY),
    "list_audit_events": ("GET", "/audit/events", OVERSIGHT),
    "list_events": ("GET", "/events", EVERYONE),
    "list_webhooks": ("GET", "/webhooks", EVERYONE),
    "create_webhook": ("POST", "/webhooks", SYSTEM_ONLY),
    "get_webhook": ("GET", f"/webhooks/{ID}", EVERYONE),
    "update_webhook": ("PATCH", f"/webhooks/{ID}", SYSTEM_ONLY),
    "delete_webhook": ("DELETE", f"/webhooks/{ID}", SYSTEM_ONLY),
    "set_webhook_status": ("PUT", f"/webhooks/{ID}/status", SYSTEM_ONLY),
    "rotate_webhook_secret": ("POST", f"/webhooks/{ID}/rotate-secret", SYSTEM_ONLY),
    "test_webhook": ("POST", f"/webhooks/{ID}/test", SYSTEM_ONLY),
    "resume_webhook": ("POST", f"/webhooks/{ID}/resume", SYSTEM_ONLY),
    "redeliver_events": ("POST", f"/webhooks/{ID}/redeliver", SYSTEM_ONLY),
    "list_webhook_deliveries": ("GET", "/webhook-deliveries", EVERYONE),
    "redeliver_delivery": ("POST", f"/webhook-deliveries/{ID}/redeliver", SYSTEM_ONLY),
    "get_verification_progress": ("GET", "/verify/progress", EVERYONE),
    "verify_object": ("POST", "/verify/objects/no-such-bucket/a/b", MANAGERS),
    "sign_import_report": ("POST", "/verify/imports", SYSTEM_ONLY),
    "verify_bucket": ("POST", "/verify/buckets/no-such-bucket", MANAGERS),
    "get_storage_status": ("GET", "/storage/status", EVERYONE),
    "get_storage_history": ("GET", "/storage/history", EVERYONE),
    "get_storage_usage": ("GET", "/storage/usage", EVERYONE),
    "inspect_storage": ("GET", "/storage/inspect", EVERYONE),
    "repair_storage": ("POST", "/storage/repair", MANAGERS),
    "get_compaction": ("GET", "/storage/compact", EVERYONE),
    "upgrade_storage": ("POST", "/storage/upgrade", MANAGERS),
    "compact_storage": ("POST", "/storage/compact", MANAGERS),
    "get_backup": ("GET", "/storage/backup", EVERYONE),
    "begin_backup": ("POST", "/storage/backup", MANAGERS),
    "end_backup": ("DELETE", "/storage/backup", MANAGERS),
    "sign_backup_manifest": ("POST", "/verify/backups", MANAGERS),
}
PUBLIC = {"get_health": "//health", "get_readiness": "//ready"}
# What visitors of shares request: the token in the path is the whole authorization.
CAPABILITIES = ("get_share_descriptor", "unlock_share", "get_share_content")
SCRAPE = {"scrape_metrics": "//metrics"}
SCRAPE_TOKEN = "scrape-token-of-the-matrix"


@pytest.fixture(scope="module")
def callers(make_module_store: Callable[..., Cairn]) -> dict[str, Management]:
    """Returns a client of one server for every kind of credential."""
    store = make_module_store(SERVICE_METRICS_SCRAPE_TOKEN=SCRAPE_TOKEN).start()
    admin = store.admin
    made = {"system token": admin, "root": Management(store.management, basic(store.secrets.root_access_key, store.secrets.root_secret_key))}
    for role in (SYSTEM, STORAGE, AUDITOR):
        token = expect(admin.post("/management-tokens", {"name": f"a {role}", "role": role}), 201)["token"]
        made[role] = Management(store.management, bearer(token))
    account = expect(admin.post("/service-accounts", {"name": "an account", "description": ""}), 201)["credential"]
    made["nobody"] = Management(store.management)
    made["an account of the data plane"] = Management(store.management, basic(account["access_key"], account["secret_key"]))
    made["the scraper"] = Management(store.management, bearer(SCRAPE_TOKEN))
    return made


# What callers with an allowed role get where the path names nothing: the requests have no body, and a second backup cannot begin.
DONE_OR_INCOMPLETE = ((200, ""), (202, ""), (400, "INVALID_REQUEST"), (429, "TOO_MANY_REQUESTS"))
ROLES = {"system token": SYSTEM, "root": SYSTEM, SYSTEM: SYSTEM, STORAGE: STORAGE, AUDITOR: AUDITOR}


def code_of(response: requests.Response) -> str:
    """Returns the error code, or an empty string."""
    is_json = response.headers.get("content-type") == "application/json"
    return response.json().get("error", {}).get("code", "") if is_json else ""


def test_openapi_roles_match_the_expected_matrix(callers: dict[str, Management]):
    """The description lists exactly the routes and roles of this file."""
    document = expect(callers["auditor"].get("/openapi.json"), 200)
    described = {
        operation["operationId"]: set(operation["x-roles"]) if "x-roles" in operation else None
        for path in document["paths"].values() for operation in path.values()
    }
    decided = {operation: roles for operation, (_, _, roles) in MATRIX.items()}
    assert described == decided | dict.fromkeys((*PUBLIC, *SCRAPE, *CAPABILITIES))


@pytest.mark.parametrize("operation", MATRIX)
@pytest.mark.parametrize("who", ROLES)
def test_route_is_forbidden_exactly_for_other_roles(callers: dict[str, Management], who: str, operation: str):
    """Only callers without an allowed role get FORBIDDEN, whatever else is wrong with the request."""
    method, path, roles = MATRIX[operation]
    response = callers[who].request(method, path)
    answer = (response.status_code, code_of(response))
    if ROLES[who] not in roles:
        assert answer == (403, "FORBIDDEN"), response.text[:500]
    elif answer[0] == 404:
        # What the path names is missing, and not the route.
        assert answer[1].endswith("_NOT_FOUND"), response.text[:500]
    else:
        assert answer in DONE_OR_INCOMPLETE, response.text[:500]


@pytest.mark.parametrize("operation", MATRIX)
def test_every_route_refuses_missing_credentials(callers: dict[str, Management], operation: str):
    """The answer is 401 with a challenge."""
    method, path, _ = MATRIX[operation]
    response = callers["nobody"].request(method, path)
    assert (response.status_code, code_of(response)) == (401, "UNAUTHENTICATED"), response.text
    assert response.headers["www-authenticate"]


@pytest.mark.parametrize("who", ["an account of the data plane", "the scraper"])
def test_data_plane_and_scrape_credentials_are_refused(callers: dict[str, Management], who: str):
    """Only a few routes are tested, because responses to wrong credentials are delayed."""
    for operation in ("get_session", "create_bucket", "list_service_accounts", "list_audit_events"):
        method, path, _ = MATRIX[operation]
        assert callers[who].request(method, path).status_code == 401, operation


def test_public_routes_and_metrics_have_their_own_access(callers: dict[str, Management]):
    """Health routes are public. Only the scrape token can read the metrics."""
    for path in PUBLIC.values():
        for who in callers:
            assert callers[who].get(path).status_code == 200, (who, path)
    statuses = {who: caller.get("//metrics").status_code for who, caller in callers.items()}
    assert statuses == {who: 200 if who == "the scraper" else 401 for who in callers}


def test_refusals_by_role_are_audited(callers: dict[str, Management]):
    """The event has the principal, role, operation and request id."""
    response = callers["auditor"].post("/buckets", {"name": "not-by-an-auditor"})
    assert response.status_code == 403
    found = expect(callers["root"].get(f"/audit/events?request_id={response.headers['x-request-id']}"), 200)["events"]
    assert [(event["result"], event["role"], event["operation"], event["detail"]) for event in found] == [
        ("denied", "auditor", "create_bucket", found[0]["detail"]),
    ]
    assert found[0]["detail"].startswith("FORBIDDEN; token ")
    assert "auditor" in found[0]["principal"]
