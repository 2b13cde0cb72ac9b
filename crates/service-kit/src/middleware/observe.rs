//! What is recorded of a request: a span, two histograms, and a log line when it failed.

use std::time::Duration;

use axum::extract::MatchedPath;
use axum::response::Response;
use http::Method;
use tracing::{Span, field};

use crate::health::NOT_READY;
use crate::problem::Cause;
use crate::stages::{Stage, StageTimes, millis};
use crate::telemetry::names;

/// Paths that no route matched are one label: clients must not be able to make up metrics.
const UNMATCHED: &str = "unmatched";

fn label(route: Option<&MatchedPath>) -> &str {
    route.map_or(UNMATCHED, MatchedPath::as_str)
}

/// Methods are a client's to invent as well.
fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

pub(super) fn span(method: &Method, route: Option<&MatchedPath>, request_id: &str) -> Span {
    tracing::info_span!(
        "request",
        method = method_label(method),
        route = label(route),
        request_id,
        status = field::Empty,
        admission_ms = field::Empty,
        pool_ms = field::Empty,
        db_ms = field::Empty,
        hash_ms = field::Empty,
        idp_ms = field::Empty,
        s3_ms = field::Empty,
        verify_ms = field::Empty,
        app_ms = field::Empty,
        total_ms = field::Empty,
    )
}

fn span_field(stage: Stage) -> &'static str {
    match stage {
        Stage::Admission => "admission_ms",
        Stage::Pool => "pool_ms",
        Stage::Db => "db_ms",
        Stage::Hash => "hash_ms",
        Stage::Idp => "idp_ms",
        Stage::S3 => "s3_ms",
        Stage::Verify => "verify_ms",
    }
}

pub(super) fn finished(
    span: &Span,
    method: &Method,
    route: Option<&MatchedPath>,
    response: &Response,
    stages: &StageTimes,
    total: Duration,
) {
    let status = response.status();
    let route = label(route).to_owned();
    span.record("status", status.as_u16());
    for stage in Stage::ALL {
        if let Some(elapsed) = stages.get(stage) {
            span.record(span_field(stage), millis(elapsed));
            metrics::histogram!(names::STAGE_SECONDS, "route" => route.clone(), "stage" => stage.name())
                .record(elapsed);
        }
    }
    let app = stages.app(total);
    span.record("app_ms", millis(app));
    span.record("total_ms", millis(total));
    metrics::histogram!(names::STAGE_SECONDS, "route" => route.clone(), "stage" => "app").record(app);
    metrics::histogram!(
        names::REQUEST_SECONDS,
        "method" => method_label(method), "route" => route, "status" => status.as_str().to_owned()
    )
    .record(total);
    log(span, response);
}

/// One line for each answer that is a failure of ours or of what we depend on; the others only where debugging is on.
fn log(span: &Span, response: &Response) {
    let _entered = span.enter();
    let status = response.status().as_u16();
    let Some(Cause { code, source }) = response.extensions().get::<Cause>() else {
        tracing::debug!(status, "request finished");
        return;
    };
    let source = source.as_ref().map(|source| format!("{source:#}")).unwrap_or_default();
    match (status, *code) {
        // A load balancer asks every few seconds; the reason is in the answer.
        (503, NOT_READY) => tracing::debug!(code, source, "not ready"),
        (503, _) => tracing::warn!(code, source, "request refused"),
        (500.., _) => tracing::error!(code, source, "request failed"),
        (_, _) => tracing::debug!(code, source, "request refused"),
    }
}
