//! Routes of service accounts and their credentials.

use cairn_api::*;

use super::Route;
use super::row::*;
use crate::handlers::{access, accounts, credentials};

pub(super) static ROUTES: &[Route] = &[
    get("/api/v1/service-accounts", OVERSIGHT, "list_service_accounts")
        .summary("Lists all service accounts.")
        .answers(&[ok::<ServiceAccountList>()], &[])
        .handler(boxed!(accounts::list)),
    post("/api/v1/service-accounts", SYSTEM, "create_service_account")
        .summary(
            "Creates a service account with one credential. Only this response contains its secret \
             key, unless the client gives one.",
        )
        .body(json::<CreateServiceAccount>())
        .answers(
            &[created::<NewServiceAccount>()],
            &[(409, "SERVICE_ACCOUNT_ALREADY_EXISTS"), KEY_EXISTS, LIMIT],
        )
        .handler(boxed!(accounts::create)),
    get("/api/v1/service-accounts/{id}", OVERSIGHT, "get_service_account")
        .summary("Shows one service account.")
        .answers(&[ok::<ServiceAccount>()], &[ACCOUNT])
        .handler(boxed!(accounts::get)),
    delete("/api/v1/service-accounts/{id}", SYSTEM, "delete_service_account")
        .summary("Permanently deletes a service account and its credentials.")
        .answers(&[DONE], &[ACCOUNT])
        .handler(boxed!(accounts::delete)),
    put("/api/v1/service-accounts/{id}/status", SYSTEM, "set_service_account_status")
        .summary("Enables or disables all credentials of a service account.")
        .body(json::<SetStatus>())
        .answers(&[ok::<ServiceAccount>()], &[ACCOUNT])
        .handler(boxed!(accounts::set_status)),
    post("/api/v1/service-accounts/{id}/credentials", SYSTEM, "create_credential")
        .summary(
            "Issues an additional credential. Only this response contains its secret key, unless \
             the client gives one.",
        )
        .body(optional_json::<CreateCredential>())
        .answers(&[created::<NewCredential>()], &[ACCOUNT, KEY_EXISTS, LIMIT])
        .handler(boxed!(credentials::rotate)),
    post("/api/v1/service-accounts/{id}/temporary-credentials", SYSTEM, "create_temporary_credential")
        .summary("Issues a credential that expires. Only this response contains its secret key.")
        .body(json::<CreateTemporaryCredential>())
        .answers(&[created::<NewCredential>()], &[ACCOUNT, LIMIT])
        .handler(boxed!(credentials::create_temporary)),
    delete("/api/v1/service-accounts/{id}/credentials/{credential_id}", SYSTEM, "delete_credential")
        .summary("Deletes a credential.")
        .answers(&[DONE], &[ACCOUNT, CREDENTIAL])
        .handler(boxed!(credentials::delete)),
    put("/api/v1/service-accounts/{id}/credentials/{credential_id}/status", SYSTEM, "set_credential_status")
        .summary("Enables or disables one credential.")
        .body(json::<SetStatus>())
        .answers(&[ok::<Credential>()], &[ACCOUNT, CREDENTIAL])
        .handler(boxed!(credentials::set_status)),
    get("/api/v1/service-accounts/{id}/policies", OVERSIGHT, "list_service_account_policies")
        .summary("Lists the policies of a service account with their statements.")
        .answers(&[ok::<PolicyStatements>()], &[ACCOUNT])
        .handler(boxed!(access::policies_of)),
];
