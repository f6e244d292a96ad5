//! Ids of links: UUIDs of version 7 (RFC 9562, section 5.7).

use cairn_model::Timestamp;
use std::{fmt, io};
use uuid::{Builder, Uuid};

/// Length of an id in bytes.
pub(crate) const ID_BYTES: usize = 16;
/// Milliseconds have 48 bits in a UUID of version 7.
const TIME_MAX: u64 = (1 << 48) - 1;

/// The id of a share or an embed. Links that are created later have greater ids.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub(crate) [u8; ID_BYTES]);

impl LinkId {
    /// Makes a random id with the time `now`.
    ///
    /// # Errors
    /// The operating system has no random bytes.
    pub(crate) fn make(now: Timestamp) -> io::Result<Self> {
        let mut random = [0; 10];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let id = Builder::from_unix_timestamp_millis(now.0.min(TIME_MAX), &random).into_uuid();
        Ok(Self(id.into_bytes()))
    }

    /// Parses the hyphenated form: 36 characters, in upper or lower case.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        const HYPHENATED_BYTES: usize = 36;
        let id = Some(text).filter(|text| text.len() == HYPHENATED_BYTES).map(Uuid::try_parse)?.ok()?;
        (id.get_version_num() == 7).then_some(Self(id.into_bytes()))
    }
}

impl fmt::Display for LinkId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        Uuid::from_bytes(self.0).hyphenated().fmt(out)
    }
}

impl fmt::Debug for LinkId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "LinkId({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::LinkId;
    use cairn_model::Timestamp;

    #[test]
    fn ids_are_version_7_uuids_in_the_order_of_their_times() {
        let id = LinkId::make(Timestamp(0x0001_0203_0405)).expect("random bytes");
        assert!(id.to_string().starts_with("00010203-0405-7"), "{id}");
        assert_eq!(LinkId::parse(&id.to_string()), Some(id));
        assert!(id < LinkId::make(Timestamp(0x0001_0203_0406)).expect("random bytes"));
        for bad in ["", "00010203-0405-4000-bfff-ffffffffffff", &id.to_string()[1..]] {
            assert_eq!(LinkId::parse(bad), None, "{bad}");
        }
    }
}
