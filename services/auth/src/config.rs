//! Everything that the environment decides.

use std::time::Duration;

use cognito::{CognitoConfig, LoginConfig};
use service_kit::auth::{Policy, VerifierConfig};
use service_kit::config::{Secret, Settings};
use service_kit::database::DatabaseConfig;

use crate::hashing::HashingConfig;
use crate::identity::local::SessionConfig;
use crate::keys::SigningKeys;
use crate::tokens::TokenConfig;

/// The service's settings; what all services share (server, telemetry) is read by the runner.
#[derive(Debug)]
pub struct Config {
    pub(crate) verifier: VerifierConfig,
    pub(crate) identity: IdentityConfig,
}

/// Who keeps accounts and sessions, with what it takes.
#[derive(Debug)]
pub(crate) enum IdentityConfig {
    /// We do.
    Local(Box<LocalConfig>),
    /// A user pool.
    Cognito(Box<(CognitoConfig, LoginConfig)>),
}

/// What the local provider takes.
#[derive(Debug)]
pub(crate) struct LocalConfig {
    pub(crate) database: DatabaseConfig,
    pub(crate) tokens: TokenConfig,
    /// `None` only after an error.
    pub(crate) signing_keys: Option<SigningKeys>,
    pub(crate) hashing: HashingConfig,
    pub(crate) sessions: SessionConfig,
    pub(crate) throttled: bool,
    pub(crate) sweep_interval: Duration,
}

impl Config {
    /// Reads and documents every variable. What only the local provider needs is read only for it.
    pub fn read(settings: &mut Settings<'_>) -> Self {
        let verifier = VerifierConfig::read_for_issuer(settings);
        let cognito = CognitoConfig::read(settings, &verifier.policy, verifier.production);
        let login = LoginConfig::read(settings, &verifier.policy);
        let identity = match (&verifier.policy, cognito, login) {
            (Policy::Cognito { .. }, Some(cognito), Some(login)) => IdentityConfig::Cognito(Box::new((cognito, login))),
            (policy, ..) => {
                let audience = match policy {
                    Policy::Local { audience, .. } => audience.clone(),
                    Policy::Cognito { .. } => String::new(),
                };
                IdentityConfig::Local(Box::new(LocalConfig::read(settings, policy.issuer().to_owned(), audience)))
            }
        };
        Self { verifier, identity }
    }
}

impl LocalConfig {
    fn read(settings: &mut Settings<'_>, issuer: String, audience: String) -> Self {
        let database = DatabaseConfig::read(settings).for_service("auth");
        settings.section("Issuing tokens");
        let signing_keys = read_signing_keys(settings);
        let tokens = TokenConfig {
            issuer,
            audience,
            client_id: settings.text("AUTH_CLIENT_ID", "datum", "The tokens' `client_id`"),
            ttl: settings.seconds("AUTH_ACCESS_TTL_SECONDS", 900, 1..=86_400, "Life of an access token"),
        };
        let sessions = SessionConfig {
            ttl: settings.seconds("AUTH_REFRESH_TTL_SECONDS", 2_592_000, 1..=31_536_000, "Life of a session"),
            grace: settings.seconds(
                "AUTH_REFRESH_GRACE_SECONDS",
                10,
                0..=300,
                "A used refresh token still works for this",
            ),
        };

        let hashing = HashingConfig::read(settings);
        settings.section("Protection");
        let throttled = settings.switch("AUTH_THROTTLE", true, "Slow guessing down; off only for load tests");
        let sweep_interval =
            settings.seconds("AUTH_SWEEP_INTERVAL_SECONDS", 300, 1..=86_400, "How often expired rows are removed");
        Self { database, tokens, signing_keys, hashing, sessions, throttled, sweep_interval }
    }
}

fn read_signing_keys(settings: &mut Settings<'_>) -> Option<SigningKeys> {
    const KEYS: &str = "AUTH_SIGNING_KEYS";
    const FILE: &str = "AUTH_SIGNING_KEYS_FILE";
    let text = settings.secret(KEYS, "PKCS#8 PEM keys (EC P-256), concatenated: the first signs, all verify");
    let file = settings.optional_text(FILE, "A file with the keys, instead");
    let (source, pem) = match (text, file) {
        (Some(text), None) => (KEYS, text),
        (None, Some(path)) => match std::fs::read_to_string(&path) {
            Ok(text) => (FILE, Secret::new(text)),
            Err(error) => {
                settings.error(FILE, format!("cannot be read: {error}"));
                return None;
            }
        },
        (None, None) => {
            settings.error(KEYS, "or AUTH_SIGNING_KEYS_FILE is required");
            return None;
        }
        (Some(_), Some(_)) => {
            settings.error(KEYS, "and AUTH_SIGNING_KEYS_FILE exclude each other");
            return None;
        }
    };
    SigningKeys::from_pem(pem.expose()).map_err(|error| settings.error(source, error.to_string())).ok()
}

#[cfg(test)]
mod tests {
    use service_kit::config::{ConfigErrors, Environment, help, load};

    use super::*;
    use crate::keys::generate_pem;

    fn read(pairs: &[(&str, &str)]) -> Result<Config, ConfigErrors> {
        let base = [("DATABASE_URL", "postgres://datum_auth@127.0.0.1/datum"), ("AUTH_ISSUER", "https://datum.test")];
        load(&Environment::from_pairs(base.iter().chain(pairs).copied()), Config::read)
    }

    #[test]
    fn the_defaults_are_those_of_the_contract() {
        let config = read(&[("AUTH_SIGNING_KEYS", &generate_pem().expect("key"))]).expect("valid");
        let IdentityConfig::Local(config) = config.identity else { panic!("local is the default") };
        assert!(config.throttled);
        assert_eq!(config.tokens.ttl, Duration::from_mins(15));
        assert_eq!(config.sessions.ttl, Duration::from_hours(30 * 24));
        assert_eq!(config.sessions.grace, Duration::from_secs(10));
        assert_eq!(config.hashing.pool.deadline, Duration::from_secs(2));
    }

    #[test]
    fn with_cognito_neither_database_nor_keys_are_needed() {
        let pairs = [
            ("AUTH_IDENTITY_PROVIDER", "cognito"),
            ("AUTH_ISSUER", "https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_abc"),
            ("COGNITO_CLIENT_ID", "web"),
        ];
        let config = load(&Environment::from_pairs(pairs), Config::read).expect("valid");
        assert!(matches!(config.identity, IdentityConfig::Cognito(_)));
    }

    #[test]
    fn keys_come_from_one_place_and_what_is_wrong_with_them_is_said() {
        let pem = generate_pem().expect("key");
        let file = std::env::temp_dir().join(format!("datum-auth-keys-{}.pem", uuid::Uuid::new_v4()));
        std::fs::write(&file, pem.as_bytes()).expect("written");
        let path = file.to_str().expect("UTF-8");
        assert!(read(&[("AUTH_SIGNING_KEYS_FILE", path)]).is_ok());
        for (pairs, message) in [
            (vec![], "AUTH_SIGNING_KEYS or AUTH_SIGNING_KEYS_FILE is required"),
            (vec![("AUTH_SIGNING_KEYS", pem.as_str()), ("AUTH_SIGNING_KEYS_FILE", path)], "exclude each other"),
            (vec![("AUTH_SIGNING_KEYS_FILE", "/nowhere/keys.pem")], "AUTH_SIGNING_KEYS_FILE cannot be read"),
            (vec![("AUTH_SIGNING_KEYS", "nonsense")], "AUTH_SIGNING_KEYS holds no PEM key"),
        ] {
            let errors = read(&pairs).expect_err("invalid");
            assert!(errors.to_string().contains(message), "{errors}");
            assert!(!errors.to_string().contains("nonsense"), "{errors}");
        }
        std::fs::remove_file(&file).expect("removed");
    }

    #[test]
    fn help_lists_the_services_own_variables() {
        let help = help(Config::read);
        for name in [
            "AUTH_SIGNING_KEYS",
            "AUTH_SIGNING_KEYS_FILE",
            "AUTH_CLIENT_ID",
            "AUTH_ACCESS_TTL_SECONDS",
            "AUTH_REFRESH_TTL_SECONDS",
            "AUTH_REFRESH_GRACE_SECONDS",
            "AUTH_ARGON2_MEMORY_KIB",
            "AUTH_ARGON2_ITERATIONS",
            "AUTH_ARGON2_PARALLELISM",
            "AUTH_ARGON2_MAX_MEMORY_KIB",
            "AUTH_HASH_THREADS",
            "AUTH_HASH_QUEUE",
            "AUTH_HASH_DEADLINE_MS",
            "AUTH_HASH_NICE",
            "AUTH_THROTTLE",
            "AUTH_SWEEP_INTERVAL_SECONDS",
            "COGNITO_CLIENT_SECRET",
            "COGNITO_CONFIRMATION",
            "COGNITO_ENDPOINT_URL",
        ] {
            assert!(help.contains(name), "{name} missing in:\n{help}");
        }
    }
}
