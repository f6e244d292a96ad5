//! Whether something keeps the host's clock right: signatures with a date more than fifteen minutes off are refused.

/// What the kernel says of its clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Synchronisation {
    /// A time service disciplines it.
    Synchronised,
    /// None does, or has not yet.
    Unsynchronised,
    /// This process may not ask.
    Unknown,
}

/// Asks the kernel whether its clock is disciplined (adjtimex(2)); changes nothing.
#[must_use]
#[expect(unsafe_code, reason = "no safe wrapper for adjtimex is at hand")]
pub fn clock_synchronisation() -> Synchronisation {
    // SAFETY: a `struct timex` of zeros is a valid one, whose modes ask for no change.
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: adjtimex reads and writes the one structure it is given, which is alive during the call.
    let result = unsafe { libc::adjtimex(&raw mut state) };
    // The result is the state of leap seconds; TIME_ERROR comes with the flag too.
    if result < 0 {
        Synchronisation::Unknown
    } else if state.status & libc::STA_UNSYNC != 0 {
        Synchronisation::Unsynchronised
    } else {
        Synchronisation::Synchronised
    }
}
