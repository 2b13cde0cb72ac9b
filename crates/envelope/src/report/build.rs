//! From runs to a document.

use std::collections::BTreeSet;

use super::document::{Block, Document, Finding, Section, SectionKind, Severity, Standing, Verdict};
use super::facts::Facts;
use super::{Options, format, rules, sections};
use crate::result::Capsule;
use crate::run::Run;

/// Makes the report of runs, in the order given.
#[must_use]
pub fn build(runs: &[Run], options: &Options) -> Document {
    let facts = Facts::new(runs, options);
    let mut findings = rules::evaluate(&facts);
    // Stable: what voids comes first, and beyond that the rules keep their order.
    findings.sort_by_key(|(_, finding)| finding.severity != Severity::Void);
    let sections: Vec<Section> = SectionKind::ALL.into_iter().map(|kind| section(kind, &facts, &findings)).collect();
    let spoke: BTreeSet<&str> = findings.iter().map(|(_, finding)| finding.rule).collect();
    Document {
        title: options.title.clone().unwrap_or_else(|| title(&facts)),
        subtitle: subtitle(&facts),
        verdict: verdict(&findings),
        sections,
        rules: rules::descriptions().filter(|(id, _)| spoke.contains(id)).collect(),
    }
}

/// Facts before what follows from them; without either, that is said.
fn section(kind: SectionKind, facts: &Facts<'_>, findings: &[(SectionKind, Finding)]) -> Section {
    let mut blocks = sections::blocks(kind, facts);
    let of_section = findings.iter().filter(|(section, _)| *section == kind);
    blocks.extend(of_section.map(|(_, finding)| Block::Finding(finding.clone())));
    if blocks.is_empty() {
        blocks.push(Block::Text("Nothing in these runs speaks to this.".to_owned()));
    }
    Section { kind, blocks }
}

fn verdict(findings: &[(SectionKind, Finding)]) -> Verdict {
    let of = |severity: Severity| -> Vec<Finding> {
        let those = findings.iter().filter(|(_, finding)| finding.severity == severity);
        those.map(|(_, finding)| finding.clone()).collect()
    };
    let (voids, warnings) = (of(Severity::Void), of(Severity::Warning));
    let all = findings.iter().map(|(_, finding)| finding);
    let by = |rule: &str| all.clone().filter(|finding| finding.rule == rule).cloned().collect::<Vec<_>>();
    let figures = [by(rules::ANSWER), by(rules::FIGURES)].concat();
    let only_capacity = voids.iter().all(|finding| finding.rule == rules::CAPACITY_VOID);
    match (voids.is_empty(), warnings.is_empty()) {
        (false, _) => Verdict {
            standing: Standing::Void,
            headline: if only_capacity {
                "The throughput of these runs says nothing about what the system can carry. Latencies and errors, at the load that was \
                 sent, stand."
                    .to_owned()
            } else {
                "These runs, or some of them, say nothing about the system.".to_owned()
            },
            reasons: voids,
            figures,
        },
        (true, false) => Verdict {
            standing: Standing::Qualified,
            headline: format!(
                "The figures stand, with {}.",
                format::plural(warnings.len(), "reservation", "reservations")
            ),
            reasons: warnings,
            figures,
        },
        (true, true) => Verdict {
            standing: Standing::Sound,
            headline: "No rule found a reason to doubt these figures.".to_owned(),
            reasons: vec![],
            figures,
        },
    }
}

fn title(facts: &Facts<'_>) -> String {
    let scenarios: Vec<String> = facts.distinct(|capsule| Some(capsule.scenario.clone())).into_iter().collect();
    if scenarios.is_empty() {
        "Performance envelope".to_owned()
    } else {
        format!("Performance envelope: {}", format::list(&scenarios))
    }
}

/// The port of a stack that a run started for itself says nothing; that it was one does.
pub(super) fn target_in_words(capsule: &Capsule) -> String {
    let url = &capsule.target.url;
    let is_local =
        ["http://127.0.0.1:", "http://localhost:", "http://[::1]:"].iter().any(|local| url.starts_with(local));
    if is_local && capsule.target.stack.is_some() { "a stack of this machine".to_owned() } else { url.clone() }
}

fn subtitle(facts: &Facts<'_>) -> String {
    let targets: Vec<String> = facts.distinct(|capsule| Some(target_in_words(capsule))).into_iter().collect();
    let days: Vec<String> = facts.distinct(|capsule| Some(capsule.started_at.date().to_string())).into_iter().collect();
    let runs = format::plural(facts.runs.len(), "run", "runs");
    let of = if targets.is_empty() { String::new() } else { format!(" of {}", format::list(&targets)) };
    let on = match &days[..] {
        [] => String::new(),
        [day] => format!(" on {day}"),
        [first, .., last] => format!(" from {first} to {last}"),
    };
    format!("{runs}{of}{on}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::reference::PHASE_4;
    use crate::report::testing::{capsule, endpoint_with_stages, phase_4, run, second};
    use crate::report::{html, markdown};

    #[test]
    fn the_sections_are_all_there_in_their_order() {
        let document = build(&phase_4(), &Options::default());
        let kinds: Vec<SectionKind> = document.sections.iter().map(|section| section.kind).collect();
        assert_eq!(kinds, SectionKind::ALL);
        let text = markdown(&document);
        let headings: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        assert_eq!(
            headings,
            [
                "Context",
                "Run provenance",
                "Throughput",
                "Latency",
                "Errors by cause and owner",
                "Endpoint summary",
                "Attribution",
                "Operating point",
                "Scaling interpretation",
                "Bottleneck",
                "Conclusion",
            ]
        );
    }

    #[test]
    fn what_the_reference_did_not_notice_is_the_verdict() {
        let document = build(&phase_4(), &Options { reference: Some(PHASE_4), ..Options::default() });
        assert_eq!(document.verdict.standing, Standing::Void);
        assert_eq!(document.verdict.reasons[0].rule, "generator-bound");
        let text = markdown(&document);
        let figures = document.verdict.figures.first().map(|finding| finding.sentence.as_str());
        assert!(figures.is_some_and(|text| text.starts_with("The 3 runs \"steady state\": 222.04")), "{figures:?}");
        let verdict = text.find("Verdict: VOID").unwrap();
        assert!(verdict < text.find("## Context").unwrap(), "the verdict comes first");
        for line in
            ["| all runs | 5 | 209.18 |", "| steady state | 3 | 222.04 |", "243.90", "Two task counts (1 and 2)"]
        {
            assert!(text.contains(line), "{line} is missing in:\n{text}");
        }
        let conclusion = document.sections.last().unwrap();
        assert!(matches!(&conclusion.blocks[0], Block::Finding(finding) if finding.severity == Severity::Void));
    }

    #[test]
    fn a_stack_that_a_run_started_has_no_address_worth_telling() {
        let own = Run { capsule: Some(capsule(10)), ..run("a", []) };
        let mut elsewhere = capsule(10);
        elsewhere.target = crate::result::Target { url: "https://example.net".into(), stack: None };
        let elsewhere = Run { capsule: Some(elsewhere), ..run("b", []) };
        let document = build(&[own, elsewhere], &Options::default());
        assert_eq!(document.subtitle, "2 runs of a stack of this machine and https://example.net on 2026-11-30");
    }

    #[test]
    fn every_sentence_of_interpretation_names_a_rule_that_is_described() {
        let document = build(&phase_4(), &Options::default());
        let described: BTreeSet<&str> = document.rules.iter().map(|(id, _)| *id).collect();
        let used: BTreeSet<&str> = document.findings().map(|finding| finding.rule).collect();
        assert!(!used.is_empty());
        assert_eq!(used, described);
    }

    #[test]
    fn runs_without_a_flaw_are_sound() {
        let endpoint = endpoint_with_stages(600, 12, &[("db", 600, 8), ("app", 600, 2), ("total", 600, 10)], 2);
        let window = crate::run::Window { from_second: 0, until_second: 60, found: crate::run::WindowRule::WholePhase };
        let mut capsule = capsule(10);
        capsule.stack_use = None;
        let sound = Run {
            series: (0..60).map(|at| second(at, 10, 10)).collect(),
            capsule: Some(capsule),
            window: Some(window),
            ..run("a", [("get-user", endpoint)])
        };
        let document = build(&[sound], &Options::default());
        let doubts: Vec<&Finding> = document.findings().filter(|finding| finding.severity != Severity::Note).collect();
        assert!(doubts.is_empty(), "{doubts:?}");
        assert_eq!(document.verdict.standing, Standing::Sound);
    }

    #[test]
    fn whatever_a_result_contains_stays_text_in_the_page() {
        let evil = "<script>alert(1)</script>\"'&|`*\u{202e}";
        let mut capsule = capsule(10);
        capsule.scenario = evil.into();
        capsule.target.url = evil.into();
        capsule.scenario_definition = serde_json::json!({ "question": evil, "description": evil });
        capsule.verified = [(evil.to_owned(), evil.to_owned())].into();
        capsule.command = vec![evil.into()];
        let endpoint = endpoint_with_stages(10, 12, &[(evil, 10, 5), ("db", 10, 5), ("total", 10, 10)], 2);
        let mut bad = Run {
            label: evil.into(),
            role: Some(evil.into()),
            capsule: Some(capsule),
            void: vec![evil.into()],
            warnings: vec![evil.into()],
            series: vec![second(0, 5, 1), second(1, 5, 1)],
            ..run("a", [(evil, endpoint)])
        };
        bad.failures = vec![crate::report::testing::failure(Some(500), evil, crate::result::Answerer::Task, 1)];
        let document = build(&[bad.clone(), bad], &Options { title: Some(evil.into()), ..Options::default() });
        let page = html(&document);
        assert!(!page.contains("<script") && !page.contains("\"'&"), "an input became markup");
        assert!(!page.contains('\u{202e}'));
        let text = markdown(&document);
        assert!(!text.replace("\\<", "").contains('<'), "an input became markup in:\n{text}");
    }

    #[test]
    fn the_page_loads_nothing_and_runs_nothing() {
        let page = html(&build(&phase_4(), &Options::default()));
        for foreign in
            ["http-equiv=\"refresh", "<script", "<link rel=\"stylesheet", "@import", "src=", "url(", "onload"]
        {
            assert!(!page.contains(foreign), "{foreign} is in the page");
        }
        assert!(page.contains("default-src 'none'"));
    }

    #[test]
    fn the_same_runs_give_the_same_bytes() {
        let page = || html(&build(&phase_4(), &Options::default()));
        assert_eq!(page(), page());
    }
}
