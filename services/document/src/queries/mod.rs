//! The SQL, one file a table. A function is one statement on a connection that its caller holds no longer than that.

pub mod documents;
