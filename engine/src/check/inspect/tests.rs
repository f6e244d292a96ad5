//! Tests of inspection and repair with planted damage and concurrent writers.

mod concurrent;
mod indexed_uploads;
mod planted;
mod relations;
mod repaired;
mod support;
