//! Threads that answer client hellos: the key agreement and signature of a TLS handshake.
//!
//! A signature with an RSA key takes a millisecond or more. On an executor, every connection would wait for it. On a
//! thread of its own, it shares the processor with the executors. The rest of a handshake is cheap and runs on the
//! executor.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use cairn_sync::Mutex;
use futures_channel::oneshot;
use rustls::server::{Accepted, AcceptedAlert};
use rustls::{ServerConfig, ServerConnection};

use crate::limits::HELLOS_WAITING_MAX;

/// The result of a hello: a session, or an error and the alert to send.
pub(crate) type HelloAnswer = Result<ServerConnection, (rustls::Error, AcceptedAlert)>;

struct Hello {
    accepted: Accepted,
    config: Arc<ServerConfig>,
    answer: oneshot::Sender<HelloAnswer>,
}

/// A pool of threads that answer client hellos. They end with the last clone of this handle.
///
/// The queue has its own limit: the hello of a connection that was closed remains until it is its turn, and the limit on
/// connections does not count it.
#[derive(Clone, Debug)]
pub struct HandshakeThreads(SyncSender<Box<Hello>>);

impl HandshakeThreads {
    /// Starts `count` threads.
    ///
    /// # Errors
    /// An error when a thread cannot be started.
    pub fn start(count: usize) -> io::Result<Self> {
        Self::start_with_limit(count, HELLOS_WAITING_MAX)
    }

    fn start_with_limit(count: usize, waiting_max: usize) -> io::Result<Self> {
        let (sender, hellos) = sync_channel(waiting_max);
        let hellos = Arc::new(Mutex::new(hellos));
        for index in 0..count {
            let hellos = Arc::clone(&hellos);
            thread::Builder::new().name(format!("handshake-{index}")).spawn(move || answer_all(&hellos))?;
        }
        Ok(Self(sender))
    }

    /// Answers a hello with `config`. Returns `None` when too many are waiting, when its thread has panicked, or when there
    /// are no threads.
    pub(crate) async fn answer(&self, accepted: Accepted, config: Arc<ServerConfig>) -> Option<HelloAnswer> {
        let (answer, answered) = oneshot::channel();
        self.0.try_send(Box::new(Hello { accepted, config, answer })).ok()?;
        answered.await.ok()
    }
}

fn answer_all(hellos: &Mutex<Receiver<Box<Hello>>>) {
    loop {
        // One thread waits for a hello and holds the lock; the others wait for the lock.
        let next = hellos.lock().recv();
        let Ok(hello) = next else { return };
        let Hello { accepted, config, answer } = *hello;
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

#[cfg(test)]
mod tests {
    use super::*;
    use futures_lite::future::{block_on, poll_once};
    use rustls::crypto::ring::default_provider;
    use rustls::server::{Acceptor, ClientHello, ResolvesServerCert};
    use rustls::sign::CertifiedKey;
    use rustls::{ClientConfig, ClientConnection, RootCertStore};
    use std::sync::mpsc::{Sender, channel};

    /// Says that a hello is being answered, and waits for the end of the test. There is no certificate.
    #[derive(Debug)]
    struct Blocked(Sender<()>, Mutex<Receiver<()>>);

    impl ResolvesServerCert for Blocked {
        fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
            let _ = self.0.send(());
            let _ = self.1.lock().recv();
            None
        }
    }

    fn hello() -> Accepted {
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
        let name = "localhost".try_into().expect("a name");
        let mut bytes = Vec::new();
        let mut client = ClientConnection::new(Arc::new(config), name).expect("a client");
        client.write_tls(&mut bytes).expect("writes");
        let mut acceptor = Acceptor::default();
        acceptor.read_tls(&mut bytes.as_slice()).expect("reads");
        acceptor.accept().ok().flatten().expect("a whole hello")
    }

    /// Clients that connected, sent a hello and disconnected filled the memory while the threads were busy.
    #[test]
    fn hellos_of_closed_connections_are_limited() {
        let threads = HandshakeThreads::start_with_limit(1, 2).expect("starts");
        let (begun, begins) = channel();
        let (end, ends) = channel();
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(Blocked(begun, Mutex::new(ends))));
        let config = Arc::new(config);
        let answer = || threads.answer(hello(), Arc::clone(&config));
        let mut first = Box::pin(answer());
        assert!(block_on(poll_once(&mut first)).is_none());
        begins.recv().expect("the thread is busy");
        for _ in 0..2 {
            // Dropped at once, as of a connection that was closed.
            assert!(block_on(poll_once(answer())).is_none());
        }
        let refused = block_on(poll_once(answer()));
        assert!(matches!(refused, Some(None)), "it does not wait");
        drop(end);
        assert!(matches!(block_on(first), Some(Err(_))));
        while block_on(answer()).is_none() {
            std::thread::yield_now();
        }
    }
}
