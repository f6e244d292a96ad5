//! Permits for connections that idle workers leave to large objects.

use std::time::Duration;

use cairn_sync::{Condvar, Mutex};

/// The interval at which a wait looks whether the command ends.
const GLANCE: Duration = Duration::from_millis(100);

/// A number of permits.
pub(super) struct Permits {
    left: Mutex<usize>,
    returned: Condvar,
}

/// A permit, which is given back when it is dropped.
pub(super) struct Permit<'p>(&'p Permits);

impl Permits {
    pub(super) const fn new(count: usize) -> Self {
        Self { left: Mutex::new(count), returned: Condvar::new() }
    }

    /// Takes a permit, if one is left.
    pub(super) fn try_take(&self) -> Option<Permit<'_>> {
        let mut left = self.left.lock();
        *left = left.checked_sub(1)?;
        Some(Permit(self))
    }

    /// Waits for a permit, until the command ends.
    pub(super) fn take(&self, is_over: impl Fn() -> bool) -> Option<Permit<'_>> {
        let mut left = self.left.lock();
        while *left == 0 {
            if is_over() {
                return None;
            }
            left = self.returned.wait_timeout(left, GLANCE);
        }
        *left -= 1;
        Some(Permit(self))
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *self.0.left.lock() += 1;
        self.0.returned.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permit_is_given_back() {
        let permits = Permits::new(1);
        let permit = permits.take(|| false).expect("one is left");
        assert!(permits.try_take().is_none() && permits.take(|| true).is_none());
        drop(permit);
        assert!(permits.try_take().is_some());
    }
}
