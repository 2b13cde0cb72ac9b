//! Errors by cause and owner.

use std::collections::BTreeMap;

use super::owner::{Owner, owner_of};
use crate::result::Failure;
use crate::run::Run;
use crate::statistics::ErrorRate;

/// The errors of several runs together.
#[derive(Debug, Clone, PartialEq)]
pub struct ErrorTable {
    /// All of them.
    pub total: ErrorRate,
    /// By endpoint and cause, the most frequent first.
    pub causes: Vec<CauseRow>,
    /// By owner, in the order of [`Owner`]; only owners that have any.
    pub owners: Vec<OwnerRow>,
}

/// One cause at one endpoint.
#[derive(Debug, Clone, PartialEq)]
pub struct CauseRow {
    /// Where; `None` where the source does not say.
    pub endpoint: Option<String>,
    /// What.
    pub failure: Failure,
    /// Whose.
    pub owner: Owner,
    /// How often, among all requests of the runs.
    pub rate: ErrorRate,
}

/// One owner.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OwnerRow {
    /// Who.
    pub owner: Owner,
    /// How often, among all requests of the runs.
    pub rate: ErrorRate,
}

/// Adds up the errors of `runs`.
#[must_use]
pub fn error_table(runs: &[Run]) -> ErrorTable {
    let requests = runs.iter().map(|run| run.requests).sum();
    let mut causes: BTreeMap<(Option<String>, Failure), u64> = BTreeMap::new();
    for run in runs {
        let mut placed: BTreeMap<&Failure, u64> = BTreeMap::new();
        for (name, endpoint) in &run.endpoints {
            for found in &endpoint.failures {
                *causes.entry((Some(name.clone()), found.failure.clone())).or_default() += found.count;
                *placed.entry(&found.failure).or_default() += found.count;
            }
        }
        // What the run counts and no endpoint claims: sources that know causes only for all together.
        for found in &run.failures {
            let rest = found.count.saturating_sub(placed.get(&found.failure).copied().unwrap_or(0));
            if rest > 0 {
                *causes.entry((None, found.failure.clone())).or_default() += rest;
            }
        }
    }
    let mut owners: BTreeMap<Owner, u64> = BTreeMap::new();
    let mut rows: Vec<CauseRow> = causes
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|((endpoint, failure), count)| {
            let owner = owner_of(&failure);
            *owners.entry(owner).or_default() += count;
            CauseRow { endpoint, failure, owner, rate: ErrorRate::of(count, requests) }
        })
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.rate.errors));
    let total = ErrorRate::of(owners.values().sum(), requests);
    let owners =
        owners.into_iter().map(|(owner, count)| OwnerRow { owner, rate: ErrorRate::of(count, requests) }).collect();
    ErrorTable { total, causes: rows, owners }
}

#[cfg(test)]
mod tests {
    use super::super::pooled::tests::figures;
    use super::*;
    use crate::result::{Answerer, FailureCount};
    use crate::run::Endpoint;

    fn failure(status: u16, count: u64) -> FailureCount {
        FailureCount {
            failure: Failure { status: Some(status), code: "unknown".into(), answerer: Answerer::Unknown },
            count,
        }
    }

    #[test]
    fn causes_are_added_up_by_endpoint_and_owner() {
        let mut run = figures("a", 1.0, 1.0);
        run.requests = 1_000;
        run.endpoints.insert("login".into(), Endpoint { failures: vec![failure(401, 3)], ..Endpoint::default() });
        run.failures = vec![failure(401, 4), failure(502, 2)];
        let table = error_table(&[run.clone(), run]);

        assert_eq!((table.total.errors, table.total.requests), (12, 2_000));
        let rows: Vec<_> =
            table.causes.iter().map(|row| (row.endpoint.as_deref(), row.failure.status, row.rate.errors)).collect();
        assert_eq!(rows, [(Some("login"), Some(401), 6), (None, Some(502), 4), (None, Some(401), 2)]);
        let owners: Vec<_> = table.owners.iter().map(|row| (row.owner, row.rate.errors)).collect();
        assert_eq!(owners, [(Owner::ClientExpected, 8), (Owner::Balancer, 4)]);
    }

    #[test]
    fn no_errors_still_have_a_bound() {
        let mut run = figures("a", 1.0, 1.0);
        run.requests = 3_000;
        let table = error_table(&[run]);
        assert!(table.causes.is_empty());
        assert!((table.total.upper_bound - 0.001).abs() < 0.000_01);
    }
}
