//! Users in the database of a system of this machine, before a run that acts as them.

use envelope::result::Dataset;
use loadgen::dataset::{self, DEFAULT_HASHES, HashCost, PopulateOptions};
use stack::state_dir;
use tokio::time::Instant;

use super::error::BenchError;
use super::operator::Operator;
use super::system::OwnStack;
use crate::cognito_users;
use crate::terminal::say;
use crate::terminal::screen::seconds;

/// The seed of the users, as `datum populate` has it when nobody says.
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
pub(super) async fn populate(stack: &OwnStack, users: u64, operator: &Operator) -> Result<Dataset, BenchError> {
    let began = Instant::now();
    let dataset = described(users);
    let database_url = database_url(stack).await?;
    let options = PopulateOptions { database_url, dataset: dataset.clone(), cost: HashCost::default() };
    let populated = dataset::populate(&options, |_| {}, operator.stop()).await;
    let populated = populated.map_err(|error| BenchError::Populate(error.to_string()))?;
    let status = stack.status().await.ok_or_else(|| BenchError::Populate("the system does not answer".to_owned()))?;
    let imported = cognito_users::import(&status.identity, &dataset, operator.stop()).await;
    let imported = imported.map_err(|error| BenchError::Populate(error.to_string()))?;
    if populated.interrupted || !imported {
        return Err(BenchError::Interrupted);
    }
    if populated.written > 0 {
        say(format_args!("populated     {} users are there  ({})", populated.there, seconds(began.elapsed())));
    }
    Ok(dataset)
}

async fn database_url(stack: &OwnStack) -> Result<String, BenchError> {
    if let Some(url) = &stack.settings().database_url {
        return Ok(url.clone());
    }
    let unknown = || BenchError::Populate("the system does not say where its database is".to_owned());
    let status = stack.status().await.ok_or_else(unknown)?;
    let url = state_dir::database_url(stack.state_dir(), &status);
    url.map_err(|error| BenchError::Populate(error.to_string()))?.ok_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_never_fewer_users_than_virtual_ones() {
        assert_eq!(default_users(5), DEFAULT_USERS);
        assert_eq!(default_users(50_000), 50_000);
    }
}
