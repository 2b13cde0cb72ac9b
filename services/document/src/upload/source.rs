//! The bytes of a request body, as they arrive.

use axum::body::Body;
use bytes::Bytes;
use http_body_util::BodyExt;
use service_kit::Result;
use service_kit::extract::broken_body;

/// Reads a body chunk by chunk; nothing is read ahead of what is asked for.
#[derive(Debug)]
pub(super) struct Source(Body);

impl Source {
    pub(super) fn new(body: Body) -> Self {
        Self(body)
    }

    /// The next bytes, never empty; `None` at the end.
    ///
    /// # Errors
    /// 408 where the client fell silent, 400 where the body broke off.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>> {
        while let Some(frame) = self.0.frame().await {
            // Trailers say nothing about the file.
            let Ok(data) = frame.map_err(|error| broken_body(&error))?.into_data() else { continue };
            if !data.is_empty() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }
}
