//! Where the time goes.

use super::{Rule, capitalised, note, warning};
use crate::report::attribution::{Breakdown, UNATTRIBUTED, breakdown, most_grown};
use crate::report::document::SectionKind;
use crate::report::facts::Facts;
use crate::report::format;
use crate::report::group::Group;

pub(super) const STAGES_NOT_RECORDED: Rule = Rule {
    id: "stages-not-recorded",
    about: "Endpoints whose answers carried no Server-Timing, or whose driver did not keep it: nothing is said about their \
            stages.",
    section: SectionKind::Attribution,
    evaluate: |facts| {
        let Some(group) = facts.main_group() else { return vec![] };
        let endpoints = group.endpoints();
        let without: Vec<String> = endpoints
            .iter()
            .filter(|endpoint| breakdown(&group.runs, endpoint).is_none())
            .map(|endpoint| (*endpoint).to_owned())
            .collect();
        if without.is_empty() && !endpoints.is_empty() {
            return vec![];
        }
        let of = if without.is_empty() { "any endpoint".to_owned() } else { format::list(&without) };
        vec![warning(format!(
            "{}The stages of {of} are not recorded: where their time went is not known.",
            facts.whose(group)
        ))]
    },
};

/// From this share of the mean on a stage is what the endpoint's time consists of.
const DOMINANT: f64 = 0.5;

pub(super) const DOMINANT_STAGE: Rule = Rule {
    id: "dominant-stage",
    about: "The stage that makes up the largest share of an endpoint's mean; from 50 % on it dominates, and no other stage \
            can halve the time.",
    section: SectionKind::Attribution,
    evaluate: |facts| {
        let mut said = Vec::new();
        let whose = facts.whose_main();
        for found in breakdowns(facts.main_group()) {
            let Some(part) = found.largest().filter(|part| part.stage != UNATTRIBUTED) else { continue };
            let (endpoint, share, mean, whole) = (
                capitalised(&found.endpoint),
                format::percent(part.share),
                format::ms(part.mean_ms),
                format::ms(found.mean_ms),
            );
            said.push(note(if part.share >= DOMINANT {
                format!("{whose}{endpoint} is {}: {share} of its mean, {mean} of {whole}.", stage_in_words(&part.stage))
            } else {
                format!(
                    "{whose}{endpoint}: no stage dominates; the largest is {}, {share} of the mean, {mean} of {whole}.",
                    stage_in_words(&part.stage)
                )
            }));
        }
        said
    },
};

/// From this share on the way to the service matters more than is usual on one network.
const MUCH_UNATTRIBUTED: f64 = 0.3;

pub(super) const UNATTRIBUTED_DOMINATES: Rule = Rule {
    id: "unattributed-large",
    about: "An endpoint that spends 30 % or more of its mean outside the service: network, balancer, accept queue, or the \
            driver itself. No stage of the service explains it.",
    section: SectionKind::Attribution,
    evaluate: |facts| {
        let mut said = Vec::new();
        let whose = facts.whose_main();
        for found in breakdowns(facts.main_group()) {
            let Some(part) = found.part(UNATTRIBUTED).filter(|part| part.share >= MUCH_UNATTRIBUTED) else { continue };
            said.push(note(format!(
                "{whose}{}: {} of the mean, {} of {}, passes outside the service: network, balancer, accept queue or driver.",
                capitalised(&found.endpoint),
                format::percent(part.share),
                format::ms(part.mean_ms),
                format::ms(found.mean_ms),
            )));
        }
        said
    },
};

/// A stage that grew by less explains nothing.
const GREW_MS: f64 = 1.0;

pub(super) const STAGE_THAT_GREW: Rule = Rule {
    id: "stage-that-grew",
    about: "Between the runs that count and those of another role: the stage whose mean differs most, if by at least 1 ms and \
            half of what the endpoint's mean differs by.",
    section: SectionKind::Attribution,
    evaluate: |facts| {
        let Some(main) = facts.main_group() else { return vec![] };
        let mut said = Vec::new();
        for other in facts.groups.iter().filter(|group| group.name != main.name || group.tasks != main.tasks) {
            for scaled in breakdowns(Some(main)) {
                let Some(slower) = breakdown(&other.runs, &scaled.endpoint) else { continue };
                let Some((stage, by)) = most_grown(&scaled, &slower) else { continue };
                let whole = slower.mean_ms - scaled.mean_ms;
                if by >= GREW_MS && by >= 0.5 * whole {
                    said.push(note(format!(
                        "{}: in \"{}\" the mean is {} longer than in \"{}\", of which {} is {}.",
                        capitalised(&scaled.endpoint),
                        other.name,
                        format::ms(whole),
                        main.name,
                        format::ms(by),
                        stage_in_words(&stage),
                    )));
                }
            }
        }
        said
    },
};

/// Where the time of a group's endpoints goes.
pub(super) fn breakdowns(group: Option<&Group<'_>>) -> Vec<Breakdown> {
    let of = |group: &Group<'_>| -> Vec<Breakdown> {
        group.endpoints().into_iter().filter_map(|endpoint| breakdown(&group.runs, endpoint)).collect()
    };
    group.map(of).unwrap_or_default()
}

/// What a stage is, for a sentence that begins "login is …".
pub(super) fn stage_in_words(stage: &str) -> String {
    let words = match stage {
        "client wait" => "waiting at the client to be sent (client wait)",
        "admission" => "waiting for a permit (admission)",
        "verify" => "token verification (verify)",
        "pool" => "waiting for a database connection (pool)",
        "db" => "the database (db)",
        "hash" => "password hashing (hash)",
        "idp" => "the identity provider (idp)",
        "s3" => "the object store (s3)",
        "app" => "the service's own work (app)",
        UNATTRIBUTED => "time outside the service (unattributed)",
        other => return other.to_owned(),
    };
    words.to_owned()
}

/// Facts for rules elsewhere: the breakdowns of the runs that count.
pub(super) fn of_main_group(facts: &Facts<'_>) -> Vec<Breakdown> {
    breakdowns(facts.main_group())
}

#[cfg(test)]
mod tests {
    use super::super::tests::said;
    use super::*;
    use crate::report::testing::{endpoint_with_stages, run};
    use crate::run::Run;

    fn login(hash: u64, db: u64, rest: u64) -> Run {
        let stages = [("db", 10, db), ("hash", 10, hash), ("total", 10, db + hash)];
        run("a", [("login", endpoint_with_stages(10, db + hash + rest, &stages, rest))])
    }

    #[test]
    fn the_stage_that_makes_up_most_of_the_time_is_named() {
        let sentences = said(&DOMINANT_STAGE, &[login(300, 20, 10)]);
        assert!(sentences[0].1.starts_with("login is password hashing (hash): 91 % of its mean"), "{sentences:?}");
        let even = said(&DOMINANT_STAGE, &[login(40, 30, 35)]);
        assert!(even[0].1.contains("no stage dominates") && even[0].1.contains("38 %"), "{even:?}");
    }

    #[test]
    fn time_outside_the_service_is_said_where_it_is_much() {
        assert!(said(&UNATTRIBUTED_DOMINATES, &[login(40, 20, 40)])[0].1.contains("40 % of the mean"));
        assert_eq!(said(&UNATTRIBUTED_DOMINATES, &[login(300, 20, 10)]), []);
    }

    #[test]
    fn what_makes_the_other_runs_slower_is_named() {
        let fast = Run { tasks_per_service: Some(2), ..login(300, 20, 10) };
        let slow = Run { tasks_per_service: Some(1), ..login(500, 30, 12) };
        let sentences = said(&STAGE_THAT_GREW, &[slow, fast]);
        assert_eq!(sentences.len(), 1);
        assert!(
            sentences[0].1.contains("212 ms longer") && sentences[0].1.contains("200 ms is password hashing"),
            "{sentences:?}"
        );
    }

    #[test]
    fn without_server_timing_that_is_said() {
        assert!(
            said(&STAGES_NOT_RECORDED, &[run("a", [("login", endpoint_with_stages(1, 1, &[], 0))])])[0]
                .1
                .contains("login")
        );
        assert_eq!(said(&STAGES_NOT_RECORDED, &[login(1, 1, 1)]), []);
    }
}
