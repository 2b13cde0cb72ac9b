//! The migrator against real PostgreSQL.
#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

mod concurrency;
mod history;
mod ownership;
mod privileges;
mod program;
mod tls;

use std::borrow::Cow;

use migrator::{Migrator, Progress};
use sqlx::migrate::{Migration, MigrationType};
use test_support::test_passwords;

/// Migrations of a test: version and SQL each.
fn migrations(files: &[(i64, &'static str)]) -> sqlx::migrate::Migrator {
    let migration = |(version, sql): &(i64, &'static str)| {
        let no_transaction = sql.starts_with("-- no-transaction");
        let sql = sqlx::SqlSafeStr::into_sql_str(*sql);
        Migration::new(*version, Cow::Borrowed("of a test"), MigrationType::Simple, sql, no_transaction)
    };
    sqlx::migrate::Migrator::with_migrations(files.iter().map(migration).collect())
}

/// A migrator whose schema `actor` is built by `files`; the other two have nothing.
fn migrator(files: &[(i64, &'static str)]) -> Migrator {
    Migrator::new(test_passwords())
        .with_migrations("auth", migrations(&[]))
        .with_migrations("actor", migrations(files))
        .with_migrations("document", migrations(&[]))
}

fn quietly(_: Progress<'_>) {}
