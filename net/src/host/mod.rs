//! What the host must offer: a kernel with io_uring, lockable memory, a synchronised clock.

pub(crate) mod check;
pub(crate) mod clock;
