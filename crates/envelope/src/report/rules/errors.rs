//! How often it failed, at most, and whose failures they are.

use super::{Rule, note, warning};
use crate::analysis::{Owner, error_table};
use crate::report::document::SectionKind;
use crate::report::format;
use crate::statistics::ErrorRate;

pub(super) const ERRORS_BOUND: Rule = Rule {
    id: "errors-bound",
    about: "The exact upper bound of the error rate at 95 % confidence (Clopper and Pearson, 1934). Also no error in n \
            requests is a bound, about 3/n, and not a zero.",
    section: SectionKind::Errors,
    evaluate: |facts| {
        let mut said = Vec::new();
        let all = facts.groups.iter().map(|group| (&group.title, group.errors()));
        for (title, rate) in all.filter(|(_, rate)| rate.requests > 0) {
            said.push(note(bound_in_words(&format!("In {title}"), rate)));
        }
        if facts.groups.len() > 1 {
            let table = error_table(facts.runs);
            said.push(note(bound_in_words("Over all runs", table.total)));
        }
        said
    },
};

fn bound_in_words(of: &str, rate: ErrorRate) -> String {
    let bound = format::percent(rate.upper_bound);
    if rate.errors == 0 {
        format!(
            "{of} none of {} requests failed: the true error rate is below {bound} with 95 % confidence, which is not zero.",
            format::count(rate.requests)
        )
    } else {
        format!(
            "{of} {} of {} requests failed ({}): the true error rate is below {bound} with 95 % confidence.",
            format::count(rate.errors),
            format::count(rate.requests),
            format::percent(rate.rate),
        )
    }
}

pub(super) const ERRORS_OWNER: Rule = Rule {
    id: "errors-owner",
    about: "Whose failures they are, from status, problem code and who answered: the test's own, shed on purpose, pool \
            timeouts, the service, the balancer, broken connections, the driver.",
    section: SectionKind::Errors,
    evaluate: |facts| {
        let table = error_table(facts.runs);
        let mut said = Vec::new();
        for row in table.owners.iter().filter(|row| row.rate.errors > 0) {
            let what = match row.owner {
                Owner::ClientExpected => "are the scenario's or its test data's, not the system's",
                Owner::Shed => "were refused on purpose, to keep the rest fast",
                Owner::PoolTimeout => {
                    "waited for a database connection until the limit: the pool or the database is too small"
                }
                Owner::Service => "are the services' own errors",
                Owner::Balancer => "were answered by the balancer, for targets that it could not use",
                Owner::Reset => "got no answer: the connection was refused or broken",
                Owner::Timeout => "got no answer in time",
                Owner::Generator => "are the driver's own",
                Owner::Unknown => "cannot be attributed: the source does not say who answered, or with which code",
            };
            let sentence = format!(
                "{} of {} failures {what} ({}).",
                format::count(row.rate.errors),
                format::count(table.total.errors),
                row.owner
            );
            said.push(if matches!(row.owner, Owner::ClientExpected | Owner::Shed) {
                note(sentence)
            } else {
                warning(sentence)
            });
        }
        said
    },
};

#[cfg(test)]
mod tests {
    use super::super::tests::said;
    use super::*;
    use crate::report::document::Severity;
    use crate::report::testing::{failure, figures};
    use crate::result::Answerer;
    use crate::run::Run;

    #[test]
    fn no_error_is_a_bound() {
        let sentences = said(&ERRORS_BOUND, &[figures("a", "steady state", 2, 222.0, 75.0)]);
        assert!(
            sentences[0].1.contains("none of 40,000") && sentences[0].1.contains("below 0.0075 %"),
            "{sentences:?}"
        );
    }

    #[test]
    fn nine_of_many_have_their_exact_bound_and_owners() {
        let failures = vec![
            failure(Some(502), "unknown", Answerer::Unknown, 4),
            failure(Some(401), "unknown", Answerer::Unknown, 3),
            failure(Some(400), "unknown", Answerer::Unknown, 2),
        ];
        let run = Run { requests: 379_269, failures, ..figures("a", "steady state", 2, 222.0, 75.0) };
        let bound = said(&ERRORS_BOUND, std::slice::from_ref(&run));
        assert!(bound[0].1.contains("9 of 379,269 requests failed (0.0024 %)"), "{bound:?}");
        assert!(bound[0].1.contains("below 0.0041 %"), "{bound:?}");
        let owners = said(&ERRORS_OWNER, &[run]);
        assert_eq!(owners.len(), 2);
        assert!(
            owners.iter().any(|(severity, text)| *severity == Severity::Note && text.starts_with("5 of 9")),
            "{owners:?}"
        );
        assert!(owners.iter().any(|(severity, text)| *severity == Severity::Warning && text.starts_with("4 of 9")));
    }
}
