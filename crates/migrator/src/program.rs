//! The program: configuration from the environment, a line for each step, an exit code.

use std::{fmt::Display, io::Write, process::ExitCode, time::Duration};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use service_kit::config::{self, EXIT_USAGE, Environment, Secret, Settings};
use url::Url;

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
        let url = settings.required_secret(
            "MIGRATOR_DATABASE_URL",
            "postgres://ADMIN:PASSWORD@HOST/DATABASE of the database's owner, who may create roles; \
             ?sslmode=verify-full&sslrootcert=FILE for TLS",
        );
        let password = settings.secret(
            "MIGRATOR_DATABASE_PASSWORD",
            "The password as it is, where the URL has none: in it some characters would have to be encoded",
        );
        let url = match password {
            None => url,
            Some(password) => with_password(&url, &password).unwrap_or_else(|message| {
                settings.error("MIGRATOR_DATABASE_PASSWORD", message);
                url
            }),
        };
        Self {
            url,
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

/// The URL with the password in it.
fn with_password(url: &Secret, password: &Secret) -> Result<Secret, &'static str> {
    // What is wrong with the URL is said by whoever connects.
    let mut parsed = Url::parse(url.expose()).map_err(|_| "needs MIGRATOR_DATABASE_URL to be a URL")?;
    if parsed.password().is_some() {
        return Err("is set, and MIGRATOR_DATABASE_URL has a password: only one can count");
    }
    // Everything but letters and digits: `Url` would leave a percent sign as it is.
    let encoded = utf8_percent_encode(password.expose(), NON_ALPHANUMERIC).to_string();
    parsed.set_password(Some(&encoded)).map_err(|()| "needs a host in MIGRATOR_DATABASE_URL")?;
    Ok(Secret::new(parsed.into()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_beside_the_url_means_itself() {
        let url = |text: &str| Secret::new(text.to_owned());
        let odd = url("100%41 p@ss/w:rd#?'\"é");
        let whole = with_password(&url("postgres://admin@db:5432/datum?sslmode=require"), &odd).unwrap();
        let parsed = Url::parse(whole.expose()).unwrap();
        assert_eq!((parsed.host_str(), parsed.port(), parsed.path()), (Some("db"), Some(5432), "/datum"));
        let decoded = percent_encoding::percent_decode_str(parsed.password().unwrap()).decode_utf8().unwrap();
        assert_eq!(decoded, odd.expose());
        for refused in ["postgres://admin:p@db/datum", "host=db user=admin", "postgres:/datum"] {
            assert!(with_password(&url(refused), &odd).is_err(), "{refused}");
        }
    }
}
