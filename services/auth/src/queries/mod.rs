//! SQL, one file a table or aggregate. A function is one statement (or one transaction), knows no rules of HTTP, and takes the
//! time as a parameter.

pub mod sessions;
pub mod throttle;
pub mod users;
