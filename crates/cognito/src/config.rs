//! How Cognito is reached, what a call may cost, and which app client we are.

use std::time::Duration;

use service_kit::auth::{Policy, Production};
use service_kit::config::{Secret, Settings};
use url::Url;

/// Where the provider is and how it may be called.
#[derive(Debug, Clone)]
pub struct CognitoConfig {
    pub(crate) region: String,
    /// Another place than AWS's: an emulator or the double.
    pub(crate) endpoint: Option<Url>,
    pub(crate) max_connections: usize,
    pub(crate) admission_timeout: Duration,
    pub(crate) pool_idle_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) attempt_timeout: Duration,
    pub(crate) operation_timeout: Duration,
    pub(crate) get_user_timeout: Duration,
    pub(crate) max_attempts: u32,
    pub(crate) retry_budget: u32,
    pub(crate) limits: Limits,
}

/// Requests a second that this task sends at most, by quota category; 0 is no limit.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Limits {
    pub(crate) user_authentication: u32,
    pub(crate) user_creation: u32,
    pub(crate) user_read: u32,
    pub(crate) user_token: u32,
    pub(crate) per_user: u32,
}

/// How accounts get confirmed after registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirmation {
    /// By the code that Cognito sends.
    Code,
    /// By the pool itself (a pre sign-up trigger).
    Automatic,
    /// By us, with `AdminConfirmSignUp` and AWS credentials; for load tests.
    Admin,
}

/// Which app client we are, for the service that registers and logs in.
#[derive(Debug, Clone)]
pub struct LoginConfig {
    pub(crate) client_id: String,
    pub(crate) client_secret: Option<Secret>,
    pub(crate) rotation: bool,
    /// How accounts get confirmed.
    pub confirmation: Confirmation,
    pub(crate) user_pool_id: String,
    pub(crate) credentials: Option<StaticCredentials>,
}

#[derive(Debug, Clone)]
pub(crate) struct StaticCredentials {
    pub(crate) access_key_id: String,
    pub(crate) secret_access_key: Secret,
    pub(crate) session_token: Option<Secret>,
}

impl CognitoConfig {
    /// Reads and documents the variables. `None` where another provider is chosen.
    pub fn read(settings: &mut Settings<'_>, policy: &Policy, production: Production) -> Option<Self> {
        settings.section("Cognito");
        let region = settings.optional_text("COGNITO_REGION", "The pool's region; by default as AUTH_ISSUER has it");
        let endpoint = settings.url("COGNITO_ENDPOINT_URL", None, "Another place than AWS's, for stand-ins");
        let max_connections = settings.number(
            "COGNITO_MAX_CONNECTIONS",
            50_usize,
            1..=4_096,
            "Connections to Cognito, and calls at once; never more",
        );
        let admission_timeout = settings.milliseconds(
            "COGNITO_ADMISSION_TIMEOUT_MS",
            2_000,
            1..=60_000,
            "Longest wait for one of them, and for the limits below; then 503 or 429",
        );
        let pool_idle_timeout = settings.milliseconds(
            "COGNITO_POOL_IDLE_TIMEOUT_MS",
            20_000,
            1..=600_000,
            "How long an idle connection is kept",
        );
        let connect_timeout = settings.milliseconds("COGNITO_CONNECT_TIMEOUT_MS", 1_000, 1..=60_000, "To connect");
        let attempt_timeout =
            settings.milliseconds("COGNITO_ATTEMPT_TIMEOUT_MS", 5_000, 1..=60_000, "One attempt of a call");
        let operation_timeout = settings.milliseconds(
            "COGNITO_OPERATION_TIMEOUT_MS",
            8_000,
            1..=120_000,
            "A call with all its attempts and the pauses between them",
        );
        let get_user_timeout = settings.milliseconds(
            "COGNITO_GET_USER_TIMEOUT_MS",
            2_000,
            1..=120_000,
            "The same of GetUser: how long a first get-user waits for the email before it answers without",
        );
        let max_attempts = settings.number(
            "COGNITO_MAX_ATTEMPTS",
            2_u32,
            1..=10,
            "Attempts of a call that may be repeated; throttled calls never are",
        );
        let retry_budget = settings.number(
            "COGNITO_RETRY_BUDGET",
            20_u32,
            0..=10_000,
            "Retries that may be made at once; ten good answers earn another",
        );
        let limits = Limits::read(settings);
        if connect_timeout > attempt_timeout || attempt_timeout > operation_timeout {
            settings.error(
                "COGNITO_OPERATION_TIMEOUT_MS",
                "must not be below COGNITO_ATTEMPT_TIMEOUT_MS, nor that below COGNITO_CONNECT_TIMEOUT_MS",
            );
        }
        let Policy::Cognito { issuer, .. } = policy else { return None };
        if let Some(endpoint) = &endpoint {
            if !matches!(endpoint.scheme(), "http" | "https") {
                settings.error("COGNITO_ENDPOINT_URL", "must be an http or https URL");
            } else if let Some(reason) = production.refuses(endpoint) {
                // Passwords go there.
                settings.error("COGNITO_ENDPOINT_URL", reason);
            }
        }
        let region = region.or_else(|| region_of(issuer)).unwrap_or_else(|| {
            settings.error("COGNITO_REGION", "is required where AUTH_ISSUER does not name it");
            String::new()
        });
        Some(Self {
            region,
            endpoint,
            max_connections,
            admission_timeout,
            pool_idle_timeout,
            connect_timeout,
            attempt_timeout,
            operation_timeout,
            get_user_timeout,
            max_attempts,
            retry_budget,
            limits,
        })
    }
}

impl Limits {
    /// AWS's defaults, for all of an account in a region, are 120, 50, 120 and 120, and 10 a user ("Quotas in Amazon Cognito").
    fn read(settings: &mut Settings<'_>) -> Self {
        let mut limit = |name, help| settings.number(name, 0_u32, 0..=1_000_000, help);
        Self {
            user_authentication: limit(
                "COGNITO_LIMIT_USER_AUTHENTICATION",
                "Logins a second that this task sends; 0 for any number",
            ),
            user_creation: limit("COGNITO_LIMIT_USER_CREATION", "The same of registrations and confirmations"),
            user_read: limit("COGNITO_LIMIT_USER_READ", "The same of reading users"),
            user_token: limit("COGNITO_LIMIT_USER_TOKEN", "The same of refreshing and revoking tokens"),
            per_user: limit("COGNITO_LIMIT_PER_USER", "Calls a second about one user; 0 for any number"),
        }
    }
}

impl LoginConfig {
    /// Reads and documents the variables of the service that logs users in. `None` where another provider is chosen.
    pub fn read(settings: &mut Settings<'_>, policy: &Policy) -> Option<Self> {
        const CONFIRMATIONS: &[(&str, Confirmation)] =
            &[("code", Confirmation::Code), ("automatic", Confirmation::Automatic), ("admin", Confirmation::Admin)];
        settings.section("Cognito: login");
        let client_secret =
            settings.secret("COGNITO_CLIENT_SECRET", "Of the first client of COGNITO_CLIENT_ID, if it has one");
        let rotation = settings.switch(
            "COGNITO_REFRESH_TOKEN_ROTATION",
            false,
            "Whether the app client rotates refresh tokens: they are then renewed with another call",
        );
        let confirmation = settings.choice(
            "COGNITO_CONFIRMATION",
            "code",
            CONFIRMATIONS,
            "Who confirms accounts: code (the user), automatic (the pool), admin (this service, for load tests)",
        );
        let user_pool_id = settings
            .optional_text("COGNITO_USER_POOL_ID", "The pool; by default as AUTH_ISSUER has it; for admin only");
        let credentials = read_credentials(settings);
        let Policy::Cognito { issuer, client_ids } = policy else { return None };
        let user_pool_id = user_pool_id.or_else(|| pool_of(issuer)).unwrap_or_default();
        if confirmation == Confirmation::Admin && user_pool_id.is_empty() {
            settings
                .error("COGNITO_USER_POOL_ID", "is required to confirm accounts where AUTH_ISSUER does not name it");
        }
        // That there is no client is reported already.
        let client_id = client_ids.first().cloned().unwrap_or_default();
        Some(Self { client_id, client_secret, rotation, confirmation, user_pool_id, credentials })
    }
}

/// Given ones go through the settings, so that one process can talk to several pools (tests do).
fn read_credentials(settings: &mut Settings<'_>) -> Option<StaticCredentials> {
    let access_key_id = settings.optional_text(
        "AWS_ACCESS_KEY_ID",
        "Static credentials, for admin only; without them the SDK's chain is asked (on ECS: the task role)",
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

/// `https://cognito-idp.<region>.amazonaws.com/<pool id>`.
fn region_of(issuer: &str) -> Option<String> {
    let url = Url::parse(issuer).ok()?;
    let (region, _) = url.host_str()?.strip_prefix("cognito-idp.")?.split_once(".amazonaws.com")?;
    Some(region.to_owned())
}

fn pool_of(issuer: &str) -> Option<String> {
    let url = Url::parse(issuer).ok()?;
    let pool = url.path_segments()?.next_back()?;
    // `<region>_<id>` is what every pool's id looks like.
    pool.contains('_').then(|| pool.to_owned())
}

#[cfg(test)]
mod tests {
    use service_kit::auth::VerifierConfig;
    use service_kit::config::{Environment, help, load};

    use super::*;

    const ISSUER: &str = "https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_abc";

    fn policy(issuer: &str) -> Policy {
        let client_ids = vec!["web".to_owned(), "load".to_owned()];
        Policy::Cognito { issuer: issuer.to_owned(), client_ids }
    }

    fn read(issuer: &str, pairs: &[(&str, &str)]) -> Result<(CognitoConfig, LoginConfig), Vec<String>> {
        let policy = policy(issuer);
        load(&Environment::from_pairs(pairs.iter().copied()), |settings| {
            (CognitoConfig::read(settings, &policy, Production::default()), LoginConfig::read(settings, &policy))
        })
        .map(|(cognito, login)| (cognito.unwrap(), login.unwrap()))
        .map_err(|errors| errors.0)
    }

    #[test]
    fn an_issuer_of_aws_names_region_and_pool_and_the_first_client_is_the_one_that_logs_in() {
        let (cognito, login) = read(ISSUER, &[]).unwrap();
        assert_eq!((cognito.region.as_str(), login.user_pool_id.as_str()), ("eu-central-1", "eu-central-1_abc"));
        assert_eq!((login.client_id.as_str(), login.confirmation), ("web", Confirmation::Code));
        assert_eq!((cognito.max_connections, cognito.max_attempts, cognito.retry_budget), (50, 2, 20));
        assert_eq!(cognito.operation_timeout, Duration::from_secs(8));
    }

    #[test]
    fn a_stand_in_says_what_its_issuer_does_not() {
        let pairs = [
            ("COGNITO_REGION", "us-east-1"),
            ("COGNITO_USER_POOL_ID", "us-east-1_x"),
            ("COGNITO_CONFIRMATION", "admin"),
        ];
        assert!(read("http://127.0.0.1:9", &pairs).is_ok());
        let errors = read("http://127.0.0.1:9", &pairs[2..]).unwrap_err();
        assert_eq!(errors.len(), 2, "{errors:?}");
        assert!(errors[0].starts_with("COGNITO_REGION") && errors[1].starts_with("COGNITO_USER_POOL_ID"));
    }

    #[test]
    fn in_production_a_stand_in_is_elsewhere_and_behind_tls() {
        let read = |endpoint: &str| {
            let issuer = [("AUTH_IDENTITY_PROVIDER", "cognito"), ("AUTH_ISSUER", ISSUER), ("COGNITO_CLIENT_ID", "web")];
            let pairs = [("DATUM_ENVIRONMENT", "production"), ("COGNITO_ENDPOINT_URL", endpoint)];
            load(&Environment::from_pairs(issuer.iter().chain(&pairs).copied()), |settings| {
                let verifier = VerifierConfig::read(settings);
                CognitoConfig::read(settings, &verifier.policy, verifier.production)
            })
            .map_err(|errors| errors.0)
        };
        for endpoint in ["http://cognito.example", "https://127.0.0.1:4566", "https://localhost", "https://[::1]:4566"]
        {
            let errors = read(endpoint).unwrap_err();
            assert_eq!(
                errors,
                ["COGNITO_ENDPOINT_URL must be https and no address of this machine in production"],
                "{endpoint}"
            );
        }
        assert!(read("https://cognito.example").is_ok());
        assert!(read("").is_ok(), "empty is unset");
    }

    #[test]
    fn timeouts_fit_into_each_other_and_credentials_come_in_pairs() {
        for (pair, blamed) in [
            (("COGNITO_ATTEMPT_TIMEOUT_MS", "8001"), "COGNITO_OPERATION_TIMEOUT_MS"),
            (("COGNITO_CONNECT_TIMEOUT_MS", "5001"), "COGNITO_OPERATION_TIMEOUT_MS"),
            (("AWS_ACCESS_KEY_ID", "x"), "AWS_ACCESS_KEY_ID"),
            (("COGNITO_ENDPOINT_URL", "ftp://127.0.0.1"), "COGNITO_ENDPOINT_URL"),
        ] {
            let errors = read(ISSUER, &[pair]).unwrap_err();
            assert!(errors.len() == 1 && errors[0].starts_with(blamed), "{errors:?}");
        }
    }

    #[test]
    fn with_another_provider_nothing_is_required_and_everything_documented() {
        let local = Policy::Local { issuer: "https://datum.test".to_owned(), audience: "datum".to_owned() };
        let environment = Environment::default();
        let read = load(&environment, |settings| {
            (
                CognitoConfig::read(settings, &local, Production::default()).is_none(),
                LoginConfig::read(settings, &local).is_none(),
            )
        });
        assert_eq!(read.unwrap(), (true, true));
        let help = help(|settings| {
            (CognitoConfig::read(settings, &local, Production::default()), LoginConfig::read(settings, &local))
        });
        for name in ["COGNITO_REGION", "COGNITO_MAX_CONNECTIONS", "COGNITO_LIMIT_PER_USER", "COGNITO_CLIENT_SECRET"] {
            assert!(help.contains(name), "{name}");
        }
    }

    #[test]
    fn the_clients_secret_does_not_show() {
        let (_, login) = read(ISSUER, &[("COGNITO_CLIENT_SECRET", "hunter2hunter2")]).unwrap();
        assert!(!format!("{login:?}").contains("hunter2"));
    }
}
