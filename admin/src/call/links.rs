//! The links of requests: shares and embeds.

use std::sync::Arc;

use cairn_sharing::{AnyLink, LinkId, Links};

use super::Call;
use crate::error::AdminError;

impl Call<'_, '_> {
    /// Returns shares and embeds.
    ///
    /// # Errors
    /// `NOT_READY` when no store is open.
    pub(crate) fn sharing(&self) -> Result<&Arc<Links>, AdminError> {
        Ok(&self.context.open()?.sharing)
    }

    /// Returns the id of the link in the path.
    ///
    /// # Errors
    /// `SHARE_NOT_FOUND`, `EMBED_NOT_FOUND` when the segment is not a valid id.
    pub(crate) fn link_id<T: AnyLink>(&self) -> Result<LinkId, AdminError> {
        LinkId::parse(&self.segment("id")?).ok_or(AdminError::LinkNotFound(T::KIND))
    }

    /// Returns the link in the path.
    ///
    /// # Errors
    /// As [`Self::link_id`].
    pub(crate) fn link<T: AnyLink>(&self) -> Result<T, AdminError> {
        self.sharing()?.get(self.link_id::<T>()?)?.ok_or(AdminError::LinkNotFound(T::KIND))
    }
}
