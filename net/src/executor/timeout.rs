//! Waits for a future for a limited time.

use futures_lite::FutureExt;
use std::future::Future;
use std::time::Duration;

/// Returns the output of `work`, or `None` when it has not finished within `time`. Work that is borrowed (`&mut work`)
/// is not dropped and can be waited for again. Only on an executor of this crate.
pub async fn timeout<T>(time: Duration, work: impl Future<Output = T>) -> Option<T> {
    let expired = async {
        glommio::timer::sleep(time).await;
        None
    };
    async { Some(work.await) }.or(expired).await
}
