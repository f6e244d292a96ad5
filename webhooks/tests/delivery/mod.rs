//! Delivery through the public handle.
//!
//! The source of events, the client and the clock are doubles that tests control.

mod durability;
mod fairness;
mod full_disk;
mod loading;
mod log;
mod management;
mod redelivery;
mod schedule;
mod support;
