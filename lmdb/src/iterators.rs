//! Iterators over the records of a table. Those of an absent table are empty.

use crate::error::Error;
use crate::record::{self, Record};
use std::iter::Flatten;
use std::option::IntoIter;

/// Iterates over stored values, which are not verified, in the order of their keys.
pub(crate) type Values<'t> = Flatten<IntoIter<heed::RoRange<'t, heed::types::Bytes, heed::types::Bytes>>>;

/// Iterates over records in the order of their keys.
pub struct Scan<'t> {
    pub(crate) inner: Option<heed::RoRange<'t, heed::types::Bytes, heed::types::Bytes>>,
}

impl<'t> Iterator for Scan<'t> {
    type Item = Result<(&'t [u8], Record<'t>), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(match self.inner.as_mut()?.next()? {
            Ok((key, value)) => record::decode(key, value).map(|record| (key, record)),
            Err(error) => Err(error.into()),
        })
    }
}

/// Iterates over keys in order. Values are not read, so keys of records with wrong checksums are included.
pub struct Keys<'t> {
    pub(crate) inner: Option<heed::RoRange<'t, heed::types::Bytes, heed::types::DecodeIgnore>>,
}

impl<'t> Iterator for Keys<'t> {
    type Item = Result<&'t [u8], Error>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.inner.as_mut()?.next()?.map(|(key, ())| key).map_err(Error::from))
    }
}

/// Iterates over records in descending order of their keys. Each key comes with its record or the record's error.
pub struct ReverseScan<'t> {
    pub(crate) inner: Option<heed::RoRevRange<'t, heed::types::Bytes, heed::types::Bytes>>,
}

impl<'t> Iterator for ReverseScan<'t> {
    type Item = Result<(&'t [u8], Result<Record<'t>, Error>), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let item = self.inner.as_mut()?.next()?;
        Some(item.map(|(key, value)| (key, record::decode(key, value))).map_err(Error::from))
    }
}

/// A stored record, valid or damaged.
#[derive(Debug)]
pub struct Entry<'t> {
    /// The key.
    pub key: &'t [u8],
    /// The stored checksum, right or wrong. The totals sum these up.
    pub stored_checksum: u64,
    /// The record, or why it is invalid.
    pub record: Result<Record<'t>, Error>,
}

/// Iterates over records in the order of their keys, including damaged ones.
pub struct Entries<'t> {
    pub(crate) inner: Option<heed::RoRange<'t, heed::types::Bytes, heed::types::Bytes>>,
}

impl<'t> Iterator for Entries<'t> {
    type Item = Result<Entry<'t>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.inner.as_mut()?.next()?.map_err(Error::from).map(|(key, value)| Entry {
            key,
            stored_checksum: record::stored_checksum(value),
            record: record::decode(key, value),
        }))
    }
}
