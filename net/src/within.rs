//! Waiting for work for a limited time, for services that have something to say meanwhile.

use futures_lite::FutureExt;
use std::future::Future;
use std::time::Duration;

/// What `work` gives, or `None` when it has not ended within `time`. The work is not dropped when it is borrowed
/// (`&mut work`): it can be waited for again. Only on an executor of this crate.
pub async fn within<T>(time: Duration, work: impl Future<Output = T>) -> Option<T> {
    let expired = async {
        glommio::timer::sleep(time).await;
        None
    };
    async { Some(work.await) }.or(expired).await
}
