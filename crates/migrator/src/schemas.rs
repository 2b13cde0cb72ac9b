//! The embedded migrations, one folder a service.

use sqlx::migrate::{Migration, Migrator as Embedded};

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
            migrations: sqlx::migrate!("../../migrations/auth"),
        },
        Schema {
            name: "actor",
            role: "datum_actor",
            table: "actor._sqlx_migrations",
            migrations: sqlx::migrate!("../../migrations/actor"),
        },
        Schema {
            name: "document",
            role: "datum_document",
            table: "document._sqlx_migrations",
            migrations: sqlx::migrate!("../../migrations/document"),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

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
