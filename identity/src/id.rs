//! Ids of accounts, credentials, policies and tokens: UUIDs of version 7 (RFC 9562, section 5.7).

use cairn_model::Timestamp;
use std::fmt;
use std::io;
use uuid::{Builder, Uuid};

/// Length of an id in bytes.
pub(crate) const ID_BYTES: usize = 16;
/// Milliseconds have 48 bits in a UUID of version 7.
const TIME_MAX: u64 = (1 << 48) - 1;

/// Makes a random id with the time `now`.
fn make(now: Timestamp) -> io::Result<[u8; ID_BYTES]> {
    let mut random = [0; 10];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    Ok(Builder::from_unix_timestamp_millis(now.0.min(TIME_MAX), &random).into_uuid().into_bytes())
}

/// Parses the hyphenated form: 36 characters, in upper or lower case.
fn parse(text: &str) -> Option<[u8; ID_BYTES]> {
    const HYPHENATED_BYTES: usize = 36;
    let id = Some(text).filter(|text| text.len() == HYPHENATED_BYTES).map(Uuid::try_parse)?.ok()?;
    (id.get_version_num() == 7).then_some(id.into_bytes())
}

macro_rules! id {
    ($name:ident, $of:literal) => {
        #[doc = concat!("The id of ", $of, ".")]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub(crate) [u8; ID_BYTES]);

        impl $name {
            /// Makes a random id with the time `now`.
            pub(crate) fn make(now: Timestamp) -> io::Result<Self> {
                make(now).map(Self)
            }

            /// Parses the hyphenated form: 36 characters, in upper or lower case.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                parse(text).map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                Uuid::from_bytes(self.0).hyphenated().fmt(out)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(out, "{}({self})", stringify!($name))
            }
        }
    };
}

id!(AccountId, "a service account");
id!(CredentialId, "a credential of a service account");
id!(PolicyId, "a policy");
id!(TokenId, "a management token");

#[cfg(test)]
mod tests {
    use super::AccountId;
    use cairn_model::Timestamp;

    #[test]
    fn ids_are_version_7_uuids_and_round_trip() {
        let id = AccountId::make(Timestamp(0x0001_0203_0405)).expect("random numbers");
        let text = id.to_string();
        assert!(text.starts_with("00010203-0405-7"), "{text}");
        assert_eq!(AccountId::parse(&text), Some(id));
        for bad in
            ["", "00010203-0405-4000-bfff-ffffffffffff", "0001020304057000bfffffffffffffff", &text[1..]]
        {
            assert_eq!(AccountId::parse(bad), None, "{bad}");
        }
    }
}
