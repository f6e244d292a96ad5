//! Lookups in a table, in any transaction. An absent table is empty.

use crate::error::Error;
use crate::iterators::Scan;
use crate::record::{self, Record};
use crate::table::Database;
use heed::RoTxn;
use std::ops::Bound;

pub(crate) fn get<'t>(
    txn: &'t RoTxn<'_>,
    table: Option<&Database>,
    key: &[u8],
) -> Result<Option<Record<'t>>, Error> {
    let Some(table) = table else { return Ok(None) };
    table.get(txn, key)?.map(|value| record::decode(key, value)).transpose()
}

pub(crate) fn first_at_or_after<'t>(
    txn: &'t RoTxn<'_>,
    table: Option<&Database>,
    key: &[u8],
) -> Result<Option<(&'t [u8], Record<'t>)>, Error> {
    let Some(table) = table else { return Ok(None) };
    let found = table.get_greater_than_or_equal_to(txn, key)?;
    found.map(|(key, value)| Ok((key, record::decode(key, value)?))).transpose()
}

pub(crate) fn last_before<'t>(
    txn: &'t RoTxn<'_>,
    table: Option<&Database>,
    key: &[u8],
) -> Result<Option<(&'t [u8], Record<'t>)>, Error> {
    let Some(table) = table else { return Ok(None) };
    let found = table.get_lower_than(txn, key)?;
    found.map(|(key, value)| Ok((key, record::decode(key, value)?))).transpose()
}

pub(crate) fn scan<'t>(txn: &'t RoTxn<'_>, table: Option<&Database>, from: &[u8]) -> Result<Scan<'t>, Error> {
    // LMDB has no empty keys and refuses to search for one.
    let first = if from.is_empty() { Bound::Unbounded } else { Bound::Included(from) };
    let bounds = (first, Bound::Unbounded);
    Ok(Scan { inner: table.map(|table| table.range(txn, &bounds)).transpose()? })
}
