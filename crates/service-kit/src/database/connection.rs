//! A connection in the hands of one request.
//!
//! It comes back to the pool only in a known state. While an answer is awaited it is marked, so that when the request is
//! dropped then (its client went away), the statement is cancelled and the connection closed instead of being handed on.

use std::fmt;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::error::DatabaseError;
use super::exchange::{Exchange, Failure};
use super::metrics::Discard;
use super::pool::{Held, InUse, Pool};
use super::transaction::Transaction;
use crate::stages::{self, Stage};

/// Parameters of a statement, by position.
pub type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

/// A connection of the pool, given back when dropped.
///
/// Statements are prepared once a connection and then kept, which is why their texts have to be `'static`: what users
/// send is a parameter, never a part of the text, and there are no more statements than the program has texts.
///
/// ```compile_fail,E0597
/// # async fn example(connection: &mut service_kit::database::Connection, id: u64) {
/// let text = format!("SELECT {id}");
/// connection.query(&text, &[]).await;
/// # }
/// ```
///
/// Each call is stage `db` and ends within `DB_STATEMENT_TIMEOUT_MS` and three seconds, whatever the server does. Nothing is
/// tried twice, but for a statement whose prepared form had become stale: it had not been run.
pub struct Connection {
    /// Absent only while being dropped.
    held: Option<Held>,
    in_use: Option<InUse>,
    exchange: Exchange,
    /// The server may be in a transaction that nobody has ended.
    in_transaction: bool,
}

impl Connection {
    pub(super) fn new(pool: Pool, held: Held) -> Self {
        Self { held: Some(held), in_use: Some(InUse::new(&pool)), exchange: Exchange::new(pool), in_transaction: false }
    }

    /// All rows.
    pub async fn query(&mut self, sql: &'static str, params: Params<'_>) -> Result<Vec<Row>, DatabaseError> {
        let call = async {
            self.roll_back().await?;
            self.rows(sql, params).await
        };
        stages::timed(Stage::Db, call).await
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
        let call = async {
            self.roll_back().await?;
            self.affected(sql, params).await
        };
        stages::timed(Stage::Db, call).await
    }

    /// Begins a transaction. Dropped without [`Transaction::commit`], it is rolled back.
    pub async fn transaction(&mut self) -> Result<Transaction<'_>, DatabaseError> {
        let call = async {
            self.roll_back().await?;
            // Before it is sent: from then on the server may be in it.
            self.in_transaction = true;
            self.command("BEGIN").await
        };
        stages::timed(Stage::Db, call).await?;
        Ok(Transaction::new(self))
    }

    pub(super) async fn rows(&mut self, sql: &'static str, params: Params<'_>) -> Result<Vec<Row>, DatabaseError> {
        match self.rows_once(sql, params).await {
            Err(failure) if self.may_prepare_again(&failure, sql) => Ok(self.rows_once(sql, params).await?),
            outcome => Ok(outcome?),
        }
    }

    pub(super) async fn affected(&mut self, sql: &'static str, params: Params<'_>) -> Result<u64, DatabaseError> {
        match self.affected_once(sql, params).await {
            Err(failure) if self.may_prepare_again(&failure, sql) => Ok(self.affected_once(sql, params).await?),
            outcome => Ok(outcome?),
        }
    }

    /// Ends the transaction, either way.
    pub(super) async fn end_transaction(&mut self, sql: &'static str) -> Result<(), DatabaseError> {
        // Refused, it may or may not be over, and is rolled back in any case.
        self.command(sql).await?;
        self.in_transaction = false;
        Ok(())
    }

    /// Rolls back what a dropped [`Transaction`] has left open.
    async fn roll_back(&mut self) -> Result<(), DatabaseError> {
        if self.in_transaction { self.end_transaction("ROLLBACK").await } else { Ok(()) }
    }

    /// The same for a connection that was dropped meanwhile.
    async fn settle(&mut self) {
        if self.roll_back().await.is_ok() {
            self.exchange.discard = None;
        }
    }

    async fn rows_once(&mut self, sql: &'static str, params: Params<'_>) -> Result<Vec<Row>, Failure> {
        let Self { held, exchange, .. } = self;
        let client = &held.as_ref().expect("held until dropped").postgres;
        let statement = exchange.reply(client.prepare_cached(sql)).await?;
        exchange.reply(client.query(&statement, params)).await
    }

    async fn affected_once(&mut self, sql: &'static str, params: Params<'_>) -> Result<u64, Failure> {
        let Self { held, exchange, .. } = self;
        let client = &held.as_ref().expect("held until dropped").postgres;
        let statement = exchange.reply(client.prepare_cached(sql)).await?;
        exchange.reply(client.execute(&statement, params)).await
    }

    async fn command(&mut self, sql: &'static str) -> Result<(), DatabaseError> {
        let Self { held, exchange, .. } = self;
        let client = &held.as_ref().expect("held until dropped").postgres;
        Ok(exchange.reply(client.batch_execute(sql)).await?)
    }

    /// The first row of a statement without parameters, which is not kept: for texts made at run time by this crate.
    pub(super) async fn probe(&mut self, sql: &str) -> Result<Option<Row>, DatabaseError> {
        let Self { held, exchange, .. } = self;
        let client = &held.as_ref().expect("held until dropped").postgres;
        Ok(exchange.reply(client.query_typed_opt(sql, &[])).await?)
    }

    /// Whether the statement was refused before it ran, because its tables changed, and can be prepared anew. Inside a
    /// transaction it cannot: the refusal has ended that.
    fn may_prepare_again(&mut self, failure: &Failure, sql: &str) -> bool {
        if !failure.stale_plan {
            return false;
        }
        if let Some(held) = &self.held {
            drop(held.postgres.statement_cache.remove(sql, &[]));
        }
        !self.in_transaction
    }
}

pub(super) fn at_most_one(rows: Vec<Row>) -> Result<Option<Row>, DatabaseError> {
    let mut rows = rows.into_iter();
    match (rows.next(), rows.next()) {
        (row, None) => Ok(row),
        _ => Err(DatabaseError::wrong_count()),
    }
}

pub(super) fn exactly_one(rows: Vec<Row>) -> Result<Row, DatabaseError> {
    at_most_one(rows)?.ok_or_else(DatabaseError::wrong_count)
}

impl Drop for Connection {
    fn drop(&mut self) {
        let Some(held) = self.held.take() else { return };
        let pool = self.exchange.pool.clone();
        let runtime = Handle::try_current();
        match (self.exchange.unusable(), runtime) {
            (Some(why), Ok(runtime)) if self.exchange.in_flight => {
                drop(self.in_use.take());
                let supply = Arc::clone(&pool.0.supply);
                let client = Held::take(held);
                runtime.spawn(async move {
                    supply.connector.cancel(client.postgres.cancel_token()).await;
                    client.discard(why);
                });
                pool.0.attention.notify_one();
            }
            (None, Ok(runtime)) if self.in_transaction => {
                let mut connection = Self {
                    held: Some(held),
                    in_use: self.in_use.take(),
                    exchange: Exchange::new(pool),
                    in_transaction: true,
                };
                // Unless it succeeds: a runtime that is going away drops this half done, and it must not start again.
                connection.exchange.discard = Some(Discard::Abandoned);
                runtime.spawn(async move { connection.settle().await });
            }
            (None, _) if !self.in_transaction => {
                drop(self.in_use.take());
                pool.0.take_back(held);
            }
            (why, _) => {
                drop(self.in_use.take());
                pool.0.discard(held, why.unwrap_or(Discard::Abandoned));
            }
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("in_transaction", &self.in_transaction).finish_non_exhaustive()
    }
}
