//! Operations of visitors of shares, which the crate `sharing` answers. They are only described here.
//!
//! Embeds are on the data plane, which this document is not about.

use cairn_api::*;

use super::row::*;
use crate::operation::{Access, Operation};

/// Every such operation. The token in the path is the whole authorization.
pub(super) static OPERATIONS: &[Operation] = &[
    get("/s/{token}", Access::Public, "get_share_descriptor")
        .summary(
            "Describes the object of a share; nothing of it before a required password was given. \
             Browsers get a page.",
        )
        .answers(
            &[ok::<ShareDescriptor>()],
            &[SHARE, OBJECT, GONE, (500, "INTERNAL_ERROR"), (503, "NOT_READY")],
        ),
    post("/s/{token}/unlock", Access::Public, "unlock_share")
        .summary(
            "Checks the password of a share. Sets a cookie, and returns a token for the header \
             x-service-unlock.",
        )
        .body(json::<UnlockShare>())
        .unrecorded()
        .answers(
            &[ok::<UnlockedShare>()],
            &[
                (400, "INVALID_REQUEST"),
                (401, "SHARE_PASSWORD_INCORRECT"),
                (403, "FORBIDDEN"),
                SHARE,
                GONE,
                (429, "TOO_MANY_REQUESTS"),
                (500, "INTERNAL_ERROR"),
                (503, "NOT_READY"),
            ],
        ),
    get("/s/{token}/content", Access::Public, "get_share_content")
        .summary("Returns the content of a share, or a range of it.")
        .answers(
            &[CONTENT, PARTIAL_CONTENT, NOT_MODIFIED],
            &[
                LOCKED,
                (403, "FORBIDDEN"),
                SHARE,
                OBJECT,
                GONE,
                (412, "PRECONDITION_FAILED"),
                (416, "RANGE_NOT_SATISFIABLE"),
                (500, "INTERNAL_ERROR"),
                (503, "NOT_READY"),
                (507, "STORAGE_FULL"),
            ],
        ),
];
