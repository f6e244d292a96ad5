//! The clock: signatures are good for fifteen minutes around it, and versions are dated by it.

use std::time::SystemTime;

use cairn_net::Synchronisation;

use super::Seen;

/// A clock before this is one that was never set: the first of January 2025, in seconds since 1970.
const SANE_FROM: u64 = 1_735_689_600;
/// A clock after this is wrong: the first of January 2100.
const SANE_UNTIL: u64 = 4_102_444_800;
const MEND: &str = "run a time service: chrony, or systemd-timesyncd with `timedatectl set-ntp true`";

pub(super) fn clock() -> Seen {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    judge(since_1970.map_or(0, |now| now.as_secs()), cairn_net::clock_synchronisation())
}

fn judge(seconds: u64, synchronisation: Synchronisation) -> Seen {
    if !(SANE_FROM..SANE_UNTIL).contains(&seconds) {
        return Seen::failed(format!("it stands {seconds} s after 1970, which cannot be now"), MEND);
    }
    match synchronisation {
        Synchronisation::Synchronised => Seen::ok("synchronised"),
        Synchronisation::Unsynchronised => Seen::warning(
            "the kernel does not know it synchronised; requests signed elsewhere may be refused",
            MEND,
        ),
        Synchronisation::Unknown => Seen::ok("set; whether it is synchronised, this process may not ask"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Verdict;

    #[test]
    fn a_clock_that_was_never_set_fails_and_one_that_nobody_keeps_right_is_warned_of() {
        let verdict = |seconds, synchronisation| judge(seconds, synchronisation).verdict;
        for never_set in [0, SANE_FROM - 1, SANE_UNTIL] {
            assert_eq!(verdict(never_set, Synchronisation::Synchronised), Verdict::Failed);
        }
        assert_eq!(verdict(SANE_FROM, Synchronisation::Synchronised), Verdict::Ok);
        assert_eq!(verdict(SANE_FROM, Synchronisation::Unsynchronised), Verdict::Warning);
        assert_eq!(verdict(SANE_FROM, Synchronisation::Unknown), Verdict::Ok);
    }
}
