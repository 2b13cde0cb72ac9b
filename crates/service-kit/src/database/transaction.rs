//! A transaction on one connection.

use std::fmt;

use tokio_postgres::Row;

use super::connection::{Connection, Params, at_most_one, exactly_one};
use super::error::{Cause, DatabaseError};
use crate::stages::{self, Stage};

/// A transaction at the server's default isolation level. It has no effect until [`Transaction::commit`]; dropped, it is
/// rolled back before anybody else uses the connection. Nothing slow (a hash, an HTTP call) belongs inside: the server ends a
/// session that pauses for `DB_IDLE_IN_TRANSACTION_TIMEOUT_MS`.
pub struct Transaction<'c> {
    connection: &'c mut Connection,
    /// A statement has failed, and with it the whole transaction.
    failed: bool,
}

impl<'c> Transaction<'c> {
    pub(super) fn new(connection: &'c mut Connection) -> Self {
        Self { connection, failed: false }
    }

    /// All rows.
    pub async fn query(&mut self, sql: &'static str, params: Params<'_>) -> Result<Vec<Row>, DatabaseError> {
        let outcome = stages::timed(Stage::Db, self.connection.rows(sql, params)).await;
        self.note(outcome)
    }

    /// The one row, or none. More than one is an error.
    pub async fn query_opt(&mut self, sql: &'static str, params: Params<'_>) -> Result<Option<Row>, DatabaseError> {
        at_most_one(self.query(sql, params).await?)
    }

    /// The one row. None or several are an error.
    pub async fn query_one(&mut self, sql: &'static str, params: Params<'_>) -> Result<Row, DatabaseError> {
        exactly_one(self.query(sql, params).await?)
    }

    /// The number of rows written.
    pub async fn execute(&mut self, sql: &'static str, params: Params<'_>) -> Result<u64, DatabaseError> {
        let outcome = stages::timed(Stage::Db, self.connection.affected(sql, params)).await;
        self.note(outcome)
    }

    /// Makes everything permanent.
    ///
    /// # Errors
    /// After a failed statement, [`DatabaseError::Unexpected`]: PostgreSQL would roll back and call it a success. With
    /// [`DatabaseError::Unavailable`] it is unknown whether the commit took place.
    pub async fn commit(self) -> Result<(), DatabaseError> {
        if self.failed {
            return Err(DatabaseError::Unexpected(Cause::new("commit after a failed statement")));
        }
        stages::timed(Stage::Db, self.connection.end_transaction("COMMIT")).await
    }

    fn note<T>(&mut self, outcome: Result<T, DatabaseError>) -> Result<T, DatabaseError> {
        self.failed |= outcome.is_err();
        outcome
    }
}

impl fmt::Debug for Transaction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction").field("failed", &self.failed).finish_non_exhaustive()
    }
}
