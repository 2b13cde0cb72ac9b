//! Users in the database of a system of this machine, before a run that acts as them.

use envelope::result::Dataset;
use loadgen::dataset::DEFAULT_HASHES;

use super::error::BenchError;
use super::operator::Operator;
use super::system::OwnStack;

/// The seed of the users, unless somebody populates by hand.
const SEED: u64 = 1;
/// Users where nobody says how many: enough that neither a cache nor an index holds a handful of hot rows.
const DEFAULT_USERS: u64 = 10_000;

/// As many users as a run has when nobody says: never fewer than virtual users.
pub(super) fn default_users(virtual_users: u32) -> u64 {
    DEFAULT_USERS.max(u64::from(virtual_users))
}

/// Users that are there already, by `datum populate` with its defaults.
pub(super) fn described(users: u64) -> Dataset {
    Dataset { users, seed: SEED, distinct_hashes: DEFAULT_HASHES }
}

/// Puts them there. Those that are there already stay.
pub(super) async fn populate(stack: &OwnStack, users: u64, _operator: &Operator) -> Result<Dataset, BenchError> {
    let folder = stack.state_dir().display();
    Err(BenchError::Populate(format!("{users} users cannot be put into the database of {folder} by this build")))
}
