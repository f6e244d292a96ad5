//! The object of a link, and other parts of requests.

use cairn_http1::parse_rfc3339_millis;
use cairn_model::{Timestamp, VersionName};
use cairn_sharing::{Disposition, Link, LinkObject, NewLink};
use cairn_transfer::stored_content_type;

use crate::call::Call;
use crate::error::AdminError;
use crate::handlers::objects::ObjectRef;

/// An object that exists.
pub(super) struct FoundObject {
    pub(super) object: LinkObject,
    pub(super) content_type: String,
}

impl FoundObject {
    /// Finds the object of the path, and the version if there is one. A delete marker counts as missing.
    ///
    /// # Errors
    /// `INVALID_BUCKET_NAME`, `BUCKET_NOT_FOUND`, `OBJECT_NOT_FOUND`, `VERSION_NOT_FOUND`.
    pub(super) fn of_path(call: &Call<'_, '_>, version: Option<VersionName>) -> Result<Self, AdminError> {
        Self::find(call, ObjectRef { bucket: call.bucket()?, key: call.key()?, version })
    }

    /// Finds the object of an existing link.
    ///
    /// # Errors
    /// As [`Self::of_path`]. `OBJECT_NOT_FOUND` if its bucket was deleted.
    pub(super) fn of_link(call: &Call<'_, '_>, link: &Link) -> Result<Self, AdminError> {
        let LinkObject { bucket, key, version, .. } = &link.object;
        let bucket = call.store()?.bucket(bucket).filter(|bucket| link.object.is_in(bucket));
        let bucket = bucket.ok_or(AdminError::ObjectNotFound)?;
        Self::find(call, ObjectRef { bucket, key: key.clone(), version: *version })
    }

    fn find(call: &Call<'_, '_>, source: ObjectRef) -> Result<Self, AdminError> {
        let found = call.engine()?.head_object(&source.bucket, &source.key, source.version);
        let info = found.map_err(|error| source.source_error(error))?;
        let ObjectRef { bucket, key, version } = source;
        let object = LinkObject { bucket: bucket.name.clone(), bucket_id: bucket.id(), key, version };
        Ok(Self { object, content_type: stored_content_type(&info.attributes) })
    }

    /// Returns what every new link has.
    ///
    /// # Errors
    /// `UNAUTHENTICATED` without a caller.
    pub(super) fn new_link(
        &self,
        call: &Call<'_, '_>,
        label: Option<String>,
        expires_at: Option<Timestamp>,
    ) -> Result<NewLink, AdminError> {
        Ok(NewLink {
            object: self.object.clone(),
            label: label.unwrap_or_default(),
            created_by: call.caller()?.principal.clone(),
            expires_at,
        })
    }
}

/// Parses the member `expires_at`.
///
/// # Errors
/// `INVALID_REQUEST`.
pub(super) fn expiry(text: &str) -> Result<Timestamp, AdminError> {
    parse_rfc3339_millis(text).map(Timestamp).ok_or_else(|| {
        AdminError::invalid("expires_at must be a time such as 2026-11-21T05:00:00.000Z, or null")
    })
}

/// Parses the member `disposition`.
///
/// # Errors
/// `INVALID_REQUEST`.
pub(super) fn disposition(name: &str) -> Result<Disposition, AdminError> {
    Disposition::from_name(name)
        .ok_or_else(|| AdminError::invalid("disposition must be inline or attachment"))
}

/// Returns the audit detail of a link: its object.
pub(super) fn described(link: &Link) -> String {
    let LinkObject { bucket, key, version, .. } = &link.object;
    let mut detail = format!("{bucket}/{key}");
    if let Some(version) = version {
        detail.push_str(&format!(", version {version}"));
    }
    detail
}
