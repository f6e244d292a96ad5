//! Settings of the C library's memory allocator.

/// Switches off the allocator's bins for small freed pieces ("fast bins", mallopt(3)).
///
/// Each allocation of more than a kilobyte merges everything in these bins first. Requests make such allocations, for
/// payloads and heads, between many small ones, so the bins would be filled and emptied for each request. The cache of
/// each thread serves small allocations either way.
#[expect(unsafe_code, reason = "there is no safe wrapper for mallopt among the dependencies")]
pub(crate) fn tune_allocator() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt takes two numbers and only changes a setting of the allocator, under the allocator's own lock.
    let is_set = unsafe { libc::mallopt(libc::M_MXFAST, 0) } == 1;
    #[cfg(not(target_env = "gnu"))]
    let is_set = true;
    if !is_set {
        // Requests then cost more time, nothing else.
        tracing::debug!(target: "service", "the allocator keeps its own settings");
    }
}
