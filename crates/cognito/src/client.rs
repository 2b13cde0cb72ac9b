//! The one client of a task.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use aws_config::BehaviorVersion;
use aws_sdk_cognitoidentityprovider as sdk;
use aws_smithy_http_client::pool::{self, ConnectionEvent, ConnectionPool, DriverSpawner, Partition, PartitionId};
use aws_smithy_http_client::tls;
use sdk::config::retry::RetryConfig;
use sdk::config::timeout::TimeoutConfig;
use sdk::config::{Credentials, Region, SharedHttpClient, StalledStreamProtectionConfig};
use tokio::runtime::Handle;

use crate::admission::Admission;
use crate::answer_size::BoundedAnswers;
use crate::config::{CognitoConfig, Confirmation, LoginConfig};
use crate::retry_budget::RetryBudget;

/// Amazon Cognito. Clones share connections, limits and budgets: there is one a task.
#[derive(Clone)]
pub struct Cognito(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) sdk: sdk::Client,
    pub(crate) admission: Admission,
    pub(crate) budget: RetryBudget,
    pub(crate) operation_timeout: Duration,
    pub(crate) get_user_timeout: Duration,
    pub(crate) max_attempts: u32,
}

impl Cognito {
    /// A client for calls that need no credentials of AWS; connects to nothing yet.
    ///
    /// # Errors
    /// When the system has no root certificates, or outside of a runtime, which the connections live on.
    pub fn new(config: &CognitoConfig) -> anyhow::Result<Self> {
        let http_client = http_client(config)?;
        Ok(Self::assemble(config, builder(config, http_client)))
    }

    /// A client for the service that logs in. Where it confirms accounts itself, credentials are looked for as the SDK does.
    ///
    /// # Errors
    /// As [`Cognito::new`].
    pub async fn for_login(config: &CognitoConfig, login: &LoginConfig) -> anyhow::Result<Self> {
        if login.confirmation != Confirmation::Admin {
            return Self::new(config);
        }
        let http_client = http_client(config)?;
        let mut builder = builder(config, http_client);
        if let Some(given) = &login.credentials {
            let token = given.session_token.as_ref().map(|token| token.expose().to_owned());
            let secret = given.secret_access_key.expose();
            let given = Credentials::new(&given.access_key_id, secret, token, None, "environment");
            builder = builder.credentials_provider(given);
        } else {
            let loader = aws_config::defaults(BehaviorVersion::latest()).region(Region::new(config.region.clone()));
            builder.set_credentials_provider(Box::pin(loader.load()).await.credentials_provider());
        }
        Ok(Self::assemble(config, builder))
    }

    fn assemble(config: &CognitoConfig, builder: sdk::config::Builder) -> Self {
        Self(Arc::new(Inner {
            sdk: sdk::Client::from_conf(builder.build()),
            admission: Admission::new(config),
            budget: RetryBudget::new(config.retry_budget),
            operation_timeout: config.operation_timeout,
            get_user_timeout: config.get_user_timeout,
            max_attempts: config.max_attempts,
        }))
    }
}

/// Every limit is set on purpose. The SDK itself never retries: its own budget would not know which calls may be repeated, and
/// it repeats throttled ones.
fn builder(config: &CognitoConfig, http_client: SharedHttpClient) -> sdk::config::Builder {
    let builder = sdk::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new(config.region.clone()))
        .http_client(http_client)
        .interceptor(BoundedAnswers)
        .retry_config(RetryConfig::disabled())
        .timeout_config(
            TimeoutConfig::builder()
                .connect_timeout(config.connect_timeout)
                .read_timeout(config.attempt_timeout)
                .operation_attempt_timeout(config.attempt_timeout)
                .build(),
        )
        // Answers are some kilobytes, and an attempt has a deadline.
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled());
    match &config.endpoint {
        Some(endpoint) => builder.endpoint_url(endpoint.as_str()),
        None => builder,
    }
}

/// A pool that opens no connection more than it may. The SDK's usual client bounds idle connections only.
fn http_client(config: &CognitoConfig) -> anyhow::Result<SharedHttpClient> {
    let runtime = Handle::try_current().context("the connections to Cognito")?;
    let place = PartitionId::from_index(0);
    let spawner = DriverSpawner::from_fn(move |work| drop(runtime.spawn(work)));
    let builder = ConnectionPool::builder()
        .partitions([Partition::new(place, spawner)])
        .max_connections_per_host(config.max_connections)
        .idle_timeout(config.pool_idle_timeout)
        .event_listener(count);
    // Without TLS where the endpoint has none: the trust store is some megabytes that a local task does not need.
    let pool = if config.endpoint.as_ref().is_some_and(|endpoint| endpoint.scheme() == "http") {
        builder.build_http()
    } else {
        builder.tls_provider(tls::Provider::Rustls(tls::rustls_provider::CryptoMode::AwsLc)).build_https()
    };
    let pool = pool.context("the connections to Cognito")?;
    let client = pool::Client::from_partition(&pool, place).context("the connections to Cognito")?;
    Ok(sdk::config::IntoShared::into_shared(client))
}

fn count(event: &ConnectionEvent<'_>) {
    match event {
        ConnectionEvent::Opened(_) => {
            metrics::counter!("idp_connections_opened_total").increment(1);
            metrics::gauge!("idp_connections").increment(1.0);
        }
        ConnectionEvent::PhysicalClose(_) => metrics::gauge!("idp_connections").decrement(1.0),
        _ => {}
    }
}
