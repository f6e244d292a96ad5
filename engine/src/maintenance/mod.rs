//! Background maintenance of a slice: growth and reclamation of its volumes.

pub(crate) mod maintainer;
pub(crate) mod reclaim;
pub(crate) mod recovery;
