//! One request and its answer on a connection, and what that says about the connection.

use std::error::Error as _;
use std::future::Future;

use tokio::time::timeout;

use super::error::{Cause, DatabaseError, is_fatal, is_stale_plan};
use super::metrics::Discard;
use super::pool::Pool;

/// Where the conversation with the server stands.
pub(super) struct Exchange {
    pub(super) pool: Pool,
    /// An answer is awaited; still so when its future was dropped, and then nobody knows what comes next on the wire.
    pub(super) in_flight: bool,
    /// Why the connection must not be used by anybody else.
    pub(super) discard: Option<Discard>,
}

/// A call that did not succeed.
pub(super) struct Failure {
    error: DatabaseError,
    /// The server refused to run the statement, because its tables are not what they were when it was prepared.
    pub(super) stale_plan: bool,
}

impl From<Failure> for DatabaseError {
    fn from(failure: Failure) -> Self {
        failure.error
    }
}

impl Exchange {
    pub(super) fn new(pool: Pool) -> Self {
        Self { pool, in_flight: false, discard: None }
    }

    /// Why the connection cannot go back into the pool.
    pub(super) fn unusable(&self) -> Option<Discard> {
        self.discard.or(self.in_flight.then_some(Discard::Abandoned))
    }

    /// Awaits the server's answer.
    pub(super) async fn reply<T>(
        &mut self,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Failure> {
        if self.in_flight {
            return Err(unavailable("an earlier statement on this connection was given up"));
        }
        self.in_flight = true;
        let Ok(answer) = timeout(self.pool.0.reply_timeout(), answer).await else {
            self.discard = Some(Discard::NoReply);
            return Err(unavailable("the server gave no answer"));
        };
        self.in_flight = false;
        let error = match answer {
            Ok(answer) => {
                self.pool.0.answered();
                return Ok(answer);
            }
            Err(error) => error,
        };
        let db = error.as_db_error();
        if db.is_some() {
            self.pool.0.answered();
        }
        if db.map_or(!is_conversion(&error), is_fatal) {
            self.discard = Some(Discard::Broken);
        }
        let stale_plan = db.is_some_and(is_stale_plan);
        let error = DatabaseError::from_statement(&error);
        if matches!(error, DatabaseError::ReadOnly) {
            // Its server was demoted; a new connection finds the one that takes writes.
            self.discard = Some(Discard::ReadOnly);
        }
        Err(Failure { error, stale_plan })
    }
}

/// Whether an error that is not the server's came up before anything was sent: a parameter did not fit its type. Protocol
/// violations and closed connections have no source, or one about I/O.
fn is_conversion(error: &tokio_postgres::Error) -> bool {
    error.source().is_some_and(|source| !source.is::<std::io::Error>())
}

fn unavailable(why: &'static str) -> Failure {
    Failure { error: DatabaseError::Unavailable(Cause::new(why)), stale_plan: false }
}
