//! Which tokens are accepted, and where their keys come from.

use std::time::Duration;

use anyhow::Context;
use url::{Host, Url};

use super::jwks_client::JwksClient;
use super::key_source::KeySource;
use super::policy::Policy;
use super::verifier::Verifier;
use crate::clock::SharedClock;
use crate::config::Settings;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Provider {
    Local,
    Cognito,
}

/// What a service needs to verify access tokens.
#[derive(Debug, Clone)]
pub struct VerifierConfig {
    /// Whose tokens are accepted.
    pub policy: Policy,
    /// How many verified tokens are remembered; 0 for none.
    pub token_cache_max: u64,
    /// Where the keys are published; `None` only after [`VerifierConfig::read_for_issuer`] with the local provider.
    pub jwks: Option<JwksConfig>,
    /// Where the issuer may be.
    pub production: Production,
}

/// Whether an issuer's addresses must be those of production. The default is that they need not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Production(bool);

impl Production {
    /// Why an address is none of production; nothing else is refused.
    #[must_use]
    pub fn refuses(self, url: &Url) -> Option<&'static str> {
        (self.0 && (url.scheme() != "https" || is_loopback(url)))
            .then_some("must be https and no address of this machine in production")
    }
}

/// How an issuer's keys are fetched.
#[derive(Debug, Clone)]
pub struct JwksConfig {
    /// The JWK set, `http` or `https`.
    pub url: Url,
    /// Age at which a set is renewed in the background.
    pub refresh_after: Duration,
    /// Shortest time between two fetches that unknown keys can cause.
    pub min_interval: Duration,
    /// Longest time that one fetch may take; half of it for the connection.
    pub timeout: Duration,
}

impl VerifierConfig {
    /// Reads the variables of a service that fetches the issuer's keys.
    pub fn read(settings: &mut Settings<'_>) -> Self {
        Self::read_with(settings, true)
    }

    /// Reads the variables of the service that issues the local provider's tokens: it has the keys, and needs
    /// `AUTH_JWKS_URL` for nothing.
    pub fn read_for_issuer(settings: &mut Settings<'_>) -> Self {
        Self::read_with(settings, false)
    }

    fn read_with(settings: &mut Settings<'_>, fetches_local_keys: bool) -> Self {
        settings.section("Access tokens");
        let provider = settings.choice(
            "AUTH_IDENTITY_PROVIDER",
            "local",
            &[("local", Provider::Local), ("cognito", Provider::Cognito)],
            "Who issues the tokens: local or cognito",
        );
        let issuer = settings.required_text("AUTH_ISSUER", "The tokens' `iss`; for Cognito the user pool's URL");
        let audience = settings.text("AUTH_AUDIENCE", "datum", "What the local provider's `aud` must contain");
        let client_ids = settings.optional_text(
            "COGNITO_CLIENT_ID",
            "App clients whose tokens are accepted, separated by commas; the first logs in; for cognito only",
        );
        let token_cache_max =
            settings.number("AUTH_TOKEN_CACHE_MAX", 10_000, 0..=10_000_000, "Verified tokens to remember; 0 for none");
        let url = settings.optional_text(
            "AUTH_JWKS_URL",
            "Where the tokens' keys are published; for cognito by default below the issuer",
        );
        let refresh_after =
            settings.seconds("AUTH_JWKS_REFRESH_SECONDS", 300, 1..=86_400, "Age at which the keys are renewed");
        let min_interval = settings.milliseconds(
            "AUTH_JWKS_MIN_INTERVAL_MS",
            5_000,
            100..=3_600_000,
            "Shortest time between two fetches of the keys",
        );
        let timeout = settings.milliseconds(
            "AUTH_JWKS_TIMEOUT_MS",
            2_000,
            10..=60_000,
            "Longest time a fetch of the keys may take",
        );
        let url = match (provider, url) {
            (Provider::Local, _) if !fetches_local_keys => None,
            (_, Some(url)) => http_url(&url).map_err(|message| settings.error("AUTH_JWKS_URL", message)).ok(),
            (Provider::Local, None) => {
                settings.error("AUTH_JWKS_URL", "is required with the local provider");
                None
            }
            // A missing issuer is reported already.
            (Provider::Cognito, None) if issuer.is_empty() => None,
            (Provider::Cognito, None) => http_url(&format!("{issuer}/.well-known/jwks.json"))
                .map_err(|message| settings.error("AUTH_ISSUER", format!("{message}, or AUTH_JWKS_URL must be set")))
                .ok(),
        };
        let production = settings.choice(
            "DATUM_ENVIRONMENT",
            "development",
            &[("development", Production(false)), ("production", Production(true))],
            "In production Cognito and its keys are reached over https and not on this machine",
        );
        if let (Provider::Cognito, Some(url)) = (provider, &url)
            && let Some(reason) = production.refuses(url)
        {
            settings.error("AUTH_JWKS_URL", reason);
        }
        let policy = match provider {
            Provider::Local => Policy::Local { issuer, audience },
            Provider::Cognito => Policy::Cognito { issuer, client_ids: split(client_ids.as_deref()) },
        };
        if matches!(&policy, Policy::Cognito { client_ids, .. } if client_ids.is_empty()) {
            settings.error("COGNITO_CLIENT_ID", "is required with the cognito provider");
        }
        let jwks = url.map(|url| JwksConfig { url, refresh_after, min_interval, timeout });
        Self { policy, token_cache_max, jwks, production }
    }

    /// A verifier with the keys that the issuer publishes, and their client: its
    /// [`warm`](JwksClient::warm) belongs into the service's background work, its
    /// [`readiness`](JwksClient::readiness) among the checks.
    ///
    /// # Errors
    /// When the URL is `https` and the system has no root certificates, or when the configuration names no URL.
    pub fn connect(&self, clock: SharedClock) -> anyhow::Result<(Verifier, JwksClient)> {
        let jwks = self.jwks.as_ref().context("AUTH_JWKS_URL is not configured")?;
        let client = JwksClient::new(jwks)?;
        Ok((Verifier::new(self, KeySource::remote(client.clone()), clock), client))
    }
}

fn http_url(text: &str) -> Result<Url, String> {
    match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(url),
        _ => Err("must be an http or https URL".to_owned()),
    }
}

/// Whether only this machine answers there. A name that resolves to it is still bound by the certificate that https demands.
fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback() || address.is_unspecified(),
        Some(Host::Ipv6(address)) => {
            let address = address.to_canonical();
            address.is_loopback() || address.is_unspecified()
        }
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            name == "localhost" || name.ends_with(".localhost")
        }
        None => true,
    }
}

fn split(client_ids: Option<&str>) -> Vec<String> {
    let ids = client_ids.unwrap_or_default().split(',').map(str::trim);
    ids.filter(|id| !id.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Environment, help, load};

    const LOCAL: &[(&str, &str)] =
        &[("AUTH_ISSUER", "https://datum.test"), ("AUTH_JWKS_URL", "http://127.0.0.1:1/.well-known/jwks.json")];
    const COGNITO: &[(&str, &str)] = &[
        ("AUTH_IDENTITY_PROVIDER", "cognito"),
        ("AUTH_ISSUER", "https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_abc"),
        ("COGNITO_CLIENT_ID", "web, load ,"),
    ];

    fn read(variables: &[(&str, &str)], changes: &[(&str, &str)]) -> Result<VerifierConfig, Vec<String>> {
        let env = Environment::from_pairs(variables.iter().chain(changes).copied());
        load(&env, VerifierConfig::read).map_err(|errors| errors.0)
    }

    fn url(config: &VerifierConfig) -> &str {
        config.jwks.as_ref().unwrap().url.as_str()
    }

    #[test]
    fn the_local_provider_needs_an_issuer_and_a_url() {
        let config = read(LOCAL, &[]).unwrap();
        let (issuer, audience) = ("https://datum.test".to_owned(), "datum".to_owned());
        assert_eq!(config.policy, Policy::Local { issuer, audience });
        assert_eq!(config.token_cache_max, 10_000);
        let jwks = config.jwks.as_ref().unwrap();
        assert_eq!(url(&config), "http://127.0.0.1:1/.well-known/jwks.json");
        assert_eq!((jwks.refresh_after, jwks.min_interval), (Duration::from_mins(5), Duration::from_secs(5)));
        assert_eq!(jwks.timeout, Duration::from_secs(2));

        let errors = read(&[], &[]).unwrap_err();
        assert_eq!(errors, ["AUTH_ISSUER is required", "AUTH_JWKS_URL is required with the local provider"]);
    }

    #[test]
    fn cognito_needs_an_issuer_and_a_client() {
        let config = read(COGNITO, &[]).unwrap();
        let client_ids = vec!["web".to_owned(), "load".to_owned()];
        assert_eq!(config.policy, Policy::Cognito { issuer: COGNITO[1].1.to_owned(), client_ids });
        assert_eq!(url(&config), format!("{}/.well-known/jwks.json", COGNITO[1].1));
        assert_eq!(
            url(&read(COGNITO, &[("AUTH_JWKS_URL", "http://stub.test/keys")]).unwrap()),
            "http://stub.test/keys"
        );

        let errors = read(&COGNITO[..1], &[]).unwrap_err();
        assert_eq!(errors, ["AUTH_ISSUER is required", "COGNITO_CLIENT_ID is required with the cognito provider"]);
        let errors = read(COGNITO, &[("AUTH_ISSUER", "eu-central-1_abc"), ("COGNITO_CLIENT_ID", " , ")]).unwrap_err();
        assert_eq!(errors.len(), 2, "{errors:?}");
    }

    #[test]
    fn keys_are_fetched_over_http_only() {
        for url in
            ["ftp://datum.test/keys", "file:///etc/passwd", "data:application/json,{}", "datum.test/keys", "https://"]
        {
            let errors = read(LOCAL, &[("AUTH_JWKS_URL", url)]).unwrap_err();
            assert_eq!(errors, ["AUTH_JWKS_URL must be an http or https URL"], "{url}");
        }
        assert!(read(LOCAL, &[("AUTH_JWKS_URL", "https://datum.test/keys")]).is_ok());
    }

    #[test]
    fn in_production_cognitos_keys_come_over_https_from_elsewhere() {
        let in_production = |url: &str| {
            let changes = [("DATUM_ENVIRONMENT", "production"), ("AUTH_JWKS_URL", url)];
            (read(COGNITO, &changes).map(drop), read(LOCAL, &changes).map(drop))
        };
        let refusal = Err(vec!["AUTH_JWKS_URL must be https and no address of this machine in production".to_owned()]);
        for url in [
            "http://stub.test/keys",
            "https://127.0.0.1/keys",
            "https://127.1.2.3/keys",
            "https://0.0.0.0/keys",
            "https://[::1]/keys",
            "https://[::ffff:127.0.0.1]/keys",
            "https://localhost/keys",
            "https://LOCALHOST./keys",
            "https://idp.localhost/keys",
        ] {
            // The local provider's keys come from our own balancer.
            assert_eq!(in_production(url), (refusal.clone(), Ok(())), "{url}");
        }
        assert_eq!(in_production("https://stub.test/keys"), (Ok(()), Ok(())));
        assert!(read(COGNITO, &[("DATUM_ENVIRONMENT", "production")]).is_ok(), "the issuer's own place");
        assert!(read(COGNITO, &[("AUTH_JWKS_URL", "http://127.0.0.1:1/keys")]).is_ok(), "development");
    }

    #[test]
    fn the_issuing_service_has_its_own_keys() {
        let read = |variables: &[(&str, &str)]| {
            let env = Environment::from_pairs(variables.iter().copied());
            load(&env, VerifierConfig::read_for_issuer)
        };
        assert!(read(&LOCAL[..1]).unwrap().jwks.is_none());
        assert!(read(LOCAL).unwrap().jwks.is_none());
        assert!(read(COGNITO).unwrap().jwks.is_some(), "Cognito's keys are Cognito's");
    }

    #[test]
    fn help_lists_every_variable() {
        let help = help(VerifierConfig::read);
        for name in [
            "AUTH_IDENTITY_PROVIDER",
            "AUTH_ISSUER",
            "AUTH_AUDIENCE",
            "AUTH_JWKS_URL",
            "AUTH_JWKS_REFRESH_SECONDS",
            "AUTH_JWKS_MIN_INTERVAL_MS",
            "AUTH_JWKS_TIMEOUT_MS",
            "AUTH_TOKEN_CACHE_MAX",
            "COGNITO_CLIENT_ID",
            "DATUM_ENVIRONMENT",
        ] {
            assert!(help.contains(name), "{name}");
        }
    }
}
