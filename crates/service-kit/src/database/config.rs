//! The pool's environment variables.

use std::fmt;
use std::time::Duration;

use crate::config::Settings;

use super::connection_string::ConnectionString;
use super::tls::{Security, Trust};

/// Where the database is, and how many connections are held to it for how long.
#[derive(Clone)]
pub struct DatabaseConfig {
    pub(super) postgres: tokio_postgres::Config,
    pub(super) security: Security,
    pub(super) limits: Limits,
    /// For all of one connection attempt: address, TLS and authentication.
    pub(super) connect_timeout: Duration,
}

/// The pool's numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) max: usize,
    pub(super) min: usize,
    pub(super) acquire_timeout: Duration,
    pub(super) max_lifetime: Duration,
    pub(super) idle_timeout: Duration,
    pub(super) statement_timeout: Duration,
}

impl DatabaseConfig {
    /// Reads every variable of the pool. Defaults: 14 connections at most, 5 kept warm.
    pub fn read(settings: &mut Settings<'_>) -> Self {
        settings.section("Database");
        let url = settings.required_secret(
            "DATABASE_URL",
            "PostgreSQL as postgres:// URL or key=value pairs; sslmode disable, prefer, require, verify-ca, verify-full",
        );
        let password = settings.secret(
            "DB_PASSWORD",
            "The password as it is, where DATABASE_URL has none: in a URL some characters would have to be encoded",
        );
        let root_cert = settings.optional_text(
            "DB_SSL_ROOT_CERT",
            "PEM file of the authorities that may sign the server's certificate, or system; makes verify-full the default",
        );
        let (mut postgres, security) = connection(settings, url.expose(), root_cert.as_deref());
        match password {
            Some(_) if postgres.get_password().is_some() => {
                settings.error("DB_PASSWORD", "is set, and DATABASE_URL has a password: only one can count");
            }
            Some(password) => drop(postgres.password(password.expose())),
            None => {}
        }
        let limits = limits(settings);
        let connect_timeout = settings.milliseconds(
            "DB_CONNECT_TIMEOUT_MS",
            5_000,
            1..=60_000,
            "Limit of one connection attempt, TLS and authentication included",
        );
        let session = Session::read(settings, limits.statement_timeout);
        Self { postgres: session.apply(postgres, connect_timeout), security, limits, connect_timeout }
    }

    /// Names the service in `pg_stat_activity` (`datum-auth`), unless `DATABASE_URL` has an `application_name`.
    #[must_use]
    pub fn for_service(mut self, service: &str) -> Self {
        if self.postgres.get_application_name() == Some("datum") {
            self.postgres.application_name(format!("datum-{service}"));
        }
        self
    }

    /// The connections a task keeps.
    #[must_use]
    pub fn min_connections(&self) -> usize {
        self.limits.min
    }

    /// The most connections a task opens, for the check against the server's `max_connections`.
    #[must_use]
    pub fn max_connections(&self) -> usize {
        self.limits.max
    }
}

impl fmt::Debug for DatabaseConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatabaseConfig").field("limits", &self.limits).finish_non_exhaustive()
    }
}

fn connection(settings: &mut Settings<'_>, url: &str, root_cert: Option<&str>) -> (tokio_postgres::Config, Security) {
    let nothing = || {
        let encryption = tokio_postgres::config::SslMode::Disable;
        (tokio_postgres::Config::new(), Security { encryption, trust: Trust::Anyone })
    };
    if url.is_empty() {
        return nothing();
    }
    let parsed = match ConnectionString::parse(url) {
        Ok(parsed) => parsed,
        Err(message) => {
            settings.error("DATABASE_URL", message);
            return nothing();
        }
    };
    if root_cert.is_some() && parsed.ssl_root_cert.is_some() {
        settings.error("DB_SSL_ROOT_CERT", "is set, and DATABASE_URL has an sslrootcert: only one can count");
    }
    let (root_cert, named) = match (root_cert, parsed.ssl_root_cert.as_deref()) {
        (None, Some(path)) => (Some(path), "sslrootcert in DATABASE_URL"),
        (path, _) => (path, "DB_SSL_ROOT_CERT"),
    };
    match Security::new(parsed.ssl_mode, root_cert) {
        Ok(security) => (parsed.postgres, security),
        Err(message) if named == "DB_SSL_ROOT_CERT" => {
            settings.error("DB_SSL_ROOT_CERT", message);
            nothing()
        }
        Err(message) => {
            settings.error("DATABASE_URL", format!("has an sslrootcert that {message}"));
            nothing()
        }
    }
}

fn limits(settings: &mut Settings<'_>) -> Limits {
    let max = settings.number("DB_POOL_MAX", 14, 1..=1_000, "Most connections of this task");
    let min = settings.number(
        "DB_POOL_MIN",
        5.min(max),
        0..=1_000,
        "Connections kept open, from before the task is ready; at most DB_POOL_MAX",
    );
    if min > max {
        settings.error("DB_POOL_MIN", format!("must not be above DB_POOL_MAX: {min} > {max}"));
    }
    Limits {
        max,
        min,
        acquire_timeout: settings.milliseconds(
            "DB_POOL_ACQUIRE_TIMEOUT_MS",
            2_000,
            1..=60_000,
            "Longest wait for a connection; then 503",
        ),
        max_lifetime: settings.seconds(
            "DB_POOL_MAX_LIFETIME_SECONDS",
            1_800,
            1..=86_400,
            "Age at which a connection is replaced; each has up to a tenth less",
        ),
        idle_timeout: settings.seconds(
            "DB_POOL_IDLE_TIMEOUT_SECONDS",
            600,
            1..=86_400,
            "Idleness after which connections above DB_POOL_MIN are closed",
        ),
        statement_timeout: settings.milliseconds(
            "DB_STATEMENT_TIMEOUT_MS",
            5_000,
            1..=600_000,
            "Longest run of a statement, on the server",
        ),
    }
}

/// What each session sets on the server and on its socket.
struct Session {
    statement_timeout: Duration,
    idle_in_transaction_timeout: Duration,
    keepalive_idle: Duration,
    keepalive_interval: Duration,
    keepalive_retries: u32,
    tcp_user_timeout: Duration,
}

impl Session {
    fn read(settings: &mut Settings<'_>, statement_timeout: Duration) -> Self {
        Self {
            statement_timeout,
            idle_in_transaction_timeout: settings.milliseconds(
                "DB_IDLE_IN_TRANSACTION_TIMEOUT_MS",
                10_000,
                1..=600_000,
                "Longest pause inside a transaction; then the server ends the session",
            ),
            // 10 + 3 × 5 s to notice a silent peer on an idle connection, 20 s where an answer is awaited: within 30 s.
            keepalive_idle: settings.seconds(
                "DB_KEEPALIVE_IDLE_SECONDS",
                10,
                1..=7_200,
                "Silence after which TCP asks whether the server is there",
            ),
            keepalive_interval: settings.seconds(
                "DB_KEEPALIVE_INTERVAL_SECONDS",
                5,
                1..=600,
                "Pause between such probes",
            ),
            keepalive_retries: settings.number(
                "DB_KEEPALIVE_RETRIES",
                3,
                1..=30,
                "Unanswered probes after which the connection is lost",
            ),
            tcp_user_timeout: settings.milliseconds(
                "DB_TCP_USER_TIMEOUT_MS",
                20_000,
                1..=600_000,
                "How long sent bytes may stay unacknowledged",
            ),
        }
    }

    fn apply(&self, mut postgres: tokio_postgres::Config, connect_timeout: Duration) -> tokio_postgres::Config {
        // As startup options, they hold from the first statement and cost no round trip. What DATABASE_URL says comes
        // later and wins: it was meant.
        let mut options = format!(
            "-c statement_timeout={} -c idle_in_transaction_session_timeout={}",
            self.statement_timeout.as_millis(),
            self.idle_in_transaction_timeout.as_millis(),
        );
        if let Some(given) = postgres.get_options() {
            options.push(' ');
            options.push_str(given);
        }
        postgres
            .options(options)
            .connect_timeout(connect_timeout)
            .keepalives(true)
            .keepalives_idle(self.keepalive_idle)
            .keepalives_interval(self.keepalive_interval)
            .keepalives_retries(self.keepalive_retries)
            .tcp_user_timeout(self.tcp_user_timeout);
        postgres
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Environment, help, load};

    fn read(pairs: &[(&str, &str)]) -> Result<DatabaseConfig, Vec<String>> {
        let env = Environment::from_pairs(pairs.iter().copied());
        load(&env, DatabaseConfig::read).map_err(|errors| errors.0)
    }

    #[test]
    fn the_defaults_are_the_contract() {
        let config = read(&[("DATABASE_URL", "postgres://u:p@h/d")]).expect("valid");
        let limits = config.limits;
        assert_eq!((limits.max, limits.min), (14, 5));
        assert_eq!(limits.acquire_timeout, Duration::from_secs(2));
        assert_eq!((limits.max_lifetime, limits.idle_timeout), (Duration::from_mins(30), Duration::from_mins(10)));
        assert_eq!(
            config.postgres.get_options(),
            Some("-c statement_timeout=5000 -c idle_in_transaction_session_timeout=10000")
        );
        assert_eq!(config.for_service("auth").postgres.get_application_name(), Some("datum-auth"));
    }

    /// Dropped packets: an idle connection is lost after idle + interval × retries, one in use after the user timeout.
    #[test]
    fn a_silent_peer_is_noticed_within_30_seconds() {
        let postgres = read(&[("DATABASE_URL", "postgres://u:p@h/d?keepalives=0")]).expect("valid").postgres;
        assert!(postgres.get_keepalives(), "the URL cannot switch them off");
        let interval = postgres.get_keepalives_interval().expect("set");
        let retries = postgres.get_keepalives_retries().expect("set");
        assert!(postgres.get_keepalives_idle() + interval * retries <= Duration::from_secs(30));
        assert!(*postgres.get_tcp_user_timeout().expect("set") <= Duration::from_secs(30));
    }

    #[test]
    fn a_small_maximum_lowers_the_default_minimum_but_not_a_given_one() {
        let url = ("DATABASE_URL", "postgres://u:p@h/d");
        assert_eq!(read(&[url, ("DB_POOL_MAX", "2")]).expect("valid").limits.min, 2);
        let errors = read(&[url, ("DB_POOL_MAX", "2"), ("DB_POOL_MIN", "3")]).expect_err("min above max");
        assert_eq!(errors, ["DB_POOL_MIN must not be above DB_POOL_MAX: 3 > 2"]);
    }

    #[test]
    fn every_error_is_reported_and_none_has_the_password() {
        let errors = read(&[
            ("DATABASE_URL", "postgres://u:hunter2@h/d?sslmode=maybe"),
            ("DB_POOL_MAX", "0"),
            ("DB_STATEMENT_TIMEOUT_MS", "0"),
        ])
        .expect_err("invalid");
        assert_eq!(errors.len(), 3, "{errors:?}");
        assert!(!errors.concat().contains("hunter2"), "{errors:?}");
    }

    #[test]
    fn a_password_beside_the_url_is_taken_as_it_is() {
        let odd = "100%41 p@ss/w:rd#?'\"";
        for url in ["postgres://u@h/d", "host=h user=u dbname=d"] {
            let config = read(&[("DATABASE_URL", url), ("DB_PASSWORD", odd)]).expect("valid");
            assert_eq!(config.postgres.get_password(), Some(odd.as_bytes()), "{url}");
        }
        let errors = read(&[("DATABASE_URL", "postgres://u:p@h/d"), ("DB_PASSWORD", odd)]).expect_err("two");
        assert!(errors.len() == 1 && errors[0].starts_with("DB_PASSWORD is set") && !errors[0].contains(odd));
    }

    #[test]
    fn one_root_certificate_counts() {
        let errors = read(&[("DATABASE_URL", "postgres://u:p@h/d?sslrootcert=system"), ("DB_SSL_ROOT_CERT", "system")])
            .expect_err("two");
        assert!(errors[0].contains("only one can count"), "{errors:?}");
        let errors = read(&[("DATABASE_URL", "postgres://u:p@h/d?sslmode=disable"), ("DB_SSL_ROOT_CERT", "system")])
            .expect_err("no effect");
        assert!(errors[0].starts_with("DB_SSL_ROOT_CERT has no effect"), "{errors:?}");
    }

    #[test]
    fn a_url_given_options_come_last_and_win() {
        let config = read(&[("DATABASE_URL", "postgres://u:p@h/d?options=-c%20statement_timeout%3D1")]).expect("valid");
        let options = config.postgres.get_options().expect("set");
        assert!(options.ends_with(" -c statement_timeout=1"), "{options}");
    }

    #[test]
    fn debug_shows_no_address_and_no_password() {
        let shown = format!("{:?}", read(&[("DATABASE_URL", "postgres://u:hunter2@db.internal/d")]).expect("valid"));
        assert!(!shown.contains("hunter2") && !shown.contains("db.internal"), "{shown}");
    }

    #[test]
    fn help_lists_every_variable() {
        let help = help(DatabaseConfig::read);
        for name in ["DATABASE_URL", "DB_SSL_ROOT_CERT", "DB_POOL_MAX", "DB_POOL_MIN", "DB_TCP_USER_TIMEOUT_MS"] {
            assert!(help.contains(name), "{name} missing in:\n{help}");
        }
    }
}
