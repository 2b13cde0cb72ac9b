//! How the object store is reached, and how long it may take. Every limit is set on purpose: the SDK's own defaults have no
//! read timeout and no deadline for an operation.

use std::time::Duration;

use aws_config::BehaviorVersion;
use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::config::timeout::TimeoutConfig;
use aws_sdk_s3::config::{
    Credentials, Region, RequestChecksumCalculation, ResponseChecksumValidation, SharedHttpClient,
    StalledStreamProtectionConfig,
};
use aws_smithy_http_client::tls;
use service_kit::config::{Secret, Settings};
use url::Url;

/// The settings of the S3 client. There is one client a task.
#[derive(Debug, Clone)]
pub(crate) struct StorageConfig {
    bucket: String,
    region: String,
    endpoint: Option<Url>,
    force_path_style: bool,
    static_credentials: Option<StaticCredentials>,
    connect_timeout: Duration,
    read_timeout: Duration,
    attempt_timeout: Duration,
    operation_timeout: Duration,
    stall_grace: Duration,
    max_attempts: u32,
    pool_idle_timeout: Duration,
    pool_max_idle: usize,
}

#[derive(Debug, Clone)]
struct StaticCredentials {
    access_key_id: String,
    secret_access_key: Secret,
    session_token: Option<Secret>,
}

impl StorageConfig {
    /// Reads the variables.
    pub(crate) fn read(settings: &mut Settings<'_>) -> Self {
        settings.section("Object store");
        let bucket =
            settings.required_text("S3_BUCKET", "Bucket; everything under `documents/` in it is this service's");
        let region = settings.text("AWS_REGION", "us-east-1", "Region of the bucket");
        let endpoint =
            settings.url("S3_ENDPOINT", None, "Another S3-compatible store than AWS, as http(s)://host:port");
        let force_path_style = settings.switch(
            "S3_FORCE_PATH_STYLE",
            false,
            "Bucket in the path instead of the host name, for local stores",
        );
        let static_credentials = Self::read_credentials(settings);
        let connect_timeout = settings.milliseconds("S3_CONNECT_TIMEOUT_MS", 1_000, 1..=60_000, "To connect");
        let read_timeout = settings.milliseconds(
            "S3_READ_TIMEOUT_MS",
            10_000,
            1..=600_000,
            "From a request's first byte to the head of its answer, a 5 MiB part included",
        );
        let attempt_timeout =
            settings.milliseconds("S3_ATTEMPT_TIMEOUT_MS", 15_000, 1..=600_000, "One attempt of an operation");
        let operation_timeout = settings.milliseconds(
            "S3_OPERATION_TIMEOUT_MS",
            20_000,
            1..=600_000,
            "An operation with all its attempts; each part of an upload is one",
        );
        if connect_timeout > attempt_timeout || read_timeout > attempt_timeout || attempt_timeout > operation_timeout {
            settings.error(
                "S3_OPERATION_TIMEOUT_MS",
                "must not be below S3_ATTEMPT_TIMEOUT_MS, nor that below S3_CONNECT_TIMEOUT_MS or S3_READ_TIMEOUT_MS",
            );
        }
        Self {
            bucket,
            region,
            endpoint,
            force_path_style,
            static_credentials,
            connect_timeout,
            read_timeout,
            attempt_timeout,
            operation_timeout,
            stall_grace: settings.milliseconds(
                "S3_STALL_GRACE_MS",
                5_000,
                1..=600_000,
                "How long a transfer may stand still while we want bytes to flow",
            ),
            max_attempts: settings.number(
                "S3_MAX_ATTEMPTS",
                3_u32,
                1..=10,
                "Attempts of an operation, the first included",
            ),
            // S3 closes idle connections after about 20 s; a client that keeps them longer writes into closed sockets.
            pool_idle_timeout: settings.milliseconds(
                "S3_POOL_IDLE_TIMEOUT_MS",
                15_000,
                1..=600_000,
                "How long an idle connection is kept",
            ),
            pool_max_idle: settings.number("S3_POOL_MAX_IDLE", 32_usize, 0..=1_024, "Idle connections that are kept"),
        }
    }

    /// The environment's credentials go through the settings, so that one process can talk to several stores (tests do).
    fn read_credentials(settings: &mut Settings<'_>) -> Option<StaticCredentials> {
        let access_key_id = settings.optional_text(
            "AWS_ACCESS_KEY_ID",
            "Static credentials; without them the SDK's chain is asked (on ECS: the task role)",
        );
        let secret_access_key = settings.secret("AWS_SECRET_ACCESS_KEY", "Belongs to AWS_ACCESS_KEY_ID");
        let session_token = settings.secret("AWS_SESSION_TOKEN", "Belongs to temporary credentials");
        match (access_key_id, secret_access_key) {
            (Some(access_key_id), Some(secret_access_key)) => {
                Some(StaticCredentials { access_key_id, secret_access_key, session_token })
            }
            (None, None) => None,
            _ => {
                settings.error("AWS_ACCESS_KEY_ID", "and AWS_SECRET_ACCESS_KEY must be set together");
                None
            }
        }
    }

    /// The bucket.
    pub(super) fn bucket(&self) -> &str {
        &self.bucket
    }

    /// Builds the client; nothing is connected or fetched yet.
    pub(super) async fn client(&self) -> aws_sdk_s3::Client {
        let http_client = self.http_client();
        let mut builder = if let Some(given) = &self.static_credentials {
            let token = given.session_token.as_ref().map(|token| token.expose().to_owned());
            let secret = given.secret_access_key.expose();
            aws_sdk_s3::Config::builder()
                .behavior_version(BehaviorVersion::latest())
                .credentials_provider(Credentials::new(&given.access_key_id, secret, token, None, "environment"))
        } else {
            let loader = aws_config::defaults(BehaviorVersion::latest()).region(Region::new(self.region.clone()));
            aws_sdk_s3::config::Builder::from(&Box::pin(loader.http_client(http_client.clone()).load()).await)
        };
        builder = builder
            .region(Region::new(self.region.clone()))
            .http_client(http_client)
            .force_path_style(self.force_path_style)
            .timeout_config(
                TimeoutConfig::builder()
                    .connect_timeout(self.connect_timeout)
                    .read_timeout(self.read_timeout)
                    .operation_attempt_timeout(self.attempt_timeout)
                    .operation_timeout(self.operation_timeout)
                    .build(),
            )
            .retry_config(
                RetryConfig::standard()
                    .with_max_attempts(self.max_attempts)
                    .with_initial_backoff(Duration::from_millis(100))
                    .with_max_backoff(Duration::from_secs(2)),
            )
            // Only time in which the body is asked for bytes counts: a slow reader of a download stalls nobody.
            .stalled_stream_protection(StalledStreamProtectionConfig::enabled().grace_period(self.stall_grace).build())
            // Uploads carry the SHA-256 that is computed while they arrive, in a signed header. The SDK's own default (a CRC
            // in a trailer) would hash every byte once more and is refused by several S3-compatible stores.
            .request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
            .response_checksum_validation(ResponseChecksumValidation::WhenRequired);
        if let Some(endpoint) = &self.endpoint {
            builder = builder.endpoint_url(endpoint.as_str());
        }
        aws_sdk_s3::Client::from_conf(builder.build())
    }

    /// Without TLS where the endpoint has none: the trust store is some megabytes that a local task does not need.
    fn http_client(&self) -> SharedHttpClient {
        let builder = aws_smithy_http_client::Builder::new()
            .pool_idle_timeout(self.pool_idle_timeout)
            .pool_max_idle_per_host(self.pool_max_idle);
        if self.endpoint.as_ref().is_some_and(|endpoint| endpoint.scheme() == "http") {
            return builder.build_http();
        }
        builder.tls_provider(tls::Provider::Rustls(tls::rustls_provider::CryptoMode::AwsLc)).build_https()
    }
}

#[cfg(test)]
mod tests {
    use service_kit::config::{self, Environment};

    use super::*;

    fn errors(pairs: &[(&str, &str)]) -> String {
        let bucket = [("S3_BUCKET", "b")];
        let environment = Environment::from_pairs(bucket.iter().chain(pairs).copied());
        config::load(&environment, StorageConfig::read).map_or_else(|errors| errors.to_string(), |_| String::new())
    }

    #[test]
    fn a_bucket_is_enough() {
        assert_eq!(errors(&[]), "");
    }

    #[test]
    fn timeouts_must_fit_into_each_other() {
        for pairs in [
            [("S3_ATTEMPT_TIMEOUT_MS", "20001")],
            [("S3_READ_TIMEOUT_MS", "15001")],
            [("S3_CONNECT_TIMEOUT_MS", "15001")],
            [("S3_OPERATION_TIMEOUT_MS", "14999")],
        ] {
            assert!(errors(&pairs).contains("S3_OPERATION_TIMEOUT_MS"), "{pairs:?}: {}", errors(&pairs));
        }
    }

    #[test]
    fn half_a_pair_of_credentials_is_an_error() {
        assert!(errors(&[("AWS_ACCESS_KEY_ID", "x")]).contains("together"));
        assert!(errors(&[("AWS_SECRET_ACCESS_KEY", "x")]).contains("together"));
        assert_eq!(errors(&[("AWS_ACCESS_KEY_ID", "x"), ("AWS_SECRET_ACCESS_KEY", "y")]), "");
    }
}
