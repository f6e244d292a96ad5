//! Notices that people dismissed for a while.

use cairn_model::Timestamp;

/// Most things that are dismissed at a time. The list of what needs attention is far shorter.
const DISMISSALS_MAX: usize = 256;

/// Something that is not shown for a while.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Dismissal {
    /// The name of the notice, as the console gives it.
    pub(crate) subject: String,
    /// Until when.
    pub(crate) until: Timestamp,
    /// The principal that dismissed it.
    pub(crate) by: String,
}

/// As many things are dismissed as can be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TooMany;

/// All dismissals. There is at most one of each subject.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Dismissals(Vec<Dismissal>);

impl Dismissals {
    /// Takes what was kept. More than can be are left out.
    pub(super) fn kept(mut dismissals: Vec<Dismissal>) -> Self {
        dismissals.truncate(DISMISSALS_MAX);
        Self(dismissals)
    }

    /// Returns all that were set, also those that are over.
    pub(super) fn all(&self) -> &[Dismissal] {
        &self.0
    }

    /// Returns what is dismissed at a time.
    pub(super) fn at(&self, now: Timestamp) -> Vec<Dismissal> {
        self.0.iter().filter(|dismissal| dismissal.until > now).cloned().collect()
    }

    /// Adds or replaces a dismissal. One that is over is removed.
    ///
    /// # Errors
    /// [`TooMany`].
    pub(super) fn set(&mut self, dismissal: Dismissal, now: Timestamp) -> Result<(), TooMany> {
        self.0.retain(|known| known.until > now && known.subject != dismissal.subject);
        if dismissal.until <= now {
            return Ok(());
        }
        if self.0.len() >= DISMISSALS_MAX {
            return Err(TooMany);
        }
        self.0.push(dismissal);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dismissal(subject: &str, until: u64) -> Dismissal {
        Dismissal { subject: subject.to_owned(), until: Timestamp(until), by: "root".to_owned() }
    }

    #[test]
    fn dismissals_end_and_are_limited() {
        let mut all = Dismissals::default();
        assert_eq!(all.set(dismissal("a", 10), Timestamp(1)), Ok(()));
        assert_eq!(all.set(dismissal("a", 20), Timestamp(1)), Ok(()));
        assert_eq!((all.at(Timestamp(19)), all.at(Timestamp(20))), (vec![dismissal("a", 20)], vec![]));
        assert_eq!(all.set(dismissal("a", 0), Timestamp(2)), Ok(()), "taken back");
        assert_eq!(all.at(Timestamp(2)), []);
        for number in 0..DISMISSALS_MAX {
            assert_eq!(all.set(dismissal(&number.to_string(), 10), Timestamp(3)), Ok(()));
        }
        assert_eq!(all.set(dismissal("one more", 10), Timestamp(3)), Err(TooMany));
        assert_eq!(all.set(dismissal("0", 20), Timestamp(3)), Ok(()), "one that is there can be replaced");
        assert_eq!(all.set(dismissal("one more", 20), Timestamp(10)), Ok(()), "the others are over");
    }
}
