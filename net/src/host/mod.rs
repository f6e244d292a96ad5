//! Requirements on the host, and settings of its C library.
//!
//! The host must offer a kernel with io_uring, lockable memory and a synchronised clock.

pub(crate) mod allocator;
pub(crate) mod check;
pub(crate) mod clock;
