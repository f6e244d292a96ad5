//! The synchronisation of the host's clock. Requests signed more than fifteen minutes off are refused.

/// The state of the clock's synchronisation, as the kernel reports it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Synchronisation {
    /// A time service disciplines it.
    Synchronised,
    /// No time service disciplines it, or not yet.
    Unsynchronised,
    /// This process may not query it.
    Unknown,
}

/// Queries whether the kernel's clock is synchronised (adjtimex(2)). Changes nothing.
#[must_use]
#[expect(unsafe_code, reason = "there is no safe wrapper for adjtimex among the dependencies")]
pub fn clock_synchronisation() -> Synchronisation {
    // SAFETY: a zeroed `struct timex` is valid, and its empty modes request no change.
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: adjtimex reads and writes the one structure that it is given, which is alive during the call.
    let result = unsafe { libc::adjtimex(&raw mut state) };
    // The result is the state of leap seconds. TIME_ERROR sets the flag too.
    if result < 0 {
        Synchronisation::Unknown
    } else if state.status & libc::STA_UNSYNC != 0 {
        Synchronisation::Unsynchronised
    } else {
        Synchronisation::Synchronised
    }
}
