//! A runtime that outlives every test: what tests share must not be driven by the runtime of the test that was first.

use std::{future::Future, sync::LazyLock};

use tokio::runtime::{Builder, Runtime};

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    Builder::new_multi_thread().worker_threads(1).thread_name("test-support").enable_all().build().expect("a runtime")
});

/// Runs to the end in the shared runtime, even when the caller goes away; panics as the future does.
pub(crate) async fn run<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> T {
    match RUNTIME.spawn(future).await {
        Ok(value) => value,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// Starts in the shared runtime and does not wait.
pub(crate) fn spawn(future: impl Future<Output = ()> + Send + 'static) {
    RUNTIME.spawn(future);
}
