//! The capacities that were found by task count.

use crate::analysis::fit_usl;
use crate::report::charts::{Chart, Scaling, ScalingPoint};
use crate::report::document::Block;
use crate::report::facts::{Facts, usl_points};

pub(super) fn blocks(facts: &Facts<'_>) -> Vec<Block> {
    let points: Vec<ScalingPoint> = facts
        .capacities
        .iter()
        .filter_map(|(tasks, capacity)| {
            let (holds, fails) = capacity.bounds()?;
            Some(ScalingPoint { tasks: *tasks, holds, fails })
        })
        .collect();
    if points.len() < 2 {
        return vec![];
    }
    let fit = fit_usl(&usl_points(facts.capacities)).ok();
    vec![Block::Chart(Chart::Scaling(Scaling { title: "Capacity by tasks per service".to_owned(), points, fit }))]
}
