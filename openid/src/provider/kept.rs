//! A document of the provider that is kept for some time: its metadata, its keys.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cairn_sync::Mutex;

use crate::error::SignInError;
use crate::limits::FAILURE_KEPT;

/// The document as it was read last, for all threads.
pub(super) struct Kept<T> {
    /// Only one thread at a time reads; the others get what it got. Nobody waits for what is known.
    reading: Mutex<()>,
    last: Mutex<Last<T>>,
}

struct Last<T> {
    document: Option<(Arc<T>, Instant)>,
    /// The failure since then.
    failure: Option<(SignInError, Instant)>,
}

impl<T> Kept<T> {
    pub(super) fn new() -> Self {
        let last = Last { document: None, failure: None };
        Self { reading: Mutex::default(), last: Mutex::new(last) }
    }

    /// Returns the document if it was read within this time. Does not wait for a thread that reads.
    pub(super) fn known(&self, age_max: Duration) -> Option<Arc<T>> {
        let last = self.last.lock();
        let (document, read) = last.document.as_ref()?;
        (read.elapsed() < age_max).then(|| Arc::clone(document))
    }

    /// Returns the document, which is read unless that was done within this time.
    ///
    /// # Errors
    /// That of `read`, which is not tried again for [`FAILURE_KEPT`].
    pub(super) fn newer_than(
        &self,
        age_max: Duration,
        read: impl FnOnce() -> Result<T, SignInError>,
    ) -> Result<Arc<T>, SignInError> {
        if let Some(document) = self.known(age_max) {
            return Ok(document);
        }
        let _one = self.reading.lock();
        if let Some(document) = self.known(age_max) {
            return Ok(document);
        }
        if let Some((error, at)) = &self.last.lock().failure
            && at.elapsed() < FAILURE_KEPT
        {
            return Err(error.clone());
        }
        let read = read().map(Arc::new);
        let mut last = self.last.lock();
        match &read {
            Ok(document) => {
                *last = Last { document: Some((Arc::clone(document), Instant::now())), failure: None };
            }
            Err(error) => last.failure = Some((error.clone(), Instant::now())),
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::thread;

    const HOUR: Duration = Duration::from_secs(3600);

    fn failure() -> SignInError {
        SignInError::Unavailable("down".to_owned())
    }

    /// Regression: keys were locked during the request for new ones, so a token with an unknown key stopped all sign-ins.
    #[test]
    fn what_is_known_is_found_while_a_thread_reads_and_only_one_does() {
        let kept = &Kept::new();
        assert_eq!(kept.newer_than(HOUR, || Ok(1)).as_deref(), Ok(&1));
        let (begun, begins) = channel();
        let (release, released) = channel::<()>();
        thread::scope(|scope| {
            let reading = scope.spawn(move || {
                kept.newer_than(Duration::ZERO, || {
                    begun.send(()).expect("the test waits");
                    released.recv().expect("the test releases it");
                    Ok(2)
                })
            });
            begins.recv().expect("it reads");
            assert_eq!(kept.known(HOUR).as_deref(), Some(&1));
            assert_eq!(kept.newer_than(HOUR, || panic!("it is known")).as_deref(), Ok(&1));
            release.send(()).expect("it waits");
            assert_eq!(reading.join().expect("no panic").as_deref(), Ok(&2));
        });
        assert_eq!(kept.known(HOUR).as_deref(), Some(&2));
    }

    /// Regression: after a failure, each wrong token led to another request.
    #[test]
    fn a_failure_is_kept_and_so_is_the_document() {
        let kept = Kept::new();
        let read = || Err(failure());
        assert_eq!(kept.newer_than(HOUR, read), Err(failure()));
        assert_eq!(kept.newer_than(HOUR, || Ok(1)), Err(failure()), "it is not tried again at once");
        let kept = Kept::new();
        assert_eq!(kept.newer_than(HOUR, || Ok(1)).as_deref(), Ok(&1));
        assert_eq!(kept.newer_than(Duration::ZERO, read), Err(failure()));
        assert_eq!(kept.known(HOUR).as_deref(), Some(&1));
        assert_eq!(kept.newer_than(Duration::ZERO, || Ok(2)), Err(failure()));
    }
}
