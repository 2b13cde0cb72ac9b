//! The program: configuration from the environment, a line for each step, an exit code.

use std::{fmt::Display, io::Write, process::ExitCode, time::Duration};

use service_kit::config::{self, EXIT_USAGE, Environment, Secret, Settings};

use crate::{MigrateError, Migrator, RolePasswords};

struct Config {
    url: Secret,
    passwords: RolePasswords,
    connect_wait: Duration,
    lock_wait: Duration,
}

impl Config {
    fn read(settings: &mut Settings<'_>) -> Self {
        settings.section("Migrator");
        Self {
            url: settings.required_secret(
                "MIGRATOR_DATABASE_URL",
                "postgres://ADMIN:PASSWORD@HOST/DATABASE of the database's owner, who may create roles; \
                 ?sslmode=verify-full&sslrootcert=FILE for TLS",
            ),
            passwords: RolePasswords {
                auth: settings.required_secret("DATUM_AUTH_DB_PASSWORD", "Password to give to the role datum_auth"),
                actor: settings.required_secret("DATUM_ACTOR_DB_PASSWORD", "Password to give to the role datum_actor"),
                document: settings
                    .required_secret("DATUM_DOCUMENT_DB_PASSWORD", "Password to give to the role datum_document"),
            },
            connect_wait: settings.seconds(
                "MIGRATOR_CONNECT_WAIT_SECONDS",
                30,
                1..=3600,
                "How long to try while the server is not there yet",
            ),
            lock_wait: settings.seconds(
                "MIGRATOR_LOCK_WAIT_SECONDS",
                600,
                1..=86_400,
                "How long to wait while another migrator works",
            ),
        }
    }
}

/// Migrates once and says what was done.
///
/// Exit codes: 0 the database is as this release needs it, 1 it is not, [`EXIT_USAGE`] the configuration is wrong.
#[must_use]
pub fn main() -> ExitCode {
    if std::env::args().any(|argument| argument == "--help" || argument == "-h") {
        config::print_help(
            "migrator: brings the database to the newest schema of this release, and ends.",
            Config::read,
        );
        return ExitCode::SUCCESS;
    }
    let config = match config::load(&Environment::from_process(), Config::read) {
        Ok(config) => config,
        Err(errors) => {
            eprintln!("migrator: the configuration is wrong:\n{errors}\n--help lists every variable.");
            return ExitCode::from(EXIT_USAGE);
        }
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("migrator: {error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(migrate(config)) {
        Ok(applied) => {
            say(format_args!("done, {applied} applied"));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("migrator: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Prints a line. A reader who has gone away must not end a migration in its middle.
fn say(line: impl Display) {
    let _ = writeln!(std::io::stdout().lock(), "migrator: {line}");
}

async fn migrate(config: Config) -> Result<usize, MigrateError> {
    let report = Migrator::new(config.passwords)
        .connect_wait(config.connect_wait)
        .lock_wait(config.lock_wait)
        .run(config.url.expose(), &mut |progress| say(progress))
        .await?;
    Ok(report.applied.len())
}
