//! Logs: lines on standard output, written by a thread of their own.

use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{EnvFilter, Layer};

use crate::config::Settings;

/// How lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON object a line, for machines.
    Json,
    /// For eyes.
    Text,
}

/// What is logged, and how.
#[derive(Debug, Clone)]
pub struct LogConfig {
    format: LogFormat,
    pub(super) filter: String,
}

impl LogConfig {
    pub(super) fn read(settings: &mut Settings<'_>) -> Self {
        const FORMATS: &[(&str, LogFormat)] = &[("json", LogFormat::Json), ("text", LogFormat::Text)];
        Self {
            format: settings.choice("LOG_FORMAT", "json", FORMATS, "json or text"),
            filter: settings
                .parsed("LOG_LEVEL", "info", "Level, or directives such as info,auth=debug", |text| {
                    EnvFilter::try_new(text).map(|_| text.to_owned()).map_err(|error| format!("is no filter: {error}"))
                })
                .unwrap_or_else(|| "info".to_owned()),
        }
    }
}

/// Lines waiting for a slow standard output. Beyond that they are dropped and counted by the writer: a reader that stops
/// must not stop the requests (a blocking `write` on a worker thread would).
const BUFFERED_LINES: usize = 16_384;

/// The filter of `LOG_LEVEL`, except that no level and no directive shows what must not be in a log.
#[must_use]
pub fn log_filter(directives: &str) -> EnvFilter {
    // tokio-postgres logs the parameters of every statement at debug: emails, hashes, names. The last of two directives for
    // one target holds, the longer target before the shorter one: both are named.
    EnvFilter::new(format!("{directives},tokio_postgres=warn,tokio_postgres::query=warn"))
}

pub(super) fn layer<S>(config: &LogConfig) -> (Box<dyn Layer<S> + Send + Sync>, WorkerGuard)
where
    S: tracing::Subscriber + for<'a> LookupSpan<'a>,
{
    let (writer, guard) =
        NonBlockingBuilder::default().lossy(true).buffered_lines_limit(BUFFERED_LINES).finish(std::io::stdout());
    let layer = tracing_subscriber::fmt::layer().with_writer(writer).with_target(true);
    let layer = match config.format {
        LogFormat::Json => layer.json().flatten_event(true).with_span_list(false).boxed(),
        LogFormat::Text => layer.with_ansi(false).boxed(),
    };
    (layer, guard)
}
