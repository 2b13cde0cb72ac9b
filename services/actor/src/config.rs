//! Everything that the environment decides.

use cognito::CognitoConfig;
use service_kit::auth::VerifierConfig;
use service_kit::config::Settings;
use service_kit::database::DatabaseConfig;

/// The service's settings; what all services share (server, telemetry) is read by the runner.
#[derive(Debug)]
pub struct Config {
    pub(crate) database: DatabaseConfig,
    pub(crate) verifier: VerifierConfig,
    /// Where tokens come from Cognito, which puts no email into them.
    pub(crate) cognito: Option<CognitoConfig>,
}

impl Config {
    /// Reads and documents every variable.
    pub fn read(settings: &mut Settings<'_>) -> Self {
        let database = DatabaseConfig::read(settings).for_service("actor");
        let verifier = VerifierConfig::read(settings);
        let cognito = CognitoConfig::read(settings, &verifier.policy, verifier.production);
        Self { database, verifier, cognito }
    }
}
