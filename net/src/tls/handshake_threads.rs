//! The threads that answer a client's hello: they agree on keys and sign.
//!
//! A signature with an RSA key takes a processor for a millisecond and more. On an executor every connection would wait for
//! it; on a thread of its own it shares the processor with the executors, as the kernel sees fit. The rest of a handshake
//! is cheap and stays with the connection.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use futures_channel::oneshot;
use rustls::server::{Accepted, AcceptedAlert};
use rustls::{ServerConfig, ServerConnection};

/// What becomes of a hello.
pub(super) type Answered = Result<ServerConnection, (rustls::Error, AcceptedAlert)>;

struct Hello {
    accepted: Accepted,
    config: Arc<ServerConfig>,
    answered: oneshot::Sender<Answered>,
}

/// The threads; they end with the last clone of this. Each connection has at most one hello in their queue, so the limit
/// on connections bounds it.
#[derive(Clone, Debug)]
pub struct HandshakeThreads(Sender<Hello>);

impl HandshakeThreads {
    /// Starts so many threads.
    ///
    /// # Errors
    /// When one cannot be started.
    pub fn start(count: usize) -> io::Result<Self> {
        let (sender, hellos) = channel();
        let hellos = Arc::new(Mutex::new(hellos));
        for index in 0..count {
            let hellos = Arc::clone(&hellos);
            thread::Builder::new().name(format!("handshake-{index}")).spawn(move || answer_all(&hellos))?;
        }
        Ok(Self(sender))
    }

    /// Answers a hello under `config`. None when the thread that had it has failed, or there is none.
    pub(super) async fn answer(&self, accepted: Accepted, config: Arc<ServerConfig>) -> Option<Answered> {
        let (answered, answer) = oneshot::channel();
        self.0.send(Hello { accepted, config, answered }).ok()?;
        answer.await.ok()
    }
}

fn answer_all(hellos: &Mutex<Receiver<Hello>>) {
    loop {
        // One thread waits with the lock held, and the others for the lock.
        let next = hellos.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Hello { accepted, config, answered }) = next else { return };
        // A client that has gone by now needs no signature.
        if answered.is_canceled() {
            continue;
        }
        // A panic ends one handshake; the panic hook has told of it.
        if let Ok(answer) = catch_unwind(AssertUnwindSafe(|| accepted.into_connection(config))) {
            let _ = answered.send(answer);
        }
    }
}
