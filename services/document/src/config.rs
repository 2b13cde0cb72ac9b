//! Everything that the environment decides.

use std::time::Duration;

use service_kit::auth::VerifierConfig;
use service_kit::config::Settings;
use service_kit::database::DatabaseConfig;

use crate::storage::StorageConfig;

/// The service's settings; what all services share (server, telemetry) is read by the runner.
#[derive(Debug)]
pub struct Config {
    pub(crate) database: DatabaseConfig,
    pub(crate) verifier: VerifierConfig,
    pub(crate) storage: StorageConfig,
    pub(crate) uploads: UploadConfig,
    pub(crate) sweeper: SweeperConfig,
}

/// The limits of uploads.
#[derive(Debug, Clone)]
pub(crate) struct UploadConfig {
    /// Largest file.
    pub(crate) max_bytes: u64,
    /// Uploads beyond the first 64 KiB at once in this task; each holds up to one part of 5 MiB.
    pub(crate) buffers: usize,
    /// Longest wait for a buffer.
    pub(crate) wait: Duration,
    /// Longest upload.
    pub(crate) timeout: Duration,
}

/// When leftovers are looked for, and what counts as one.
#[derive(Debug, Clone)]
pub(crate) struct SweeperConfig {
    /// Pause between two sweeps.
    pub(crate) interval: Duration,
    /// Younger uploads and objects may be in use.
    pub(crate) age: Duration,
}

impl Config {
    /// Reads and documents every variable.
    pub fn read(settings: &mut Settings<'_>) -> Self {
        let config = Self {
            database: DatabaseConfig::read(settings).for_service("document"),
            verifier: VerifierConfig::read(settings),
            storage: StorageConfig::read(settings),
            uploads: UploadConfig::read(settings),
            sweeper: SweeperConfig::read(settings),
        };
        // Otherwise the sweeper would take the row of an upload that is still running.
        if config.sweeper.age <= config.uploads.timeout {
            settings.error("DOCUMENT_SWEEP_AGE_SECONDS", "must exceed DOCUMENT_UPLOAD_TIMEOUT_SECONDS");
        }
        config
    }
}

impl UploadConfig {
    fn read(settings: &mut Settings<'_>) -> Self {
        settings.section("Uploads");
        Self {
            max_bytes: settings.number(
                "DOCUMENT_MAX_BYTES",
                64 * 1024 * 1024_u64,
                1..=5 * 1024 * 1024 * 1024,
                "Largest file; then 413",
            ),
            buffers: settings.number(
                "DOCUMENT_UPLOAD_BUFFERS",
                16_usize,
                1..=1_024,
                "Uploads over 64 KiB at once in one task; each takes up to 5 MiB of memory",
            ),
            wait: settings.milliseconds(
                "DOCUMENT_UPLOAD_WAIT_MS",
                2_000,
                0..=60_000,
                "Longest wait for one of them to finish; then 503",
            ),
            timeout: settings.seconds("DOCUMENT_UPLOAD_TIMEOUT_SECONDS", 900, 1..=86_400, "Longest upload; then 408"),
        }
    }
}

impl SweeperConfig {
    fn read(settings: &mut Settings<'_>) -> Self {
        settings.section("Sweeper");
        Self {
            interval: settings.seconds(
                "DOCUMENT_SWEEP_INTERVAL_SECONDS",
                60,
                1..=86_400,
                "Pause between two searches for what failed uploads left",
            ),
            age: settings.seconds(
                "DOCUMENT_SWEEP_AGE_SECONDS",
                3_600,
                2..=30 * 86_400,
                "Age from which an unfinished upload, or an object without a row, is a leftover",
            ),
        }
    }
}
