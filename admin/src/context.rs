//! Everything that requests on one executor share: the store, the directory, credentials, registries.

use std::rc::Rc;
use std::sync::Arc;

use cairn_engine::Engine;
use cairn_identity::CredentialThrottle;
use cairn_identity::directory::Directory;
use cairn_net::Drain;
use cairn_observe::{AuditLog, RefusedRequests, RefusingSetting};
use cairn_sharing::{Links, ListenerUrl, PublicLinks};
use cairn_webhooks::Webhooks;

use crate::access::{ManagementCredentials, PersonSignIns, Sessions};
use crate::archives::Archives;
use crate::error::AdminError;
use crate::health::Readiness;
use crate::import_runs::ImportRuns;
use crate::import_turns::ImportTurns;
use crate::metrics::MetricSources;
use crate::verification::Verifications;
use crate::waits::Waits;

/// The optional features that the configuration turns on.
#[derive(Clone, Copy, Default, Debug)]
pub struct Capabilities {
    /// Whether storage events are recorded. Without them nothing can be delivered either.
    pub events: bool,
    /// Whether the web console serves administration.
    pub console: bool,
    /// Whether the root credential may be used for S3.
    pub root_s3: bool,
    /// Whether the rules of public access have an effect.
    pub public_access: bool,
    /// The compatibility mode: the word for `s3.compatibility`.
    pub s3_compatibility: &'static str,
}

/// The endpoint of the data plane, as clients reach it.
#[derive(Clone, Debug)]
pub struct S3Endpoint {
    /// The configured URL, without a slash at its end.
    pub url: Option<String>,
    /// The data plane's listener, for when none is configured.
    pub listener: ListenerUrl,
}

/// The values of the settings that can be why a request is refused.
pub type SettingValues = Arc<[(RefusingSetting, String)]>;

/// An open store with its subsystems, on one executor.
#[derive(Clone)]
pub struct OpenStore {
    /// The store.
    pub engine: Rc<Engine>,
    /// The directory of service accounts, policies and management tokens.
    pub directory: Arc<Directory>,
    /// The audit trail.
    pub audit: Arc<AuditLog>,
    /// The webhooks.
    pub webhooks: Arc<Webhooks>,
    /// Shares and embeds.
    pub sharing: Arc<Links>,
    /// Answers visitors of shares.
    pub links: Rc<PublicLinks>,
    /// The turns of imports.
    pub import_turns: ImportTurns,
}

/// The state and the services that the management plane of one executor uses.
pub struct AdminContext {
    /// The credentials that callers are authenticated with.
    pub credentials: ManagementCredentials,
    /// Throttles wrong credentials. Shared by all executors and both planes.
    pub throttle: CredentialThrottle,
    /// The subsystems that `/ready` probes.
    pub readiness: Box<dyn Readiness>,
    /// The open store. Without one, only the credentials of the configuration are valid, and operations that need it
    /// answer 503.
    pub open: Option<OpenStore>,
    /// The sessions of the console. With them, this is the plane of the console: callers have sessions in place of
    /// credentials, and only the routes below `/api/v1` and those of the console itself exist.
    pub sessions: Option<Sessions>,
    /// Sign-ins of people, if the configuration names a provider. Of the console only.
    pub sign_ins: Option<PersonSignIns>,
    /// The running verifications. Shared by all executors.
    pub verifications: Verifications,
    /// The runs that import versions. Shared by all executors.
    pub imports: ImportRuns,
    /// The archives that are being written. Shared by all executors.
    pub archives: Archives,
    /// Sources of the metrics that are not counted in this process's registry. Shared by all executors.
    pub metrics: Arc<MetricSources>,
    /// The last refused requests of S3 clients. Shared by all executors.
    pub refused: RefusedRequests,
    /// The values of the settings that refusals name. Shared by all executors.
    pub setting_values: SettingValues,
    /// The requests of this executor that wait for events.
    pub waits: Waits,
    /// The capabilities of this configuration.
    pub capabilities: Capabilities,
    /// The endpoint of the data plane, as clients reach it.
    pub s3_endpoint: S3Endpoint,
    /// The signal to stop. Long requests end early after it.
    pub drain: Drain,
}

impl AdminContext {
    /// Returns the open store.
    ///
    /// # Errors
    /// `NOT_READY` without one.
    pub(crate) fn open(&self) -> Result<&OpenStore, AdminError> {
        self.open.as_ref().ok_or(AdminError::NotReady("the store is not open"))
    }

    /// Returns the directory of accounts, if the store is open.
    pub(crate) fn directory(&self) -> Option<&Directory> {
        self.open.as_ref().map(|open| &*open.directory)
    }

    /// Returns the audit trail, if the store is open.
    pub(crate) fn audit(&self) -> Option<&Arc<AuditLog>> {
        self.open.as_ref().map(|open| &open.audit)
    }
}
