//! Checks the clock: signatures are accepted within fifteen minutes of it, and versions are dated by it.

use std::time::SystemTime;

use cairn_net::Synchronisation;

use super::Finding;

/// A clock earlier than this was never set: 1 January 2025, in seconds since 1970.
const SANE_FROM: u64 = 1_735_689_600;
/// A clock later than this is wrong: 1 January 2100.
const SANE_UNTIL: u64 = 4_102_444_800;
const FIX: &str =
    "run a time synchronisation service: chrony, or systemd-timesyncd (`timedatectl set-ntp true`)";

pub(super) fn clock() -> Finding {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    judge(since_1970.map_or(0, |now| now.as_secs()), cairn_net::clock_synchronisation())
}

fn judge(seconds: u64, synchronisation: Synchronisation) -> Finding {
    if !(SANE_FROM..SANE_UNTIL).contains(&seconds) {
        return Finding::failed(format!("it shows {seconds} s after 1970, which is not plausible"), FIX);
    }
    match synchronisation {
        Synchronisation::Synchronised => Finding::ok("synchronised"),
        Synchronisation::Unsynchronised => Finding::warning(
            "the kernel reports that it is not synchronised; requests signed on other hosts may be refused",
            FIX,
        ),
        Synchronisation::Unknown => Finding::ok("set; this process may not ask whether it is synchronised"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Verdict;

    #[test]
    fn an_implausible_clock_fails_and_an_unsynchronised_one_warns() {
        let verdict = |seconds, synchronisation| judge(seconds, synchronisation).verdict;
        for never_set in [0, SANE_FROM - 1, SANE_UNTIL] {
            assert_eq!(verdict(never_set, Synchronisation::Synchronised), Verdict::Failed);
        }
        assert_eq!(verdict(SANE_FROM, Synchronisation::Synchronised), Verdict::Ok);
        assert_eq!(verdict(SANE_FROM, Synchronisation::Unsynchronised), Verdict::Warning);
        assert_eq!(verdict(SANE_FROM, Synchronisation::Unknown), Verdict::Ok);
    }
}
