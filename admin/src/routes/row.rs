//! Constructors for the rows of the table of routes.

use cairn_api::{JsonSchema, Time, schema_of};
use cairn_identity::Role;
use cairn_observe::AuditKind;
use http::Method;

use super::{Handler, Route};
use crate::operation::{
    Access, Content, ErrorCode, MemberAccess, Operation, QueryParameter, RequestBody, Success,
};
pub(super) use crate::operation::{family, optional, repeated, required};

/// All roles.
pub(super) const ALL: Access = Access::Roles(&[Role::SystemAdmin, Role::StorageAdmin, Role::Auditor]);
/// Operations that change stored data, or read the content of objects.
pub(super) const STORAGE: Access = Access::Roles(&[Role::SystemAdmin, Role::StorageAdmin]);
/// Operations that change service accounts, policies, tokens and webhooks.
pub(super) const SYSTEM: Access = Access::Roles(&[Role::SystemAdmin]);
/// Operations that show service accounts, policies and audit events.
pub(super) const OVERSIGHT: Access = Access::Roles(&[Role::SystemAdmin, Role::Auditor]);

/// Makes a handler of an async function.
macro_rules! boxed {
    ($function:path) => {
        |call| Box::pin($function(call))
    };
}
pub(super) use boxed;

/// Returns an operation without parameters and bodies that is closed to members. It is recorded as a change.
const fn operation(method: Method, path: &'static str, access: Access, name: &'static str) -> Operation {
    Operation {
        name,
        method,
        path,
        access,
        members: None,
        recorded_as: Some(AuditKind::Change),
        query: Some(&[]),
        request: None,
        summary: "",
        successes: &[],
        errors: &[],
    }
}

pub(super) const fn get(path: &'static str, access: Access, name: &'static str) -> Operation {
    operation(Method::GET, path, access, name).unrecorded()
}

pub(super) const fn post(path: &'static str, access: Access, name: &'static str) -> Operation {
    operation(Method::POST, path, access, name)
}

pub(super) const fn put(path: &'static str, access: Access, name: &'static str) -> Operation {
    operation(Method::PUT, path, access, name)
}

pub(super) const fn patch(path: &'static str, access: Access, name: &'static str) -> Operation {
    operation(Method::PATCH, path, access, name)
}

pub(super) const fn delete(path: &'static str, access: Access, name: &'static str) -> Operation {
    operation(Method::DELETE, path, access, name)
}

impl Operation {
    /// Describes the operation in the OpenAPI document.
    pub(super) const fn summary(mut self, summary: &'static str) -> Self {
        self.summary = summary;
        self
    }

    /// Accepts these query parameters.
    pub(super) const fn query(mut self, parameters: &'static [QueryParameter]) -> Self {
        self.query = Some(parameters);
        self
    }

    /// Accepts any query, which the handler reads if it needs to.
    pub(super) const fn any_query(mut self) -> Self {
        self.query = None;
        self
    }

    /// Accepts a body, which the handler reads.
    pub(super) const fn body(mut self, body: RequestBody) -> Self {
        self.request = Some(body);
        self
    }

    /// Describes the answers, besides the errors that all operations have.
    pub(super) const fn answers(
        mut self,
        successes: &'static [Success],
        errors: &'static [ErrorCode],
    ) -> Self {
        (self.successes, self.errors) = (successes, errors);
        self
    }

    /// Opens the operation to members with this requirement.
    pub(super) const fn open_to_members(mut self, requirement: MemberAccess) -> Self {
        self.members = Some(requirement);
        self
    }

    const fn recorded_as(mut self, kind: Option<AuditKind>) -> Self {
        self.recorded_as = kind;
        self
    }

    /// Records nothing: a POST that changes nothing.
    pub(super) const fn unrecorded(self) -> Self {
        self.recorded_as(None)
    }

    /// Records that a secret is disclosed, or that a session ends.
    pub(super) const fn access(self) -> Self {
        self.recorded_as(Some(AuditKind::Access))
    }

    /// Records the change of an object or an upload.
    pub(super) const fn object_change(self) -> Self {
        self.recorded_as(Some(AuditKind::ObjectChange))
    }

    /// Records that objects are read or listed.
    pub(super) const fn data_read(self) -> Self {
        self.recorded_as(Some(AuditKind::Read))
    }

    /// Returns the route of the operation.
    pub(super) const fn handler(self, handler: Handler) -> Route {
        Route { operation: self, handler }
    }
}

pub(super) const AT: QueryParameter = optional::<Time>("at");
pub(super) const VERSION_ID: QueryParameter = optional::<cairn_api::VersionId>("version_id");
pub(super) const IMPORT_ID: QueryParameter = required::<cairn_api::Id>("import_id");

pub(super) const fn json<T: JsonSchema>() -> RequestBody {
    RequestBody { content: Content::Json(schema_of::<T>()), is_required: true }
}

pub(super) const fn optional_json<T: JsonSchema>() -> RequestBody {
    RequestBody { content: Content::Json(schema_of::<T>()), is_required: false }
}

pub(super) const BYTES: RequestBody = RequestBody { content: Content::Bytes, is_required: true };
pub(super) const OPTIONAL_BYTES: RequestBody = RequestBody { content: Content::Bytes, is_required: false };

pub(super) const fn success<T: JsonSchema>(status: u16, meaning: &'static str) -> Success {
    Success { status, meaning, content: Some(Content::Json(schema_of::<T>())) }
}

pub(super) const fn ok<T: JsonSchema>() -> Success {
    success::<T>(200, "The request succeeded.")
}

pub(super) const fn created<T: JsonSchema>() -> Success {
    success::<T>(201, "The resource was created.")
}

pub(super) const fn accepted<T: JsonSchema>() -> Success {
    success::<T>(202, "The work has begun.")
}

pub(super) const DONE: Success =
    Success { status: 204, meaning: "The request succeeded; there is no body.", content: None };
pub(super) const CONTENT: Success =
    Success { status: 200, meaning: "The bytes.", content: Some(Content::Bytes) };
pub(super) const PARTIAL_CONTENT: Success =
    Success { status: 206, meaning: "The requested range.", content: Some(Content::Bytes) };
pub(super) const NOT_MODIFIED: Success =
    Success { status: 304, meaning: "The client's copy is current.", content: None };
pub(super) const METRICS: Success =
    Success { status: 200, meaning: "The metrics.", content: Some(Content::Text) };

pub(super) const BUCKET: ErrorCode = (404, "BUCKET_NOT_FOUND");
pub(super) const BUCKET_NAME: ErrorCode = (400, "INVALID_BUCKET_NAME");
pub(super) const OBJECT: ErrorCode = (404, "OBJECT_NOT_FOUND");
pub(super) const VERSION: ErrorCode = (404, "VERSION_NOT_FOUND");
pub(super) const IMPORT: ErrorCode = (404, "IMPORT_NOT_FOUND");
pub(super) const IMPORT_CONFLICT: ErrorCode = (409, "IMPORT_CONFLICT");
pub(super) const STORE_STATE: ErrorCode = (409, "INVALID_STORE_STATE");
pub(super) const STATE: ErrorCode = (409, "INVALID_BUCKET_STATE");
pub(super) const UPLOAD: ErrorCode = (404, "UPLOAD_NOT_FOUND");
pub(super) const QUOTA: ErrorCode = (409, "QUOTA_EXCEEDED");
pub(super) const ACCOUNT: ErrorCode = (404, "SERVICE_ACCOUNT_NOT_FOUND");
pub(super) const CREDENTIAL: ErrorCode = (404, "CREDENTIAL_NOT_FOUND");
pub(super) const POLICY: ErrorCode = (404, "POLICY_NOT_FOUND");
pub(super) const LIFECYCLE_RULE: ErrorCode = (404, "LIFECYCLE_RULE_NOT_FOUND");
pub(super) const WEBHOOK: ErrorCode = (404, "WEBHOOK_NOT_FOUND");
pub(super) const DISABLED: ErrorCode = (409, "WEBHOOK_DISABLED");
pub(super) const TARGET: ErrorCode = (400, "INVALID_WEBHOOK_TARGET");
pub(super) const KEY_EXISTS: ErrorCode = (409, "ACCESS_KEY_EXISTS");
pub(super) const LIMIT: ErrorCode = (409, "LIMIT_REACHED");
pub(super) const SHARE: ErrorCode = (404, "SHARE_NOT_FOUND");
pub(super) const EMBED: ErrorCode = (404, "EMBED_NOT_FOUND");
pub(super) const GONE: ErrorCode = (410, "SHARE_GONE");
pub(super) const LOCKED: ErrorCode = (401, "SHARE_LOCKED");
pub(super) const EXPIRATION: ErrorCode = (400, "EXPIRATION_REQUIRED");
pub(super) const LIFETIME: ErrorCode = (400, "LIFETIME_TOO_LONG");
pub(super) const ORIGIN: ErrorCode = (400, "INVALID_ORIGIN");
pub(super) const EMBED_TYPE: ErrorCode = (400, "EMBED_CONTENT_TYPE_REFUSED");
