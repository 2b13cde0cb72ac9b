//! The capacities that were found by task count.

use std::collections::BTreeMap;

use crate::analysis::fit_usl;
use crate::report::charts::{Chart, Scaling, ScalingPoint};
use crate::report::document::Block;
use crate::report::facts::{Facts, usl_points};
use crate::statistics::Sample;

pub(super) fn blocks(facts: &Facts<'_>) -> Vec<Block> {
    let mut searches: BTreeMap<u32, Vec<(f64, Option<f64>)>> = BTreeMap::new();
    for (tasks, capacity) in facts.capacities {
        searches.entry(*tasks).or_default().extend(capacity.bounds());
    }
    let points: Vec<ScalingPoint> = searches.iter().filter_map(|(tasks, found)| point(*tasks, found)).collect();
    if points.len() < 2 {
        return vec![];
    }
    let fit = fit_usl(&usl_points(facts.capacities)).ok();
    vec![Block::Chart(Chart::Scaling(Scaling { title: "Capacity by tasks per service".to_owned(), points, fit }))]
}

/// What the searches of one task count found: (holds, no longer holds) of each.
fn point(tasks: u32, found: &[(f64, Option<f64>)]) -> Option<ScalingPoint> {
    let holds = Sample::of(&found.iter().map(|(holds, _)| *holds).collect::<Vec<_>>())?;
    // Of several, the lowest rate that did not hold in any of them and is above the mean of those that did.
    let fails = found.iter().filter_map(|(_, fails)| *fails).filter(|fails| *fails > holds.mean).reduce(f64::min);
    let range = (holds.count > 1).then_some((holds.min, holds.max));
    Some(ScalingPoint { tasks, holds: holds.mean, range, fails })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_search_has_no_range_and_several_have() {
        assert_eq!(
            point(2, &[(100.0, Some(104.0))]),
            Some(ScalingPoint { tasks: 2, holds: 100.0, range: None, fails: Some(104.0) })
        );
        assert_eq!(
            point(2, &[(100.0, Some(104.0)), (110.0, None)]),
            Some(ScalingPoint { tasks: 2, holds: 105.0, range: Some((100.0, 110.0)), fails: None })
        );
        assert_eq!(point(2, &[]), None);
    }
}
