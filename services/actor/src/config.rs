//! Everything that the environment decides.

use service_kit::auth::VerifierConfig;
use service_kit::config::Settings;
use service_kit::database::DatabaseConfig;

/// The service's settings; what all services share (server, telemetry) is read by the runner.
#[derive(Debug)]
pub struct Config {
    pub(crate) database: DatabaseConfig,
    pub(crate) verifier: VerifierConfig,
}

impl Config {
    /// Reads and documents every variable.
    pub fn read(settings: &mut Settings<'_>) -> Self {
        Self { database: DatabaseConfig::read(settings).for_service("actor"), verifier: VerifierConfig::read(settings) }
    }
}
