//! What must be there before the first migration: a role and a schema for each service, and nothing they do not need.
//!
//! Works for an administrator without superuser rights that has CREATEROLE and owns the database (the master user of
//! RDS). Roles belong to the whole server, so migrators of two databases can meet here: every statement may be repeated.

use std::time::Duration;

use postgres_protocol::password::scram_sha_256;
use service_kit::config::Secret;
use sqlx::{AssertSqlSafe, Executor, PgConnection};

use crate::{
    error::{Doing, MigrateError},
    schemas::Schema,
};

/// How often a statement is repeated that collided with another migrator's.
pub(crate) const ATTEMPTS: u32 = 20;

/// The passwords of the services' roles. Letters of any kind; kept by PostgreSQL as SCRAM verifiers.
#[derive(Debug, Clone)]
pub struct RolePasswords {
    /// Of `datum_auth`.
    pub auth: Secret,
    /// Of `datum_actor`.
    pub actor: Secret,
    /// Of `datum_document`.
    pub document: Secret,
}

impl RolePasswords {
    fn of(&self, schema: &Schema) -> &Secret {
        match schema.name {
            "auth" => &self.auth,
            "actor" => &self.actor,
            _ => &self.document,
        }
    }
}

/// Makes or refreshes roles, schemas and privileges. Idempotent.
pub(crate) async fn establish(
    connection: &mut PgConnection,
    schemas: &[Schema],
    passwords: &RolePasswords,
) -> Result<(), MigrateError> {
    for schema in schemas {
        establish_role(connection, schema.role, passwords.of(schema))
            .await
            .map_err(|source| MigrateError::Role { role: schema.role, source })?;
        let Schema { name, role, .. } = schema;
        let statements = [
            format!("CREATE SCHEMA IF NOT EXISTS {name}"),
            format!("REVOKE ALL ON SCHEMA {name} FROM PUBLIC"),
            format!("GRANT USAGE ON SCHEMA {name} TO {role}"),
            format!("ALTER ROLE {role} SET search_path = {name}"),
            format!(
                "ALTER DEFAULT PRIVILEGES IN SCHEMA {name} GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {role}"
            ),
            format!("ALTER DEFAULT PRIVILEGES IN SCHEMA {name} GRANT USAGE ON SEQUENCES TO {role}"),
        ];
        for statement in statements {
            repeatedly(connection, &statement).await.doing("setting up schemas and privileges")?;
        }
    }
    close_to_others(connection, schemas).await
}

/// What PUBLIC may do by default in a database and nobody here needs.
pub(crate) fn privileges_of_database(database: &str, schemas: &[Schema]) -> [String; 2] {
    let roles = schemas.iter().map(|schema| schema.role).collect::<Vec<_>>().join(", ");
    [
        format!("REVOKE CREATE, TEMPORARY ON DATABASE {database} FROM PUBLIC"),
        format!("GRANT CONNECT ON DATABASE {database} TO {roles}"),
    ]
}

async fn close_to_others(connection: &mut PgConnection, schemas: &[Schema]) -> Result<(), MigrateError> {
    let (database, has_public): (String, bool) =
        sqlx::query_as("SELECT quote_ident(current_database()), to_regnamespace('public') IS NOT NULL")
            .fetch_one(&mut *connection)
            .await
            .doing("looking at the database")?;
    let public = has_public.then(|| "REVOKE ALL ON SCHEMA public FROM PUBLIC".to_owned());
    for statement in privileges_of_database(&database, schemas).into_iter().chain(public) {
        repeatedly(connection, &statement).await.doing("setting up the database's privileges")?;
    }
    Ok(())
}

async fn establish_role(connection: &mut PgConnection, role: &str, password: &Secret) -> Result<(), sqlx::Error> {
    // The verifier, not the password, goes to the server: statements end in logs and in pg_stat_activity. It is base64
    // and punctuation without quotes.
    let verifier = scram_sha_256(password.expose().as_bytes());
    let exists: bool = sqlx::query_scalar("SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)")
        .bind(role)
        .fetch_one(&mut *connection)
        .await?;
    if !exists {
        match repeatedly(connection, &format!("CREATE ROLE {role} LOGIN PASSWORD '{verifier}'")).await {
            // Another migrator was faster between the two statements.
            Err(error) if is_made_already(&error) => {}
            outcome => return outcome,
        }
    }
    repeatedly(connection, &format!("ALTER ROLE {role} LOGIN PASSWORD '{verifier}'")).await
}

/// Executes a statement again while it only collided with another session's change of the same catalog row.
pub(crate) async fn repeatedly(connection: &mut PgConnection, statement: &str) -> Result<(), sqlx::Error> {
    let mut attempt = 1;
    loop {
        match connection.execute(AssertSqlSafe(statement)).await {
            Err(error) if attempt < ATTEMPTS && collided(&error) => {
                pause(attempt).await;
                attempt += 1;
            }
            outcome => return outcome.map(drop),
        }
    }
}

/// Longer after each attempt, so that two which collide do not go on in step.
pub(crate) async fn pause(attempt: u32) {
    tokio::time::sleep(Duration::from_millis(10) * attempt).await;
}

pub(crate) fn collided(error: &sqlx::Error) -> bool {
    let Some(error) = error.as_database_error() else { return false };
    match error.code().as_deref() {
        // unique_violation in a catalog, serialization_failure, deadlock_detected
        Some("23505" | "40001" | "40P01") => true,
        // internal_error is what PostgreSQL says for "tuple concurrently updated".
        Some("XX000") => error.message().contains("concurrently"),
        _ => false,
    }
}

/// Whether a role is there that was not a moment ago: `duplicate_object`.
pub(crate) fn is_made_already(error: &sqlx::Error) -> bool {
    code(error).as_deref() == Some("42710")
}

fn code(error: &sqlx::Error) -> Option<String> {
    Some(error.as_database_error()?.code()?.into_owned())
}
