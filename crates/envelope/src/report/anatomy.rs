//! What the requests around a percentile consist of, over several runs.

use super::format;
use crate::result::{Anatomy, Cut};
use crate::run::Run;
use crate::statistics::{Support, support};

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

/// The requests around one percentile, as far as there are enough to speak of one.
#[derive(Debug, Clone, PartialEq)]
pub struct Around {
    /// What the percentile is called: `p99`, and `≈p99` where fewer than ten requests lie beyond it.
    pub name: String,
    /// The requests; `None` where not one lies beyond the percentile, or where fewer than ten do and the same handful stands
    /// for a lower one.
    pub cut: Option<Cut>,
}

/// The requests around each of [`PERCENTILES`]; empty without requests.
#[must_use]
pub fn around(anatomy: &Anatomy) -> Vec<Around> {
    let mut found: Vec<Around> = Vec::new();
    for (name, percent) in PERCENTILES {
        let Some(cut) = anatomy.at(percent) else { return vec![] };
        let is_said = found.iter().any(|lower| lower.cut.as_ref() == Some(&cut));
        let support = support(percent, anatomy.count());
        // Where ten requests lie beyond the percentile, the same ones around both are as many that are alike.
        let is_enough = support == Support::Good || support == Support::Rough && !is_said;
        let name = if support == Support::Rough { format!("{}{name}", format::ROUGHLY) } else { name.to_owned() };
        found.push(Around { name, cut: Some(cut).filter(|_| is_enough) });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Sums;

    fn of(kinds: &[(u64, u64)]) -> Anatomy {
        let mut anatomy = Anatomy::default();
        for (count, micros) in kinds {
            let sums = Sums { count: *count, latency: micros * count, parts: [].into() };
            anatomy.add(Anatomy::class(*micros), &sums);
        }
        anatomy
    }

    #[test]
    fn a_handful_of_requests_stands_for_one_percentile_and_not_for_three() {
        let known = |kinds: &[(u64, u64)]| -> Vec<(String, bool)> {
            around(&of(kinds)).into_iter().map(|around| (around.name, around.cut.is_some())).collect()
        };
        let told = |names: [&str; 3], known: [bool; 3]| -> Vec<(String, bool)> {
            names.map(str::to_owned).into_iter().zip(known).collect()
        };
        assert_eq!(known(&[(900, 1_000), (60, 8_000), (60, 64_000)]), told(["p50", "p95", "p99"], [true; 3]));
        assert_eq!(
            known(&[(150, 1_000), (30, 8_000), (20, 64_000)]),
            told(["p50", "p95", "≈p99"], [true, true, false])
        );
        assert_eq!(known(&[(8, 1_000)]), told(["≈p50", "p95", "p99"], [true, false, false]));
        assert_eq!(known(&[]), []);
    }
}
