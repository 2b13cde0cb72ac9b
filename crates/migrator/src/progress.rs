//! What a run tells while it works, and at its end.

use std::{fmt, time::Duration};

/// A migration that was applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The schema it belongs to.
    pub schema: &'static str,
    /// Its version, `YYYYMMDDHHMMSS`.
    pub version: i64,
    /// The rest of its file name.
    pub description: String,
    /// How long it took.
    pub elapsed: Duration,
}

/// What a run did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// In the order in which they were applied; empty when there was nothing to do.
    pub applied: Vec<Applied>,
}

/// A step of a run; `Display` is a line for a person.
#[derive(Debug)]
#[non_exhaustive]
pub enum Progress<'a> {
    /// Another migrator is at work.
    Waiting {
        /// The longest that this run waits for it.
        at_most: Duration,
    },
    /// Roles, schemas and privileges are as they should be.
    RolesReady,
    /// A migration has been applied.
    Applied(&'a Applied),
    /// A schema needed nothing.
    UpToDate {
        /// The schema.
        schema: &'static str,
        /// Its newest version; 0 when it has no migrations.
        version: i64,
    },
}

impl fmt::Display for Progress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Waiting { at_most } => {
                write!(f, "another migrator is at work: waiting for it, at most {} s", at_most.as_secs())
            }
            Self::RolesReady => f.write_str("roles and schemas are in place"),
            Self::Applied(Applied { schema, version, description, elapsed }) => {
                write!(f, "{schema}: applied {version} {description} in {} ms", elapsed.as_millis())
            }
            Self::UpToDate { schema, version } => write!(f, "{schema}: up to date at {version}"),
        }
    }
}
