//! What can go wrong with the database, by SQLSTATE (PostgreSQL manual, appendix A), and what a client is told.
//!
//! Nothing here carries a parameter's value, a row, an address or a password: PostgreSQL puts rows into `DETAIL`, values
//! into messages of some classes, and addresses into those about authentication. What is kept is safe to log.

use std::error::Error as _;
use std::fmt::{self, Write as _};
use std::io;
use std::time::Duration;

use tokio_postgres::error::{DbError, Severity};
use tokio_postgres::types::WrongType;

use crate::problem::Problem;

/// A database call that did not succeed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatabaseError {
    /// Every connection stayed in use for the whole wait. 503 `database_busy`.
    #[error("no database connection became free in time")]
    AcquireTimeout,
    /// The database cannot be reached, refuses, or broke off; whether a statement took effect may be unknown. Deadlocks and
    /// serialisation failures too: the same request may succeed next time. 503 `database_unavailable`.
    #[error("the database is unavailable")]
    Unavailable(#[source] Cause),
    /// The server ended the statement at `DB_STATEMENT_TIMEOUT_MS`. 503 `database_unavailable`.
    #[error("the statement ran for too long")]
    StatementTimeout,
    /// SQLSTATE 23505. Map it by the constraint's name; left as it is, 409 `conflict`.
    #[error("unique constraint {constraint} is violated")]
    UniqueViolation {
        /// Name of the constraint or unique index.
        constraint: String,
    },
    /// The rest of SQLSTATE class 23. Left as it is, 409 `conflict`.
    #[error("constraint {constraint} is violated (SQLSTATE {sqlstate})")]
    ConstraintViolation {
        /// Name of the constraint; of the column for a `NOT NULL`.
        constraint: String,
        /// 23503 foreign key, 23502 not null, 23514 check, 23P01 exclusion.
        sqlstate: String,
    },
    /// SQLSTATE 25006: the server is a standby now, or was made read-only. The connection is not used again. 503.
    #[error("the database is read-only")]
    ReadOnly,
    /// A text that PostgreSQL cannot hold, such as one with U+0000. Validation should have refused it; 422 `invalid_text`.
    #[error("a text cannot be stored")]
    InvalidText(#[source] Cause),
    /// A defect: wrong SQL, wrong types, a missing privilege. 500.
    #[error("the statement failed")]
    Unexpected(#[source] Cause),
}

impl DatabaseError {
    /// Whether this is a violation of the constraint of that name.
    #[must_use]
    pub fn violates(&self, name: &str) -> bool {
        match self {
            Self::UniqueViolation { constraint } | Self::ConstraintViolation { constraint, .. } => constraint == name,
            _ => false,
        }
    }

    /// A statement gave more or fewer rows than its caller can use.
    pub(super) fn wrong_count() -> Self {
        Self::Unexpected(Cause::new("unexpected number of rows"))
    }

    /// An answer of the server or the driver to a statement.
    pub(super) fn from_statement(error: &tokio_postgres::Error) -> Self {
        if let Some(db) = error.as_db_error() {
            return Self::from_server(db);
        }
        let cause = Cause::driver(error, false);
        // A connection's own errors surface in the task that drives it; a statement only learns that it is closed.
        if error.is_closed() { Self::Unavailable(cause) } else { Self::Unexpected(cause) }
    }

    /// A failed attempt to connect: whatever the reason, no client can do anything about it.
    pub(super) fn from_connect(error: &tokio_postgres::Error) -> Self {
        Self::Unavailable(Cause::connection(error))
    }

    fn from_server(db: &DbError) -> Self {
        let name = || db.constraint().or(db.column()).unwrap_or_default().to_owned();
        match Class::of(db.code().code()) {
            Class::Unique => Self::UniqueViolation { constraint: name() },
            Class::Constraint => {
                Self::ConstraintViolation { constraint: name(), sqlstate: db.code().code().to_owned() }
            }
            Class::Timeout => Self::StatementTimeout,
            Class::ReadOnly => Self::ReadOnly,
            Class::InvalidText => Self::InvalidText(Cause::server(db)),
            // DDL of a rollout got in between, inside a transaction, where the statement cannot be repeated.
            _ if is_stale_plan(db) => Self::Unavailable(Cause::server(db)),
            Class::Unavailable => Self::Unavailable(Cause::server(db)),
            Class::Unexpected => Self::Unexpected(Cause::server(db)),
        }
    }
}

/// For the columns of a [`tokio_postgres::Row`]: `row.try_get("id")?`.
impl From<tokio_postgres::Error> for DatabaseError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::from_statement(&error)
    }
}

impl From<DatabaseError> for Problem {
    fn from(error: DatabaseError) -> Self {
        const RETRY_AFTER: Duration = Duration::from_secs(1);
        let problem = match &error {
            DatabaseError::AcquireTimeout => Self::unavailable(
                "database_busy",
                "All database connections are in use; try again in a moment.",
                RETRY_AFTER,
            ),
            DatabaseError::Unavailable(_) | DatabaseError::StatementTimeout | DatabaseError::ReadOnly => {
                Self::unavailable(
                    "database_unavailable",
                    "The database cannot answer now; try again in a moment.",
                    RETRY_AFTER,
                )
            }
            DatabaseError::UniqueViolation { .. } | DatabaseError::ConstraintViolation { .. } => {
                Self::conflict("conflict", "The request does not fit what is stored.")
            }
            DatabaseError::InvalidText(_) => Self::new(
                http::StatusCode::UNPROCESSABLE_ENTITY,
                "invalid_text",
                "A text has a character that cannot be stored.",
            ),
            DatabaseError::Unexpected(_) => return Self::internal(error),
        };
        problem.with_source(error)
    }
}

/// What an SQLSTATE means for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Unique,
    Constraint,
    Timeout,
    ReadOnly,
    InvalidText,
    Unavailable,
    Unexpected,
}

impl Class {
    fn of(sqlstate: &str) -> Self {
        match sqlstate {
            "23505" => Self::Unique,
            "57014" => Self::Timeout,
            "25006" => Self::ReadOnly,
            // character_not_in_repertoire, untranslatable_character
            "22021" | "22P05" => Self::InvalidText,
            // idle_in_transaction_session_timeout, lock_not_available, transaction_timeout
            "25P03" | "25P04" | "55P03" => Self::Unavailable,
            _ => match sqlstate.get(..2) {
                Some("23") => Self::Constraint,
                // Connection, resources (53300: too many connections), operator intervention (57P01 to 57P05: shutting
                // down, starting up), system error, internal error, transaction rollback (40001, 40P01).
                Some("08" | "53" | "57" | "58" | "XX" | "40") => Self::Unavailable,
                _ => Self::Unexpected,
            },
        }
    }
}

/// Whether a prepared statement no longer fits its tables. The text of SQLSTATE 0A000 is translated, the routine is not.
pub(super) fn is_stale_plan(db: &DbError) -> bool {
    db.code().code() == "0A000" && db.routine() == Some("RevalidateCachedQuery")
}

/// Whether the server ends the session with this error.
pub(super) fn is_fatal(db: &DbError) -> bool {
    match db.parsed_severity() {
        Some(severity) => matches!(severity, Severity::Fatal | Severity::Panic),
        None => matches!(db.severity(), "FATAL" | "PANIC"),
    }
}

/// What the server or the driver said, without anything that must not be logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause(String);

impl Cause {
    /// A cause of our own.
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// SQLSTATE, names of schema objects, and the message where its class has no values and no addresses in it.
    fn server(db: &DbError) -> Self {
        let mut text = format!("SQLSTATE {}", db.code().code());
        for (what, name) in [("constraint", db.constraint()), ("table", db.table()), ("column", db.column())] {
            if let Some(name) = name {
                let _ = write!(text, ", {what} {name}");
            }
        }
        if has_plain_message(db.code().code()) {
            text.push_str(": ");
            text.push_str(db.message());
        }
        Self(text)
    }

    /// Why a connection could not be opened, or was lost.
    pub(super) fn connection(error: &tokio_postgres::Error) -> Self {
        error.as_db_error().map_or_else(|| Self::driver(error, true), Self::server)
    }

    fn driver(error: &tokio_postgres::Error, connecting: bool) -> Self {
        let mut text = error.to_string();
        let Some(source) = error.source() else { return Self(text) };
        let cause = match source.downcast_ref::<io::Error>() {
            Some(io) => Some(explain_io(io)),
            // What a conversion complains about may be the value; of a wrong type it is the two types.
            None => (connecting || source.is::<WrongType>()).then(|| source.to_string()),
        };
        if let Some(cause) = cause {
            text.push_str(": ");
            text.push_str(&cause);
        }
        Self(text)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Cause {}

/// Classes whose messages name objects and states only. Not 22, 23 and P0 (values) nor 28 (addresses).
fn has_plain_message(sqlstate: &str) -> bool {
    matches!(sqlstate.get(..2), Some("0A" | "25" | "26" | "3D" | "3F" | "40" | "42" | "53" | "54" | "55" | "57" | "58"))
}

fn explain_io(error: &io::Error) -> String {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        // rustls repeats the name or address here.
        Some(rustls::Error::InvalidCertificate(
            rustls::CertificateError::NotValidForName | rustls::CertificateError::NotValidForNameContext { .. },
        )) => "the server's certificate is for another host name".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse;
    use http::StatusCode;
    use http::header::RETRY_AFTER;

    use super::*;

    #[test]
    fn sqlstates_are_classified() {
        for (sqlstate, class) in [
            ("23505", Class::Unique),
            ("23503", Class::Constraint),
            ("23502", Class::Constraint),
            ("23514", Class::Constraint),
            ("23P01", Class::Constraint),
            ("57014", Class::Timeout),
            ("25006", Class::ReadOnly),
            ("22021", Class::InvalidText),
            ("08006", Class::Unavailable),
            ("57P01", Class::Unavailable),
            ("57P02", Class::Unavailable),
            ("57P03", Class::Unavailable),
            ("53300", Class::Unavailable),
            ("53100", Class::Unavailable),
            ("40001", Class::Unavailable),
            ("40P01", Class::Unavailable),
            ("25P03", Class::Unavailable),
            ("58030", Class::Unavailable),
            ("XX000", Class::Unavailable),
            ("22P02", Class::Unexpected),
            ("42601", Class::Unexpected),
            ("42501", Class::Unexpected),
            ("25P02", Class::Unexpected),
            ("", Class::Unexpected),
        ] {
            assert_eq!(Class::of(sqlstate), class, "{sqlstate}");
        }
    }

    #[test]
    fn only_a_defect_is_a_500_and_every_503_says_when_to_come_back() {
        let unique = || DatabaseError::UniqueViolation { constraint: "users_email_key".to_owned() };
        let check =
            DatabaseError::ConstraintViolation { constraint: "size_positive".to_owned(), sqlstate: "23514".to_owned() };
        for (error, status, code) in [
            (DatabaseError::AcquireTimeout, 503, "database_busy"),
            (DatabaseError::Unavailable(Cause::new("x")), 503, "database_unavailable"),
            (DatabaseError::StatementTimeout, 503, "database_unavailable"),
            (DatabaseError::ReadOnly, 503, "database_unavailable"),
            (unique(), 409, "conflict"),
            (check, 409, "conflict"),
            (DatabaseError::InvalidText(Cause::new("x")), 422, "invalid_text"),
            (DatabaseError::Unexpected(Cause::new("x")), 500, "internal_error"),
        ] {
            let problem = Problem::from(error);
            assert_eq!((problem.status().as_u16(), problem.code()), (status, code));
            let response = problem.into_response();
            let retry = response.headers().get(RETRY_AFTER).map(|value| value.to_str().expect("ASCII"));
            let expected = (response.status() == StatusCode::SERVICE_UNAVAILABLE).then_some("1");
            assert_eq!(retry, expected);
        }
    }

    #[test]
    fn violations_are_told_apart_by_name() {
        let error = DatabaseError::UniqueViolation { constraint: "users_email_key".to_owned() };
        assert!(error.violates("users_email_key"));
        assert!(!error.violates("users_pkey"));
        assert!(!DatabaseError::AcquireTimeout.violates(""));
    }

    #[test]
    fn messages_with_values_or_addresses_are_left_out() {
        for sqlstate in ["22P02", "23505", "23514", "28000", "28P01", "P0001"] {
            assert!(!has_plain_message(sqlstate), "{sqlstate}");
        }
    }

    #[test]
    fn a_certificate_for_another_name_is_reported_without_names() {
        let rustls = rustls::Error::InvalidCertificate(rustls::CertificateError::NotValidForName);
        let error = io::Error::new(io::ErrorKind::InvalidData, rustls);
        assert_eq!(explain_io(&error), "the server's certificate is for another host name");
    }
}
