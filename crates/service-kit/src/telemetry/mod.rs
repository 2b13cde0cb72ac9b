//! What a task tells about itself: JSON logs, Prometheus metrics, optional OpenTelemetry traces.
//!
//! Logs carry no secrets and no addresses: neither a person's (email) nor a machine's (IP). What identifies a request is
//! its request id.

mod logs;
mod prometheus;
mod traces;

pub use logs::{LogConfig, LogFormat, log_filter};
pub(crate) use prometheus::install as install_metrics;
pub use prometheus::{render, start_upkeep};

use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::config::Settings;

/// Names of the metrics that every service has.
pub mod names {
    /// Histogram, seconds: whole requests by `method`, `route`, `status`.
    pub const REQUEST_SECONDS: &str = "http_request_duration_seconds";
    /// Histogram, seconds: stages of requests by `route`, `stage`.
    pub const STAGE_SECONDS: &str = "http_stage_duration_seconds";
    /// Gauge: open client connections.
    pub const CONNECTIONS: &str = "http_connections";
    /// Counter: connections that waited because the cap was reached.
    pub const CONNECTIONS_CAPPED: &str = "http_connections_capped_total";
}

/// How a task logs and traces.
#[derive(Debug, Clone)]
pub struct TelemetryConfig {
    log: LogConfig,
    traces: Option<traces::TraceConfig>,
}

impl TelemetryConfig {
    /// Reads the variables.
    pub fn read(settings: &mut Settings<'_>) -> Self {
        settings.section("Telemetry");
        Self { log: LogConfig::read(settings), traces: traces::TraceConfig::read(settings) }
    }
}

/// Keeps the background writers alive; dropping it flushes them.
#[must_use]
pub struct TelemetryGuard {
    _logs: tracing_appender::non_blocking::WorkerGuard,
    traces: Option<opentelemetry_sdk::trace::SdkTracerProvider>,
}

impl Drop for TelemetryGuard {
    fn drop(&mut self) {
        if let Some(provider) = self.traces.take() {
            // A collector that is gone must not keep the task from ending.
            let _ = provider.shutdown_with_timeout(std::time::Duration::from_secs(2));
        }
    }
}

/// Installs logging, metrics and (where configured) tracing for the process. Call it once, inside the runtime.
///
/// # Errors
/// When the process has them already, or the trace exporter cannot be built.
pub fn init(config: &TelemetryConfig, service: &'static str) -> anyhow::Result<TelemetryGuard> {
    install_metrics();
    let (log_layer, guard) = logs::layer(&config.log);
    let provider = config.traces.as_ref().map(|traces| traces::provider(traces, service)).transpose()?;
    let trace_layer = provider.as_ref().map(traces::layer);
    tracing_subscriber::registry().with(log_filter(&config.log.filter)).with(log_layer).with(trace_layer).try_init()?;
    Ok(TelemetryGuard { _logs: guard, traces: provider })
}
