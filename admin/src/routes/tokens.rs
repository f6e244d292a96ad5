//! Routes of management tokens.

use cairn_api::*;

use super::Route;
use super::row::*;
use crate::handlers::tokens;

pub(super) static ROUTES: &[Route] = &[
    get("/api/v1/management-tokens", SYSTEM, "list_management_tokens")
        .summary("Lists all management tokens.")
        .answers(&[ok::<ManagementTokenList>()], &[])
        .handler(boxed!(tokens::list)),
    post("/api/v1/management-tokens", SYSTEM, "create_management_token")
        .summary("Creates a management token. Only this response contains the token.")
        .body(json::<CreateManagementToken>())
        .answers(&[created::<NewManagementToken>()], &[LIMIT])
        .handler(boxed!(tokens::create)),
    delete("/api/v1/management-tokens/{id}", SYSTEM, "delete_management_token")
        .summary("Deletes a management token.")
        .answers(&[DONE], &[(404, "TOKEN_NOT_FOUND")])
        .handler(boxed!(tokens::delete)),
];
