//! The embedded migrations, one folder a service.

use std::borrow::Cow;

use sqlx::SqlSafeStr;
use sqlx::migrate::{Migration, MigrationType, Migrator as Embedded};

/// By schema: each file's name and text.
mod files {
    include!(concat!(env!("OUT_DIR"), "/migrations.rs"));
}

/// A service's schema, the role that its service uses, and what builds it.
#[derive(Debug)]
pub(crate) struct Schema {
    pub(crate) name: &'static str,
    pub(crate) role: &'static str,
    /// Where the applied versions are recorded.
    pub(crate) table: &'static str,
    pub(crate) migrations: Embedded,
}

impl Schema {
    /// What is applied in order. Migrations go forward only; a `.down.sql` would be ignored.
    pub(crate) fn migrations(&self) -> impl Iterator<Item = &Migration> {
        self.migrations.iter().filter(|migration| !migration.migration_type.is_down_migration())
    }

    pub(crate) fn newest_version(&self) -> i64 {
        self.migrations().map(|migration| migration.version).max().unwrap_or(0)
    }
}

/// All schemas as this build of the program knows them.
pub(crate) fn embedded() -> [Schema; 3] {
    [
        Schema {
            name: "auth",
            role: "datum_auth",
            table: "auth._sqlx_migrations",
            migrations: migrations_of(files::AUTH),
        },
        Schema {
            name: "actor",
            role: "datum_actor",
            table: "actor._sqlx_migrations",
            migrations: migrations_of(files::ACTOR),
        },
        Schema {
            name: "document",
            role: "datum_document",
            table: "document._sqlx_migrations",
            migrations: migrations_of(files::DOCUMENT),
        },
    ]
}

/// The migrations of `<VERSION>_<DESCRIPTION>.sql` files, by sqlx's conventions: underscores are spaces, and a first line
/// `-- no-transaction` is obeyed.
fn migrations_of(files: &[(&'static str, &'static str)]) -> Embedded {
    let migration = |(name, sql): &(&'static str, &'static str)| {
        let (version, rest) = name.split_once('_').unwrap_or((name, ""));
        let version = version.parse().unwrap_or_else(|_| panic!("migrations/{name} does not begin with its version"));
        let kind = MigrationType::from_filename(rest);
        let description = rest.trim_end_matches(kind.suffix()).replace('_', " ");
        let outside_transaction = sql.starts_with("-- no-transaction");
        Migration::new(version, Cow::Owned(description), kind, sql.into_sql_str(), outside_transaction)
    };
    Embedded::with_migrations(files.iter().map(migration).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_described_by_its_name_and_first_line() {
        let embedded = migrations_of(&[
            ("20260102000000_second_step.sql", "-- no-transaction\nVACUUM"),
            ("20260101000000_first.sql", "SELECT 1"),
        ]);
        let read: Vec<_> = embedded.iter().map(|m| (m.version, &*m.description, m.no_tx)).collect();
        assert_eq!(read, [(20_260_101_000_000, "first", false), (20_260_102_000_000, "second step", true)]);
    }

    #[test]
    fn every_file_of_the_folders_is_embedded() {
        for schema in embedded() {
            let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../migrations").join(schema.name);
            let files = std::fs::read_dir(folder).expect("the schema's folder").count();
            assert_eq!(schema.migrations.iter().count(), files, "schema {}", schema.name);
        }
    }

    #[test]
    fn versions_are_timestamps_and_each_schema_has_its_tables() {
        for schema in embedded() {
            assert!(schema.migrations().count() > 0, "schema {} has no migration", schema.name);
            for migration in schema.migrations() {
                let digits = migration.version.to_string();
                assert_eq!(digits.len(), 14, "{} is not YYYYMMDDHHMMSS ({})", migration.version, schema.name);
            }
        }
    }
}
