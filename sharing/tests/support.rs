//! Links in a temporary folder, with a clock that tests set.

use cairn_fixtures::ManualClock;
use cairn_model::{BucketName, ObjectKey};
use cairn_sharing::{
    CapabilityToken, Disposition, Embed, LinkObject, LinkOptions, LinkPolicy, Links, ListenerUrl,
    ListenerUrls, NewEmbed, NewLink, NewShare, Share, Visitor, WebOrigin,
};
use futures_lite::future::block_on;
use std::path::PathBuf;
use std::sync::Arc;

const STORE: [u8; 16] = [7; 16];
const MASTER_KEY: &[u8] = b"a master key of the tests, long enough";
pub(crate) const NOW: u64 = 1_795_237_200_000;
pub(crate) const DAY: u64 = 86_400_000;

/// The folder of links, and their clock and policy.
pub(crate) struct Fixture {
    pub(crate) folder: tempfile::TempDir,
    clock: Arc<ManualClock>,
    pub(crate) policy: LinkPolicy,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let folder = cairn_tables::testing::unmade_store();
        let policy = LinkPolicy { embeds_enabled: true, ..LinkPolicy::default() };
        Self { folder, clock: ManualClock::at(NOW), policy }
    }

    pub(crate) fn options(&self) -> LinkOptions {
        let listener = |port| ListenerUrl { address: ([127, 0, 0, 1], port).into(), is_secure: false };
        LinkOptions {
            folder: self.folder.path().to_owned(),
            store: STORE,
            master_key: MASTER_KEY.to_vec().into(),
            policy: self.policy.clone(),
            listeners: ListenerUrls { share: listener(7602), embed: listener(7600) },
            clock: self.clock.clone(),
        }
    }

    pub(crate) fn open(&self) -> Arc<Links> {
        Links::open(self.options()).unwrap()
    }

    pub(crate) fn open_error(&self, change: impl FnOnce(&mut LinkOptions)) -> String {
        let mut options = self.options();
        change(&mut options);
        Links::open(options).map(drop).unwrap_err().to_string()
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data.mdb")
    }

    pub(crate) fn set_time(&self, millis: u64) {
        self.clock.set(millis);
    }
}

pub(crate) fn object(key: &str) -> LinkObject {
    LinkObject {
        bucket: BucketName::parse("photos").unwrap(),
        bucket_id: 3,
        key: ObjectKey::parse(key).unwrap(),
        version: None,
    }
}

pub(crate) fn new_link(key: &str) -> NewLink {
    NewLink { object: object(key), label: String::new(), created_by: "root".to_owned(), expires_at: None }
}

pub(crate) fn new_share(key: &str) -> NewShare {
    NewShare {
        link: new_link(key),
        password: None,
        disposition: Disposition::Inline,
        maximum_downloads: None,
        author: None,
    }
}

pub(crate) fn new_embed(key: &str, origins: &[&str]) -> NewEmbed {
    let allowed_origins = origins.iter().map(|origin| WebOrigin::parse(origin).unwrap()).collect();
    NewEmbed { link: new_link(key), allowed_origins, disposition: Disposition::Inline }
}

pub(crate) fn share(sharing: &Links, new: NewShare) -> (Share, CapabilityToken) {
    block_on(sharing.create_share(new)).unwrap()
}

pub(crate) fn embed(sharing: &Links, key: &str) -> (Embed, CapabilityToken) {
    block_on(sharing.create_embed(new_embed(key, &["https://a.example"]))).unwrap()
}

/// A visitor with the address 192.0.2.`number`.
pub(crate) fn visitor(number: u8) -> Visitor {
    Visitor::new([192, 0, 2, number].into(), None)
}
