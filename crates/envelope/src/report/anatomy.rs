//! What the requests around a percentile consist of, over several runs.

use crate::result::Anatomy;
use crate::run::Run;

/// Around which percentiles requests are looked at, and what these are called.
pub const PERCENTILES: [(&str, f64); 3] = [("p50", 50.0), ("p95", 95.0), ("p99", 99.0)];

/// The requests of an endpoint over all of `runs` together; empty where no source knows the parts of single requests.
#[must_use]
pub fn of_endpoint(runs: &[&Run], endpoint: &str) -> Anatomy {
    let mut anatomy = Anatomy::default();
    for found in runs.iter().filter_map(|run| run.endpoints.get(endpoint)) {
        anatomy.merge(&found.anatomy);
    }
    anatomy
}
