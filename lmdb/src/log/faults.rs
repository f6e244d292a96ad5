//! Planted mistakes and observed moments, which the tests of power cuts need. Without tests, nothing is planted or observed.

use std::fmt;

/// A mistake that a test plants. The test of power cuts must find each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFlaw {
    /// The data file is not flushed before its checkpoint is written.
    NoFlush,
    /// The earlier snapshot is released before the new checkpoint is written.
    EarlyRelease,
    /// The checkpoint has the roots of the transaction before its snapshot.
    EarlierRoots,
    /// Records are freed before the checkpoint that replaces them is durable.
    EarlyFree,
    /// A record is not waited for.
    UnflushedRecord,
    /// A copy of the data file gets its name before it is flushed.
    UnflushedCopy,
}

/// A moment at which the power may be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// A record of `bytes` bytes is about to be written at `offset`.
    WritesRecord { offset: u64, bytes: usize },
    /// The record is durable.
    WroteRecord,
    /// LMDB has committed.
    Committed,
    /// The data file is about to be flushed.
    FlushesData,
    /// The content of the data file at that time is durable.
    FlushedData,
    /// A copy of the checkpoint was written, but not flushed.
    WroteCheckpoint,
    /// It is durable, with everything that the data file contained then.
    FlushedCheckpoint,
    /// The earlier snapshot or its records were released, by mistake.
    ReleasedEarly,
    /// A copy of the data file was flushed as a whole.
    FlushedCopy,
    /// The copy, flushed or not, is about to get the name of the data file.
    ReplacesData,
    /// It has the name, but the folder was not flushed.
    ReplacedData,
    /// The name is durable.
    FlushedFolder,
}

#[cfg(test)]
type Observer = Box<dyn Fn(Moment) + Send + Sync>;

/// The planted mistake and the observer of an environment.
#[derive(Default)]
pub(crate) struct LogFaults {
    #[cfg(test)]
    flaw: std::sync::OnceLock<LogFlaw>,
    #[cfg(test)]
    observer: std::sync::OnceLock<Observer>,
}

impl fmt::Debug for LogFaults {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("LogFaults")
    }
}

#[cfg(test)]
impl LogFaults {
    /// Plants a mistake.
    pub(crate) fn plant(&self, flaw: LogFlaw) {
        self.flaw.set(flaw).expect("one mistake is planted");
    }

    /// Calls `observer` at each moment.
    pub(crate) fn observe(&self, observer: Observer) {
        assert!(self.observer.set(observer).is_ok(), "there is one observer");
    }

    pub(crate) fn has(&self, flaw: LogFlaw) -> bool {
        self.flaw.get() == Some(&flaw)
    }

    pub(crate) fn pass(&self, moment: Moment) {
        if let Some(observer) = self.observer.get() {
            observer(moment);
        }
    }
}

#[cfg(not(test))]
impl LogFaults {
    #[expect(clippy::unused_self, reason = "as in tests")]
    pub(crate) const fn has(&self, _flaw: LogFlaw) -> bool {
        false
    }

    #[expect(clippy::unused_self, reason = "as in tests")]
    pub(crate) const fn pass(&self, _moment: Moment) {}
}
