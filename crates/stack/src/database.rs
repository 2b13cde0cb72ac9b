//! The database of a stack: its own PostgreSQL, or a given one; and whether all pools fit into it.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use migrator::{Owner, is_postgres_url, release_roles};
use service_kit::config::Secret;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Connection};
use url::Url;

use crate::error::StackError;
use crate::observer::{Event, Observer};
use crate::secrets::Secrets;
use crate::service::Service;

/// Connections besides the tasks' pools: the migrator, and a person with `psql`.
const ADMINISTRATION: u32 = 5;
/// `max_connections` of an own server is never below PostgreSQL's own default.
const LEAST_MAX_CONNECTIONS: u32 = 100;
/// `superuser_reserved_connections` and, since version 16, `reserved_connections`, as PostgreSQL has them by default.
const RESERVED: u32 = 3;

/// Connections that all tasks may open at once. A task that is being replaced exists twice; they are replaced one by one.
pub(crate) fn needed_connections(tasks: usize, pool_max: u32) -> u32 {
    let processes = u32::try_from(tasks).unwrap_or(u32::MAX).saturating_add(1);
    processes.saturating_mul(pool_max).saturating_add(ADMINISTRATION)
}

/// `max_connections` for an own server.
pub(crate) fn max_connections(tasks: usize, pool_max: u32) -> Result<u16, StackError> {
    let needed = needed_connections(tasks, pool_max).saturating_add(RESERVED).max(LEAST_MAX_CONNECTIONS);
    u16::try_from(needed).map_err(|_| {
        StackError::Configuration(format!(
            "{tasks} tasks with DB_POOL_MAX={pool_max} need {needed} database connections"
        ))
    })
}

/// Checks that it is a URL, and one of PostgreSQL, without asking anybody.
pub(crate) fn check_url(admin_url: &Secret) -> Result<(), StackError> {
    let url = Url::parse(admin_url.expose()).map_err(|error| no_url(&error))?;
    if is_postgres_url(admin_url.expose()) {
        return Ok(());
    }
    Err(no_url(&format_args!("its scheme is {}", url.scheme())))
}

/// Says what is wrong with a URL without repeating it: it may hold a password.
fn no_url(error: &dyn Display) -> StackError {
    let example = "postgres://user:password@host:5432/database";
    StackError::Configuration(format!(
        "the database of DATABASE_URL: no URL of PostgreSQL, such as {example} ({error})"
    ))
}

/// Checks that a given database can be reached and that all pools fit into it.
pub(crate) async fn check_given(admin_url: &Secret, tasks: usize, pool_max: u32) -> Result<String, StackError> {
    let unusable = |error: sqlx::Error| StackError::Database(format!("cannot be used: {error}"));
    let options = PgConnectOptions::from_str(admin_url.expose()).map_err(|error| no_url(&error))?;
    let mut connection = options.connect().await.map_err(unusable)?;
    let outcome = read_limits(&mut connection).await.map_err(unusable);
    let _ = connection.close().await;
    let (version, available) = outcome?;
    let needed = needed_connections(tasks, pool_max);
    let available = u32::try_from(available).unwrap_or(0);
    if needed > available {
        return Err(StackError::TooFewConnections { tasks, pool_max, needed, available });
    }
    Ok(format!("version {version} at {}", shown_host(admin_url)))
}

/// The server's version, and how many connections ordinary roles can open.
async fn read_limits(connection: &mut PgConnection) -> Result<(String, i32), sqlx::Error> {
    sqlx::query_as(
        "SELECT current_setting('server_version'), current_setting('max_connections')::int \
         - current_setting('superuser_reserved_connections')::int \
         - coalesce(current_setting('reserved_connections', true)::int, 0)",
    )
    .fetch_one(connection)
    .await
}

/// Host and port without the credentials.
fn shown_host(url: &Secret) -> String {
    let parsed = Url::parse(url.expose()).ok();
    let host = parsed.as_ref().and_then(Url::host_str).filter(|host| !host.is_empty()).unwrap_or("a local socket");
    match parsed.as_ref().and_then(Url::port) {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// The same database as each service's role sees it.
pub(crate) fn role_urls(admin_url: &Secret, secrets: &Secrets) -> Result<BTreeMap<Service, Secret>, StackError> {
    let url = Url::parse(admin_url.expose())
        .map_err(|error| StackError::Configuration(format!("DATABASE_URL is not a URL: {error}")))?;
    let of = |service: Service| {
        let role = format!("datum_{service}");
        let password = secrets.role_password(service);
        (service, Secret::new(with_user(url.clone(), &role, password).into()))
    };
    Ok(Service::ALL.into_iter().map(of).collect())
}

fn with_user(mut url: Url, user: &str, password: &str) -> Url {
    // Parameters win over the part before the host, in libpq as in tokio-postgres.
    let others: Vec<(String, String)> = url
        .query_pairs()
        .filter(|(name, _)| name != "user" && name != "password")
        .map(|(n, v)| (n.into(), v.into()))
        .collect();
    let in_front = url.set_username(user).is_ok() && url.set_password(Some(password)).is_ok();
    if others.is_empty() && in_front {
        url.set_query(None);
        return url;
    }
    let mut query = url.query_pairs_mut();
    query.clear().extend_pairs(others);
    if !in_front {
        // `postgres:///datum?host=/run/postgresql` has no host to stand before.
        query.append_pair("user", user).append_pair("password", password);
    }
    drop(query);
    url
}

/// The end waits no longer for a server that may be gone.
const RELEASE_PATIENCE: Duration = Duration::from_secs(5);

/// The services' roles on the server of a given database, held by this stack while it runs.
#[derive(Debug)]
pub(crate) struct ClaimedRoles {
    pub(crate) admin_url: Secret,
    pub(crate) owner: Owner,
}

impl ClaimedRoles {
    /// Lets others have them: the tasks are gone, and whoever starts gives them passwords of its own.
    pub(crate) async fn release(self, observer: &dyn Observer) {
        let released = tokio::time::timeout(RELEASE_PATIENCE, release_roles(&self.admin_url, &self.owner)).await;
        let why = match released {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {} s", RELEASE_PATIENCE.as_secs()),
        };
        observer.observe(Event::Notice(format!(
            "the roles of the given database stay marked as used by this folder, which another system is told: {why}"
        )));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_urls_of_postgresql_are_taken_and_none_is_repeated() {
        for url in ["postgres://db/datum", "postgresql://a:b@db:1/x?sslmode=require", "postgres:///x?host=/run"] {
            check_url(&Secret::new(url.into())).expect(url);
        }
        for url in ["mysql://a:hunter2@db/x", "http://a:hunter2@db", "host=db password=hunter2", "postgres:hunter2", ""]
        {
            let error = check_url(&Secret::new(url.into())).expect_err(url);
            assert_eq!(error.exit_code(), 64, "{url}");
            assert!(error.to_string().contains("postgres://user") && !error.to_string().contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn every_pool_fits_into_an_own_server_even_while_a_task_is_replaced() {
        assert_eq!(max_connections(3, 14).expect("fits"), 100);
        // 6 tasks and one replacement with 14 each, 5 for administration, 3 reserved.
        assert_eq!(max_connections(6, 14).expect("fits"), 106);
        assert!(max_connections(192, 1_000).is_err());
    }

    #[test]
    fn roles_take_the_administrators_place_in_the_url() {
        let secrets = Secrets::random();
        let password = secrets.role_password(Service::Auth);
        for (admin, expected) in [
            ("postgres://admin:pw@db:5433/datum", format!("postgres://datum_auth:{password}@db:5433/datum")),
            (
                "postgres://db/datum?sslmode=require",
                format!("postgres://datum_auth:{password}@db/datum?sslmode=require"),
            ),
            ("postgres://db/datum?user=admin&password=x", format!("postgres://datum_auth:{password}@db/datum")),
            (
                "postgres:///datum?host=%2Frun%2Fpostgresql",
                format!("postgres:///datum?host=%2Frun%2Fpostgresql&user=datum_auth&password={password}"),
            ),
        ] {
            let urls = role_urls(&Secret::new(admin.into()), &secrets).expect("a URL");
            assert_eq!(urls[&Service::Auth].expose(), expected, "from {admin}");
            urls[&Service::Auth].expose().parse::<tokio_postgres::Config>().expect("tokio-postgres reads it");
        }
        assert!(role_urls(&Secret::new("no url".into()), &secrets).is_err());
    }

    #[test]
    fn credentials_are_not_shown() {
        assert_eq!(
            shown_host(&Secret::new("postgres://a:secret@db.example:5433/x?password=y".into())),
            "db.example:5433"
        );
        assert_eq!(shown_host(&Secret::new("postgres:///x?host=/run".into())), "a local socket");
    }
}
