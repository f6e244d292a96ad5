//! Keys, sizes and content of the objects that a run works on.

pub mod content;
pub mod key_space;
pub mod sizes;
