//! What can go wrong between this task and the object store.

use std::time::Duration;

use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::operation::RequestId;
use service_kit::problem::Problem;

/// After which a client may try again: longer than a blip of the store, shorter than a person's patience.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// A failed operation. The text is for logs: it names no address and no key.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StorageError {
    /// There is no such object.
    #[error("{operation}: there is no such object")]
    Missing { operation: &'static str },
    /// There is no such multipart upload: never begun, completed or aborted.
    #[error("{operation}: there is no such multipart upload")]
    NoSuchUpload { operation: &'static str },
    /// The store cannot do this at all.
    #[error("{operation}: the store does not know the operation")]
    Unsupported { operation: &'static str },
    /// Anything else.
    #[error("{operation}: {reason}")]
    Failed { operation: &'static str, reason: String },
}

impl StorageError {
    /// An answer that does not say what it must.
    pub(super) fn unexpected(operation: &'static str, reason: impl Into<String>) -> Self {
        Self::Failed { operation, reason: reason.into() }
    }

    pub(super) fn of<E: ProvideErrorMetadata>(operation: &'static str, error: &SdkError<E>) -> Self {
        let reason = match error {
            SdkError::ConstructionFailure(_) => "the request could not be built (credentials?)".to_owned(),
            SdkError::TimeoutError(_) => "timed out".to_owned(),
            SdkError::DispatchFailure(failure) if failure.is_timeout() => {
                "timed out while connecting or reading".to_owned()
            }
            SdkError::DispatchFailure(failure) if failure.is_io() => "the connection failed".to_owned(),
            SdkError::DispatchFailure(failure) if failure.is_user() => {
                "the request was refused by the client".to_owned()
            }
            SdkError::DispatchFailure(_) => {
                "the request could not be sent (no credentials, or no connection)".to_owned()
            }
            SdkError::ResponseError(_) => "the answer could not be read".to_owned(),
            SdkError::ServiceError(service) => {
                let meta = service.err().meta();
                match (meta.code(), service.raw().status().as_u16()) {
                    (Some("NoSuchKey"), _) => return Self::Missing { operation },
                    (Some("NoSuchUpload"), _) => return Self::NoSuchUpload { operation },
                    (Some("NotImplemented"), _) | (_, 501) => return Self::Unsupported { operation },
                    (code, status) => format!(
                        "status {status}, code {}, S3 request id {}",
                        code.unwrap_or("none"),
                        meta.request_id().unwrap_or("none")
                    ),
                }
            }
            _ => "failed".to_owned(),
        };
        Self::Failed { operation, reason }
    }
}

impl From<StorageError> for Problem {
    fn from(error: StorageError) -> Self {
        Problem::unavailable("storage_unavailable", "The document store does not answer as it should.", RETRY_AFTER)
            .with_source(error)
    }
}
