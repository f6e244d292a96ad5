//! Time-ordered ids: UUIDs of version 7 (RFC 9562, section 5.7).
//!
//! [`time_id!`](crate::time_id!) declares a type for each kind of id. An id is stored as its 16 bytes, so ids sort by their
//! times as keys on disk and in memory.

use crate::Timestamp;
use std::{fmt, io};
use uuid::{Builder, Uuid};

/// Length of an id in bytes.
pub const ID_BYTES: usize = 16;

/// Milliseconds have 48 bits in a UUID of version 7. Later times are stored as this one.
const TIME_MAX: u64 = (1 << 48) - 1;

/// Makes the id with this time. Six of the 80 bits of `rest` are lost to version and variant.
#[must_use]
pub fn new(time: Timestamp, rest: &[u8; 10]) -> [u8; ID_BYTES] {
    Builder::from_unix_timestamp_millis(time.0.min(TIME_MAX), rest).into_uuid().into_bytes()
}

/// Makes a random id with this time.
///
/// # Errors
/// The operating system has no random bytes.
pub fn random(time: Timestamp) -> io::Result<[u8; ID_BYTES]> {
    let mut rest = [0; 10];
    getrandom::fill(&mut rest).map_err(io::Error::other)?;
    Ok(new(time, &rest))
}

/// Parses the hyphenated form: 36 characters, in upper or lower case. Returns `None` for other versions.
#[must_use]
pub fn parse(text: &str) -> Option<[u8; ID_BYTES]> {
    const HYPHENATED_BYTES: usize = 36;
    let id = Some(text).filter(|text| text.len() == HYPHENATED_BYTES).map(Uuid::try_parse)?.ok()?;
    (id.get_version_num() == 7).then_some(id.into_bytes())
}

/// Writes the hyphenated form, in lower case.
///
/// # Errors
/// Those of the formatter.
pub fn format(id: [u8; ID_BYTES], out: &mut fmt::Formatter<'_>) -> fmt::Result {
    fmt::Display::fmt(&Uuid::from_bytes(id).hyphenated(), out)
}

/// Declares the type of a time-ordered id: its 16 bytes, in the order of their times.
///
/// The hyphenated form of a UUID is its text. Its crate makes ids with [`time_id::random`](crate::time_id::random()).
#[macro_export]
macro_rules! time_id {
    ($(#[$attribute:meta])* $name:ident) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub(crate) [u8; $crate::time_id::ID_BYTES]);

        impl $name {
            /// Parses the hyphenated form: 36 characters, in upper or lower case.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                $crate::time_id::parse(text).map(Self)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                $crate::time_id::format(self.0, out)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(out, "{}({self})", stringify!($name))
            }
        }
    };
}

#[cfg(test)]
#[expect(unreachable_pub, reason = "the macro declares public types")]
mod tests {
    use super::{new, random};
    use crate::Timestamp;

    crate::time_id! {
        /// The id of something.
        SomeId
    }

    fn some(time: u64) -> SomeId {
        SomeId(random(Timestamp(time)).expect("random bytes"))
    }

    #[test]
    fn ids_are_version_7_uuids_in_the_order_of_their_times() {
        let id = SomeId(new(Timestamp(0x0001_0203_0405), &[0xFF; 10]));
        assert_eq!(id.to_string(), "00010203-0405-7fff-bfff-ffffffffffff");
        assert_eq!(format!("{id:?}"), "SomeId(00010203-0405-7fff-bfff-ffffffffffff)");
        assert!(id < some(0x0001_0203_0406));
        assert_ne!(some(1), some(1));
        assert!(some(u64::MAX).to_string().starts_with("ffffffff-ffff-7"), "the greatest time");
    }

    #[test]
    fn only_the_hyphenated_form_of_version_7_is_parsed() {
        let id = some(7);
        assert_eq!(SomeId::parse(&id.to_string()), Some(id));
        assert_eq!(SomeId::parse(&id.to_string().to_uppercase()), Some(id));
        for bad in [
            "",
            "00010203-0405-4000-bfff-ffffffffffff",
            "0001020304057000bfffffffffffffff",
            "{00010203-0405-7000-bfff-ffffffffffff}",
            "00010203-0405-7000-bfff-fffffffffff",
            "00010203-0405-7000-bfff-ffffffffffffg",
        ] {
            assert_eq!(SomeId::parse(bad), None, "{bad}");
        }
    }
}
