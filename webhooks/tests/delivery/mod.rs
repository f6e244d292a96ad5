//! Delivery through the public handle, with a source of events and a client that tests control.

mod durability;
mod fairness;
mod log;
mod management;
mod redelivery;
mod schedule;
mod support;
