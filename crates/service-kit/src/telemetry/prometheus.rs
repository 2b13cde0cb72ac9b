//! Metrics in Prometheus' text format, one recorder a process.

use std::sync::OnceLock;
use std::time::Duration;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

/// Upper bounds in seconds: half a millisecond to ten seconds, about doubling, denser where the service levels lie.
const BUCKETS_SECONDS: &[f64] = &[
    0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.025, 0.04, 0.06, 0.1, 0.15, 0.25, 0.4, 0.6, 1.0, 1.5,
    2.5, 4.0, 6.0, 10.0,
];

static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();

/// Installs the recorder once; later calls change nothing. Where another recorder is installed already, metrics go there.
pub(crate) fn install() {
    HANDLE.get_or_init(|| {
        let recorder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), BUCKETS_SECONDS)
            .map(PrometheusBuilder::build_recorder);
        // The bucket list is a constant and not empty, the one error that there is.
        let recorder = recorder.unwrap_or_else(|_| PrometheusBuilder::new().build_recorder());
        let handle = recorder.handle();
        let _ = metrics::set_global_recorder(recorder);
        handle
    });
}

/// Every metric in Prometheus' text format.
#[must_use]
pub fn render() -> String {
    install();
    HANDLE.get().map(PrometheusHandle::render).unwrap_or_default()
}

/// Moves recorded samples into their buckets every few seconds: without it, memory grows until somebody asks for
/// `/metrics`. Runs until the runtime ends.
pub fn start_upkeep() {
    install();
    tokio::spawn(async {
        let mut ticks = tokio::time::interval(Duration::from_secs(5));
        loop {
            ticks.tick().await;
            if let Some(handle) = HANDLE.get() {
                handle.run_upkeep();
            }
        }
    });
}
