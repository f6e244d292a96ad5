//! Keeps an environment open while its reading threads end.
//!
//! LMDB stores a pointer to a thread's reader slot in thread-specific data, whose destructor writes to that slot when the
//! thread ends. `mdb_env_close` removes the destructor, then unmaps the slots. If a thread has begun to run its destructors at
//! that moment, it may write to unmapped memory, and the process dies.
//!
//! Rust's destructors of thread-local values run before those of LMDB. So each reading thread has such a value. Its destructor
//! lists the thread as ending. An environment is closed after all listed threads are gone. A thread that is about to be listed
//! waits for a close in progress; afterwards nothing of LMDB's is left to run.

use crate::limits::{THREAD_END_POLL, THREAD_END_WAIT};
use cairn_sync::Mutex;
use std::path::PathBuf;
use std::time::Instant;

/// The folders of the threads that are ending. A folder exists as long as its thread does. Held while an environment is closed.
static ENDING: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Lists its thread as ending when it is dropped.
struct ListedAtEnd;

impl Drop for ListedAtEnd {
    fn drop(&mut self) {
        if let Some(folder) = folder_of_this_thread() {
            let mut ending = ENDING.lock();
            ending.retain(|thread| thread.exists());
            ending.push(folder);
        }
    }
}

/// Returns `/proc/<process>/task/<thread>`, or `None` where `/proc` is not mounted.
fn folder_of_this_thread() -> Option<PathBuf> {
    std::fs::read_link("/proc/thread-self").ok().map(|link| PathBuf::from("/proc").join(link))
}

/// Notes that this thread reads an environment. Call it before the thread's first read.
pub(crate) fn note_reading() {
    thread_local!(static LISTED_AT_END: ListedAtEnd = const { ListedAtEnd });
    // A thread that is already ending cannot be noted. It is listed, or waits for the same lock.
    let _ = LISTED_AT_END.try_with(|_| ());
}

/// Closes an environment, once no thread that has read it is ending. Blocks for about as long as a thread takes to end.
#[expect(clippy::disallowed_methods, reason = "environments are closed where blocking is allowed")]
pub(crate) fn close(close: impl FnOnce()) {
    let mut ending = ENDING.lock();
    let give_up = Instant::now() + THREAD_END_WAIT;
    // This thread cannot run the destructor at the same time.
    let own = folder_of_this_thread();
    loop {
        ending.retain(|thread| thread.exists() && Some(thread) != own.as_ref());
        // The number of a thread that has ended may belong to a new one, which may live for long.
        if ending.is_empty() || Instant::now() > give_up {
            break;
        }
        std::thread::sleep(THREAD_END_POLL);
    }
    ending.clear();
    close();
}

#[cfg(test)]
mod tests {
    use crate::{Environment, EnvironmentOptions};
    use std::ffi::c_void;
    use std::ptr;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::channel;
    use std::time::Duration;

    static IS_ENDING: AtomicBool = AtomicBool::new(false);
    static HAS_ENDED: AtomicBool = AtomicBool::new(false);

    /// A slow destructor of thread-specific data, as LMDB's is when its thread is interrupted.
    #[expect(clippy::disallowed_methods, reason = "the thread is to end slowly")]
    extern "C" fn slow_destructor(_: *mut c_void) {
        IS_ENDING.store(true, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(100));
        HAS_ENDED.store(true, Ordering::SeqCst);
    }

    #[expect(unsafe_code, reason = "the standard library has no thread-specific data with such a destructor")]
    fn set_slow_destructor() {
        let mut key = 0;
        // SAFETY: the key is valid for both calls, and the destructor accepts any pointer.
        unsafe {
            assert_eq!(libc::pthread_key_create(&raw mut key, Some(slow_destructor)), 0);
            assert_eq!(libc::pthread_setspecific(key, ptr::dangling()), 0);
        }
    }

    #[test]
    fn an_environment_is_closed_after_its_ending_readers_are_gone() {
        let folder = tempfile::tempdir().expect("a folder");
        let options = EnvironmentOptions { map_bytes: 1 << 30, tables_max: 4 };
        let environment = Environment::open(folder.path(), options).expect("opens");
        let (may_end, wait) = channel::<()>();
        std::thread::scope(|scope| {
            let environment = &environment;
            let thread = scope.spawn(move || {
                set_slow_destructor();
                drop(environment.read().expect("reads"));
                wait.recv().expect("the test goes on");
            });
            may_end.send(()).expect("the thread waits");
            drop(thread);
        });
        while !IS_ENDING.load(Ordering::SeqCst) {
            std::hint::spin_loop();
        }
        environment.close();
        assert!(HAS_ENDED.load(Ordering::SeqCst));
    }
}
