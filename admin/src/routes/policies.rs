//! Routes of policies.

use cairn_api::*;

use super::Route;
use super::row::*;
use crate::handlers::{access, policies};

pub(super) static ROUTES: &[Route] = &[
    post("/api/v1/access/check", OVERSIGHT, "check_access")
        .summary(
            "Says whether an account may do something, and which statement decides. Changes \
             nothing.",
        )
        .body(json::<CheckAccess>())
        .answers(&[ok::<AccessVerdict>()], &[BUCKET_NAME, ACCOUNT, CREDENTIAL])
        .unrecorded()
        .handler(boxed!(access::check)),
    get("/api/v1/policies", OVERSIGHT, "list_policies")
        .summary("Lists all policies, with the accounts that they are attached to.")
        .answers(&[ok::<PolicyList>()], &[])
        .handler(boxed!(policies::list)),
    post("/api/v1/policies", SYSTEM, "create_policy")
        .summary("Creates a policy that is attached to no account.")
        .body(json::<PolicyDocument>())
        .answers(&[created::<Policy>()], &[LIMIT])
        .handler(boxed!(policies::create)),
    get("/api/v1/policies/{policy_id}", OVERSIGHT, "get_policy")
        .summary("Shows one policy, with the accounts that it is attached to.")
        .answers(&[ok::<BoundPolicy>()], &[POLICY])
        .handler(boxed!(policies::get)),
    put("/api/v1/policies/{policy_id}", SYSTEM, "replace_policy")
        .summary(
            "Replaces the document of a policy. The new statements are in force for the next \
             request.",
        )
        .body(json::<PolicyDocument>())
        .answers(&[ok::<BoundPolicy>()], &[POLICY, LIMIT])
        .handler(boxed!(policies::replace)),
    delete("/api/v1/policies/{policy_id}", SYSTEM, "delete_policy")
        .summary("Deletes a policy that is attached to no account.")
        .answers(&[DONE], &[POLICY, (409, "POLICY_IN_USE")])
        .handler(boxed!(policies::delete)),
    put("/api/v1/policies/{policy_id}/bindings/{account_id}", SYSTEM, "attach_policy")
        .summary("Attaches a policy to a service account.")
        .answers(&[DONE], &[POLICY, ACCOUNT, LIMIT])
        .handler(boxed!(policies::attach)),
    delete("/api/v1/policies/{policy_id}/bindings/{account_id}", SYSTEM, "detach_policy")
        .summary("Detaches a policy from a service account.")
        .answers(&[DONE], &[POLICY, ACCOUNT])
        .handler(boxed!(policies::detach)),
];
