//! Synthetic users that are in the database before a run.
//!
//! Everything about user n follows from n, the seed and the number of distinct hashes, so that drivers know the users
//! without reading the database. Passwords are shared, and disclosed: user n has password n mod K, so that K hashes serve any
//! number of users.

mod copy;
mod hashes;
mod identity;
mod ids;
mod populate;

pub use envelope::result::Dataset;
pub use hashes::{HashCost, HashingError};
pub use identity::{DEFAULT_HASHES, Identity, identity, password};
pub use ids::user_id;
pub use populate::{MAX_USERS, PopulateError, PopulateOptions, Populated, Progress, populate};
