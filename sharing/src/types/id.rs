//! Ids of links.

pub(crate) use cairn_model::time_id::ID_BYTES;

cairn_model::time_id! {
    /// The id of a share or an embed. Links that are created later have greater ids.
    LinkId
}
