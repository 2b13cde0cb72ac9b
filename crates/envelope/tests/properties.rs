//! What must hold whatever the numbers are.

use envelope::analysis::{Capacity, CapacityOutcome, CapacitySearch, CapacitySettings, Slo, Step, TrialOutcome};
use envelope::laws::{expected_response_time, expected_throughput};
use envelope::statistics::{
    ErrorRate, Sample, exact_interval, exact_upper_bound, find_steady_state, mser, regularised_incomplete_beta,
    student_t_quantile,
};
use proptest::prelude::*;

/// A whole search against a system that carries up to `capacity`.
fn search(settings: CapacitySettings, capacity: f64) -> Capacity {
    let mut search = CapacitySearch::new(settings);
    loop {
        match search.next() {
            Step::Done(found) => return found,
            Step::Try { rate, .. } if rate <= capacity => search.record(TrialOutcome::Passed),
            Step::Try { .. } => search.record(TrialOutcome::Failed("too slow".into())),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_bound_lies_above_the_rate_and_sinks_with_more_requests(errors in 0_u64..200, more in 1_u64..1_000_000) {
        let requests = errors + more;
        let rate = ErrorRate::of(errors, requests);
        prop_assert!(rate.rate < rate.upper_bound && rate.upper_bound <= 1.0);
        prop_assert!(exact_upper_bound(errors, requests * 2, 0.95) < rate.upper_bound);
        prop_assert!(exact_upper_bound(errors + 1, requests + 1, 0.95) > rate.upper_bound);
        let (low, high) = exact_interval(errors, requests, 0.95);
        prop_assert!(low <= rate.rate && rate.rate < high && rate.upper_bound < high);
    }

    #[test]
    fn incomplete_beta_is_a_distribution(a in 0.1_f64..500.0, b in 0.1_f64..500.0, x in 0.0_f64..1.0, y in 0.0_f64..1.0) {
        let (low, high) = (regularised_incomplete_beta(a, b, x.min(y)), regularised_incomplete_beta(a, b, x.max(y)));
        prop_assert!((0.0..=1.0).contains(&low) && low <= high + 1e-12 && high <= 1.0);
        prop_assert!((regularised_incomplete_beta(a, b, x) + regularised_incomplete_beta(b, a, 1.0 - x) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn student_t_is_symmetric_and_wider_for_fewer_runs(probability in 0.51_f64..0.999, degrees in 1.0_f64..100.0) {
        let quantile = student_t_quantile(probability, degrees);
        prop_assert!(quantile > 0.0 && (student_t_quantile(1.0 - probability, degrees) + quantile).abs() < 1e-6 * quantile.max(1.0));
        prop_assert!(student_t_quantile(probability, degrees + 5.0) < quantile);
    }

    #[test]
    fn a_sample_does_not_depend_on_the_order(mut figures in prop::collection::vec(-1e6_f64..1e6, 1..30)) {
        let sample = Sample::of(&figures).unwrap();
        prop_assert!(sample.min <= sample.mean + 1e-6 && sample.mean <= sample.max + 1e-6);
        prop_assert!(sample.sample_deviation.is_none_or(|deviation| deviation >= sample.population_deviation));
        figures.reverse();
        let reversed = Sample::of(&figures).unwrap();
        prop_assert!((reversed.mean - sample.mean).abs() < 1e-6 && (reversed.population_deviation - sample.population_deviation).abs() < 1e-6);
    }

    #[test]
    fn a_cut_does_not_depend_on_the_unit(series in prop::collection::vec(1.0_f64..100.0, 50..120)) {
        let cut = mser(&series, 5).unwrap();
        prop_assert!(cut.observations.is_multiple_of(5) && cut.observations + 25 <= series.len());
        // A power of two changes no digit.
        let scaled: Vec<f64> = series.iter().map(|value| value * 1_024.0).collect();
        prop_assert_eq!(mser(&scaled, 5).unwrap().observations, cut.observations);
    }

    #[test]
    fn any_series_is_judged(throughput in prop::collection::vec(0.0_f64..1e4, 0..90), gaps in prop::collection::vec(prop::option::of(0.1_f64..1e4), 90)) {
        let latency = &gaps[..throughput.len()];
        prop_assert_eq!(find_steady_state(&throughput, latency), find_steady_state(&throughput, latency));
    }

    #[test]
    fn the_interactive_law_is_consistent(users in 1.0_f64..10_000.0, response in 0.001_f64..60.0, think in 0.0_f64..60.0) {
        let throughput = expected_throughput(users, response, think).unwrap();
        let back = expected_response_time(users, throughput, think).unwrap();
        prop_assert!((back - response).abs() < 1e-6 * (response + think));
    }

    #[test]
    fn a_search_ends_at_the_capacity(capacity in 2.0_f64..50_000.0, first in 1.0_f64..5_000.0, resolution in 0.01_f64..0.2) {
        let settings = CapacitySettings { first_rate: first, resolution, ..CapacitySettings::default() };
        let found = search(settings, capacity);
        prop_assert!(found.trials.len() <= settings.most_trials);
        match found.outcome {
            CapacityOutcome::Found { passes, fails } => {
                prop_assert!(passes <= capacity && capacity < fails);
                prop_assert!(fails / passes - 1.0 <= resolution + 1e-9);
            }
            other => prop_assert!(false, "{:?}", other),
        }
    }

    #[test]
    fn any_text_is_an_objective_or_an_error(text in "\\PC{0,20}") {
        if let Ok(slo) = text.parse::<Slo>() {
            prop_assert_eq!(slo.to_string().parse::<Slo>().map(|again| again.to_string()), Ok(slo.to_string()));
        }
    }

    #[test]
    fn objectives_survive_being_written(endpoint in prop::option::of("[a-z][a-z-]{0,8}"), ms in 1_u32..100_000, inclusive in any::<bool>()) {
        let before = endpoint.as_ref().map_or(String::new(), |endpoint| format!("{endpoint}."));
        let text = format!("{before}p99{}{ms}ms", if inclusive { "<=" } else { "<" });
        let slo: Slo = text.parse().unwrap();
        prop_assert_eq!(slo.to_string(), text);
        prop_assert_eq!(slo.endpoint, endpoint);
    }
}
