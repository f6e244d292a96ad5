//! A clock for everything that removes data by age. It does not follow a jump ahead.
//!
//! A wrong date would make everything due at once. So the wall clock is compared with a clock that cannot jump: the time since
//! the host was started, including suspends. Across a restart of the service, it is compared with the last trusted time that
//! was saved. After a jump back there is nothing to fear: less is due.

use cairn_model::{Clock, Timestamp};
use cairn_sync::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// The wall clock may be ahead of its explanation by this much: a day. Corrections of a running clock are far smaller.
const AHEAD_MAX: Duration = Duration::from_secs(86_400);

/// The wall clock as far as it is trusted.
pub(crate) struct GuardedClock {
    wall: Arc<dyn Clock>,
    guard: Mutex<ClockGuard>,
}

impl GuardedClock {
    /// Guards a clock that was trusted up to a time, if it ever was.
    pub(crate) fn new(wall: &Arc<dyn Clock>, trusted: Option<Timestamp>) -> Self {
        let guard = ClockGuard::trusting(trusted.unwrap_or_else(|| wall.now()));
        Self { wall: Arc::clone(wall), guard: Mutex::new(guard) }
    }

    /// Returns the time of the wall clock, and trusts it from now on.
    ///
    /// # Errors
    /// By how much it is ahead of what is explained by the time that has passed, if by more than a day.
    pub(crate) fn check(&self) -> Result<Timestamp, Duration> {
        let now = self.wall.now();
        self.guard.lock().check(now).map(|()| now)
    }

    /// Trusts the wall clock from now on, although it has jumped.
    pub(crate) fn trust(&self) {
        let now = self.wall.now();
        *self.guard.lock() = ClockGuard::trusting(now);
    }
}

impl Clock for GuardedClock {
    /// Returns the time of the wall clock. After a jump ahead, the time that it should show.
    fn now(&self) -> Timestamp {
        self.check().unwrap_or_else(|ahead| {
            let ahead = u64::try_from(ahead.as_millis()).unwrap_or(u64::MAX);
            Timestamp(self.wall.now().0.saturating_sub(ahead))
        })
    }
}

/// The expected time, as the last trusted time and the uptime give it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ClockGuard {
    /// The latest time that was trusted.
    wall: Timestamp,
    /// Time since the start of the host at that moment.
    uptime: Duration,
}

impl ClockGuard {
    /// Trusts a time from now on.
    fn trusting(wall: Timestamp) -> Self {
        Self { wall, uptime: uptime() }
    }

    /// Compares the wall clock with what is explained, and trusts it from now on if it is not too far ahead.
    ///
    /// # Errors
    /// By how much the clock is ahead.
    fn check(&mut self, now: Timestamp) -> Result<(), Duration> {
        self.check_at(now, uptime())
    }

    fn check_at(&mut self, now: Timestamp, uptime: Duration) -> Result<(), Duration> {
        let elapsed = uptime.saturating_sub(self.uptime);
        let explained = self.wall.0.saturating_add(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX));
        let ahead = Duration::from_millis(now.0.saturating_sub(explained));
        if ahead > AHEAD_MAX {
            return Err(ahead);
        }
        // A clock that was set back may be corrected later, which is no jump ahead.
        *self = Self { wall: Timestamp(now.0.max(explained)), uptime };
        Ok(())
    }
}

/// Returns the time since the host was started, including suspends.
fn uptime() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or_default(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use super::{ClockGuard, GuardedClock};
    use cairn_model::{Clock, Timestamp};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    const HOUR: u64 = 3_600_000;
    const DAY: u64 = 24 * HOUR;

    fn guard() -> ClockGuard {
        ClockGuard { wall: Timestamp(1000 * DAY), uptime: Duration::ZERO }
    }

    fn after(hours: u64) -> Duration {
        Duration::from_millis(hours * HOUR)
    }

    #[test]
    fn jump_of_more_than_a_day_is_refused_until_the_clock_is_back() {
        let mut guard = guard();
        assert_eq!(guard.check_at(Timestamp(1000 * DAY + HOUR), after(1)), Ok(()));
        let jumped = Timestamp(1003 * DAY + HOUR);
        assert_eq!(guard.check_at(jumped, after(2)), Err(after(71)));
        assert_eq!(
            guard.check_at(jumped, after(3)),
            Err(after(70)),
            "it is not trusted the second time either"
        );
        assert_eq!(guard.check_at(Timestamp(1000 * DAY + 4 * HOUR), after(4)), Ok(()));
    }

    struct Wall(AtomicU64);

    impl Clock for Wall {
        fn now(&self) -> Timestamp {
            Timestamp(self.0.load(Ordering::SeqCst))
        }
    }

    #[test]
    fn guarded_clock_follows_a_jump_ahead_only_when_it_is_told_to() {
        let wall = Arc::new(Wall(AtomicU64::new(1000 * DAY)));
        let clock = GuardedClock::new(&(Arc::clone(&wall) as Arc<dyn Clock>), None);
        assert_eq!(clock.now(), Timestamp(1000 * DAY));
        wall.0.store(1007 * DAY, Ordering::SeqCst);
        let shown = clock.now();
        assert!(shown >= Timestamp(1000 * DAY) && shown < Timestamp(1001 * DAY), "{shown:?}");
        assert!(clock.check().is_err_and(|ahead| ahead > after(6 * 24)));
        clock.trust();
        assert_eq!(clock.now(), Timestamp(1007 * DAY));
        let restarted = GuardedClock::new(&(wall as Arc<dyn Clock>), Some(Timestamp(1000 * DAY)));
        assert!(restarted.now() < Timestamp(1001 * DAY));
    }

    #[test]
    fn time_that_passes_is_no_jump_however_long() {
        let mut guard = guard();
        assert_eq!(guard.check_at(Timestamp(1090 * DAY), after(90 * 24)), Ok(()));
    }

    #[test]
    fn clock_that_was_set_back_may_be_corrected() {
        let mut guard = guard();
        assert_eq!(guard.check_at(Timestamp(0), after(1)), Ok(()));
        assert_eq!(guard.check_at(Timestamp(1000 * DAY + 2 * HOUR), after(2)), Ok(()));
    }
}
