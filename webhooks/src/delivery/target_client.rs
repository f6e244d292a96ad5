//! The HTTP client as a trait, so that tests can replace it.

use crate::client::{Client, Delivery, Probe, Sender};

/// Makes requests to targets. The product uses [`Client`].
pub trait TargetClient: Sender {
    /// Makes one attempt and reports its steps. Blocks as long as [`Sender::deliver`].
    fn probe(&self, delivery: &Delivery<'_>) -> Probe;

    /// Interrupts the attempts that are running. Further ones fail.
    fn shut_down(&self);

    /// Closes kept connections that are not in use. Called about once a minute.
    fn close_idle_connections(&self);
}

impl TargetClient for Client {
    fn probe(&self, delivery: &Delivery<'_>) -> Probe {
        Self::probe(self, delivery)
    }

    fn shut_down(&self) {
        Self::shut_down(self);
    }

    fn close_idle_connections(&self) {
        Self::close_idle_connections(self);
    }
}
