//! Lifecycle rules at work: the worker that removes what is due, and previews.
//!
//! One executor runs the worker, in the background. It keeps the due indexes that the buckets' rules need, finds what is due
//! with a range scan of the index, and sends it to the committers in small commands. The committers decide. There is no queue
//! between both, and no state to resume: what is not removed stays in the index.

mod due_page;
mod preview;
mod run;
mod schedule;
mod upcoming;
mod worker;

pub use worker::LifecycleOptions;
