//! Routes of the console's listener alone.

use cairn_identity::policy::Action;

use super::row::*;
use super::{READ_BATCH, Route};
use crate::handlers::console;
use crate::operation::{Access, MemberAccess};

pub(super) static ROUTES: &[Route] = &[
    get("/session", Access::Public, "get_console_session").handler(boxed!(console::current)),
    post("/session", Access::Public, "begin_console_session")
        .body(BYTES)
        .unrecorded()
        .handler(boxed!(console::begin)),
    delete("/session", Access::Public, "end_console_session").unrecorded().handler(boxed!(console::end)),
    get("/sign-in", Access::Public, "get_sign_in").handler(boxed!(console::sign_in)),
    post("/sign-in", Access::Public, "begin_sign_in").unrecorded().handler(boxed!(console::begin_sign_in)),
    get("/sign-in/callback", Access::Redirected, "finish_sign_in")
        .any_query()
        .handler(boxed!(console::finish_sign_in)),
    post("/sign-in/logout", Access::Signed, "end_sessions_of_provider")
        .body(BYTES)
        .access()
        .handler(boxed!(console::end_of_provider)),
    get("/members", OVERSIGHT, "list_members").handler(boxed!(console::members)),
    get("/batch", ALL, READ_BATCH).query(&[repeated::<String>("path")]).handler(boxed!(console::batch)),
    get("/sessions", ALL, "list_console_sessions")
        .open_to_members(MemberAccess::Session)
        .handler(boxed!(console::list)),
    delete("/sessions", ALL, "end_own_sessions")
        .access()
        .open_to_members(MemberAccess::Session)
        .handler(boxed!(console::end_own)),
    delete("/sessions/{id}", ALL, "end_session_by_id")
        .access()
        .open_to_members(MemberAccess::Session)
        .handler(boxed!(console::end_by_id)),
    post("/uploads", STORAGE, "begin_browser_upload")
        .body(BYTES)
        .object_change()
        .open_to_members(MemberAccess::Upload(Action::PutObject))
        .handler(boxed!(console::create)),
    get("/uploads/{id}", STORAGE, "get_browser_upload")
        .open_to_members(MemberAccess::Upload(Action::GetObject))
        .handler(boxed!(console::parts)),
    put("/uploads/{id}/{number}", STORAGE, "upload_browser_part")
        .body(BYTES)
        .unrecorded()
        .open_to_members(MemberAccess::Upload(Action::PutObject))
        .handler(boxed!(console::put_part)),
    post("/uploads/{id}/complete", STORAGE, "complete_browser_upload")
        .object_change()
        .open_to_members(MemberAccess::Upload(Action::PutObject))
        .handler(boxed!(console::complete)),
    delete("/uploads/{id}", STORAGE, "abort_browser_upload")
        .object_change()
        .open_to_members(MemberAccess::Upload(Action::DeleteObject))
        .handler(boxed!(console::abort)),
];
