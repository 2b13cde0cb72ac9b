//! Traces over OTLP/HTTP, where a collector is configured.

use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use tracing_opentelemetry::OpenTelemetryLayer;
use tracing_subscriber::registry::LookupSpan;
use url::Url;

use crate::config::Settings;

/// Where spans go and how many of them.
#[derive(Debug, Clone)]
pub(super) struct TraceConfig {
    endpoint: Url,
    sample_percent: u32,
}

impl TraceConfig {
    pub(super) fn read(settings: &mut Settings<'_>) -> Option<Self> {
        let endpoint = settings.url(
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            None,
            "OTLP/HTTP collector, such as http://127.0.0.1:4318; unset: no traces",
        );
        let sample_percent =
            settings.number("TRACE_SAMPLE_PERCENT", 10_u32, 0..=100, "Share of the requests that are traced");
        endpoint.map(|endpoint| Self { endpoint, sample_percent })
    }
}

pub(super) fn provider(config: &TraceConfig, service: &'static str) -> anyhow::Result<SdkTracerProvider> {
    let traces = format!("{}/v1/traces", config.endpoint.as_str().trim_end_matches('/'));
    let exporter = SpanExporter::builder().with_http().with_endpoint(traces).build()?;
    let resource = Resource::builder()
        .with_service_name(format!("datum-{service}"))
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .build();
    let sampler = Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(f64::from(config.sample_percent) / 100.0)));
    Ok(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).with_sampler(sampler).build())
}

pub(super) fn layer<S>(provider: &SdkTracerProvider) -> OpenTelemetryLayer<S, opentelemetry_sdk::trace::Tracer>
where
    S: tracing::Subscriber + for<'a> LookupSpan<'a>,
{
    tracing_opentelemetry::layer().with_tracer(provider.tracer("datum"))
}
