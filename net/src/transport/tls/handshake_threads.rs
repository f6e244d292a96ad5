//! Threads that answer client hellos: the key agreement and signature of a TLS handshake.
//!
//! A signature with an RSA key takes a millisecond or more. On an executor, every connection would wait for it. On a
//! thread of its own, it shares the processor with the executors. The rest of a handshake is cheap and runs on the
//! executor.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use futures_channel::oneshot;
use rustls::server::{Accepted, AcceptedAlert};
use rustls::{ServerConfig, ServerConnection};

/// The result of a hello: a session, or an error and the alert to send.
pub(crate) type HelloAnswer = Result<ServerConnection, (rustls::Error, AcceptedAlert)>;

struct Hello {
    accepted: Accepted,
    config: Arc<ServerConfig>,
    answer: oneshot::Sender<HelloAnswer>,
}

/// A pool of threads that answer client hellos. They end with the last clone of this handle.
///
/// Each connection has at most one hello in the queue, so the limit on connections bounds the queue.
#[derive(Clone, Debug)]
pub struct HandshakeThreads(Sender<Hello>);

impl HandshakeThreads {
    /// Starts `count` threads.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn start(count: usize) -> io::Result<Self> {
        let (sender, hellos) = channel();
        let hellos = Arc::new(Mutex::new(hellos));
        for index in 0..count {
            let hellos = Arc::clone(&hellos);
            thread::Builder::new().name(format!("handshake-{index}")).spawn(move || answer_all(&hellos))?;
        }
        Ok(Self(sender))
    }

    /// Answers a hello with `config`. Returns `None` when its thread has panicked or there are no threads.
    pub(crate) async fn answer(&self, accepted: Accepted, config: Arc<ServerConfig>) -> Option<HelloAnswer> {
        let (answer, answered) = oneshot::channel();
        self.0.send(Hello { accepted, config, answer }).ok()?;
        answered.await.ok()
    }
}

fn answer_all(hellos: &Mutex<Receiver<Hello>>) {
    loop {
        // One thread waits for a hello and holds the lock; the others wait for the lock.
        let next = hellos.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Hello { accepted, config, answer }) = next else { return };
        // Skip the signature when the client has disconnected meanwhile.
        if answer.is_canceled() {
            continue;
        }
        // A panic ends only this handshake. The panic hook has logged it.
        if let Ok(result) = catch_unwind(AssertUnwindSafe(|| accepted.into_connection(config))) {
            let _ = answer.send(result);
        }
    }
}
