//! Who uses the services' roles.
//!
//! Roles belong to the whole server, and whoever starts a system on it gives them passwords of its own. So that a second one
//! does not lock the first one's tasks out, whatever database it uses, each role carries a comment that says whose it is.
//! A migrator without an owner (the one-off task of a deployment, whose passwords come from outside) asks nobody; what it
//! has set is nobody's to change without being told to.

use service_kit::config::Secret;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};

use crate::error::{Doing, MigrateError};
use crate::roles::{ATTEMPTS, collided, is_made_already, pause};
use crate::schemas::{self, Schema};

/// The comment of a role that a system has left behind.
const FREE: &str = "Datum: free";
/// How the comment of a role that is in use begins; the owner's id and place follow.
const IN_USE: &str = "Datum: in use by ";

/// A system that keeps the roles' passwords to itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// What tells it from all others: letters and digits.
    pub id: String,
    /// Where a person finds it.
    pub place: String,
}

impl Owner {
    fn comment(&self) -> String {
        format!("{IN_USE}{} ({})", self.id, self.place)
    }

    /// Whether `comment` says that a role is in use by this one, wherever its place was then.
    fn owns(&self, comment: &str) -> bool {
        comment.strip_prefix(IN_USE).and_then(|rest| rest.split(' ').next()) == Some(self.id.as_str())
    }
}

/// A role that is there, and its comment.
type Found = (String, Option<String>);

/// Writes `owner` on the roles, making those that are missing, unless they are somebody else's. Nothing is changed then.
pub(crate) async fn claim(
    connection: &mut PgConnection,
    schemas: &[Schema],
    owner: &Owner,
    take_over: bool,
) -> Result<(), MigrateError> {
    let mut attempt = 1;
    loop {
        let found = comments(connection).await.doing("looking whose the roles are")?;
        if !take_over && let Some(refusal) = found.iter().find_map(|found| refusal(found, owner)) {
            return Err(refusal);
        }
        match write(connection, schemas, &found, &owner.comment()).await {
            // Somebody claims them in this very moment: look again who it is.
            Err(error) if attempt < ATTEMPTS && (collided(&error) || is_made_already(&error)) => pause(attempt).await,
            outcome => return outcome.doing("writing down whose the roles are"),
        }
        attempt += 1;
    }
}

/// What keeps `owner` from a role.
fn refusal((role, comment): &Found, owner: &Owner) -> Option<MigrateError> {
    let role = role.clone();
    match comment.as_deref() {
        Some(FREE) => None,
        Some(comment) if owner.owns(comment) => None,
        Some(comment) if comment.starts_with(IN_USE) => {
            let (_, place) = comment[IN_USE.len()..].split_once(' ').unwrap_or_default();
            let user = place.strip_prefix('(').and_then(|place| place.strip_suffix(')')).unwrap_or(place).to_owned();
            Some(MigrateError::RoleInUse { role, user })
        }
        _ => Some(MigrateError::RoleOfUnknown { role }),
    }
}

/// All at once, so that of two who find nothing one is second.
async fn write(
    connection: &mut PgConnection,
    schemas: &[Schema],
    found: &[Found],
    comment: &str,
) -> Result<(), sqlx::Error> {
    let mut transaction = connection.begin().await?;
    for Schema { role, .. } in schemas {
        if !found.iter().any(|(name, _)| name == role) {
            // Its password comes with the rest of what it needs.
            transaction.execute(AssertSqlSafe(format!("CREATE ROLE {role} LOGIN"))).await?;
        }
        transaction.execute(AssertSqlSafe(comment_on(role, comment))).await?;
    }
    transaction.commit().await
}

/// Takes away what an earlier system wrote: the passwords are about to be those of a deployment.
pub(crate) async fn disown(connection: &mut PgConnection) -> Result<(), MigrateError> {
    let found = comments(connection).await.doing("looking whose the roles are")?;
    let marked = |(_, comment): &&Found| {
        comment.as_deref().is_some_and(|comment| comment == FREE || comment.starts_with(IN_USE))
    };
    for (role, _) in found.iter().filter(marked) {
        let statement = format!("COMMENT ON ROLE {role} IS NULL");
        crate::roles::repeatedly(connection, &statement).await.doing("writing down whose the roles are")?;
    }
    Ok(())
}

/// Lets others have the roles, as far as they are still `owner`'s: for a system that has stopped.
///
/// # Errors
///
/// [`MigrateError`]; the roles then stay the owner's.
pub async fn release_roles(admin_url: &Secret, owner: &Owner) -> Result<(), MigrateError> {
    // The server has been there all the time: nobody should wait for it at the end.
    let mut connection = crate::connect(admin_url.expose(), std::time::Duration::ZERO).await?;
    let found = comments(&mut connection).await.doing("looking whose the roles are")?;
    let own = |(_, comment): &&Found| comment.as_deref().is_some_and(|comment| owner.owns(comment));
    for (role, _) in found.iter().filter(own) {
        let statement = comment_on(role, FREE);
        crate::roles::repeatedly(&mut connection, &statement).await.doing("writing down whose the roles are")?;
    }
    connection.close().await.doing("closing the connection")
}

async fn comments(connection: &mut PgConnection) -> Result<Vec<Found>, sqlx::Error> {
    let roles: Vec<&str> = schemas::embedded().iter().map(|schema| schema.role).collect();
    sqlx::query_as("SELECT rolname::text, shobj_description(oid, 'pg_authid') FROM pg_roles WHERE rolname = ANY($1)")
        .bind(roles)
        .fetch_all(connection)
        .await
}

fn comment_on(role: &str, comment: &str) -> String {
    // As an E'' string, whatever `standard_conforming_strings` says.
    let quoted = comment.replace('\\', r"\\").replace('\'', r"\'");
    format!("COMMENT ON ROLE {role} IS E'{quoted}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_known_by_its_id_and_not_by_its_place() {
        let owner = |id: &str, place: &str| Owner { id: id.to_owned(), place: place.to_owned() };
        let comment = owner("a1", "/home/ada/.datum").comment();
        assert!(owner("a1", "/moved").owns(&comment));
        for other in ["a", "a12", "in", ""] {
            assert!(!owner(other, "/home/ada/.datum").owns(&comment), "{other}");
        }
        assert!(!owner("a1", "").owns(FREE));
    }

    #[test]
    fn a_place_is_quoted() {
        assert_eq!(comment_on("r", r"it's C:\x"), r"COMMENT ON ROLE r IS E'it\'s C:\\x'");
    }
}
