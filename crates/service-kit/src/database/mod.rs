//! The pool of connections to PostgreSQL: at most 14, 5 always open, by default.
//!
//! A request acquires a [`Connection`], runs statements, and drops it; what may go wrong is a [`DatabaseError`], which
//! knows the answer a client gets. Underneath are deadpool and `tokio-postgres`. What they do not have is here: a minimum
//! (`keeper`, `supply`), a connection that never comes back in an unknown state (`connection`, `exchange`), verifying TLS
//! (`tls`), limits on every wait. No SQL lives here but that of transactions and readiness; queries are the services'.
//!
//! Statements are prepared by name and sessions carry settings: a pooler in between that shares sessions (`PgBouncer` by
//! transaction) breaks this, and one that pins them (RDS Proxy) gains nothing.

mod config;
mod connection;
mod connection_string;
mod connector;
mod error;
mod exchange;
mod keeper;
mod metrics;
mod pool;
mod readiness;
mod supply;
mod tls;
mod transaction;

pub use config::DatabaseConfig;
pub use connection::{Connection, Params};
pub use error::{Cause, DatabaseError};
pub use pool::{Pool, PoolStatus};
pub use tokio_postgres::Row;
pub use tokio_postgres::types::ToSql;
pub use transaction::Transaction;
