//! What the slow requests consist of, and whose time a login is.

use super::stages::stage_in_words;
use super::{Rule, capitalised, note};
use crate::report::anatomy::{Around, around, of_endpoint};
use crate::report::document::SectionKind;
use crate::report::format;
use crate::result::{Anatomy, Cut};

/// From this share on a part is what a request's time consists of.
const DOMINANT: f64 = 0.5;

pub(super) const SLOW_REQUESTS: Rule = Rule {
    id: "slow-requests",
    about: "The part that makes up half or more of an endpoint's requests around the 99th percentile, beside its share at the \
            median: what a slow request meets that the others do not. Parts of the same requests, not percentiles of stages.",
    section: SectionKind::Attribution,
    evaluate: |facts| {
        let Some(group) = facts.main_group() else { return vec![] };
        let mut said = Vec::new();
        for endpoint in group.endpoints() {
            let anatomy = of_endpoint(&group.runs, endpoint);
            let [median, _, slow] =
                around(&anatomy).try_into().map_or([None, None, None], |all: [Around; 3]| all.map(|it| it.cut));
            let (Some(median), Some(slow)) = (median, slow) else { continue };
            let Some((part, share)) = slow.largest().filter(|(_, share)| *share >= DOMINANT) else { continue };
            said.push(note(format!(
                "{}{}: around the 99th percentile ({} requests, {} on average) {} is {}; at the median it is {} of {}.",
                facts.whose(group),
                capitalised(endpoint),
                format::count(slow.count),
                format::ms(slow.mean_ms),
                format::percent(share),
                stage_in_words(part),
                format::percent(median.share(part)),
                format::ms(median.mean_ms),
            )));
        }
        said
    },
};

/// The stage of the identity provider.
const PROVIDER: &str = "idp";
/// The endpoint that the question is about.
const LOGIN: &str = "login";

pub(super) const IS_IT_THE_IDENTITY_PROVIDER: Rule = Rule {
    id: "is-it-the-identity-provider",
    about: "Where some runs ask an identity provider: its share of the logins around the median, the 95th and the 99th \
            percentile, with its time. Half or more at all three: login's latency is the provider's. Less at all three: it is not. \
            Between: it depends on which login is meant. A percentile that too few logins support counts for nothing; without a firm \
            median there is no answer.",
    section: SectionKind::Conclusion,
    evaluate: |facts| {
        let logins: Vec<(&str, Anatomy)> = facts
            .groups
            .iter()
            .map(|group| (group.title.as_str(), of_endpoint(&group.runs, LOGIN)))
            .filter(|(_, anatomy)| !anatomy.is_empty())
            .collect();
        let share = |anatomy: &Anatomy, percent| anatomy.at(percent).map_or(0.0, |cut| cut.share(PROVIDER));
        if logins.iter().all(|(_, anatomy)| share(anatomy, 50.0) <= 0.0) {
            return vec![];
        }
        logins.iter().map(|(title, anatomy)| note(sentence(title, anatomy))).collect()
    },
};

fn sentence(title: &str, anatomy: &Anatomy) -> String {
    let all = around(anatomy);
    let each = |of: &dyn Fn(&Cut, &str) -> String| {
        let words = all.iter().map(|around| {
            let rough = around.name.starts_with(format::ROUGHLY).then(|| format::ROUGHLY.to_string());
            let rough = rough.unwrap_or_default();
            around.cut.as_ref().map_or_else(|| format::TOO_FEW.to_owned(), |cut| of(cut, &rough))
        });
        format::list(&words.collect::<Vec<_>>())
    };
    let largest = each(&|cut: &Cut, rough: &str| {
        cut.largest().map_or_else(String::new, |(part, share)| {
            let (share, time) = (format::percent(share), format::ms(share * cut.mean_ms));
            format!("{} with {rough}{share} ({time})", stage_in_words(part))
        })
    });
    let title = capitalised(title);
    let shares: Vec<f64> = all.iter().filter_map(|around| around.cut.as_ref()).map(|cut| cut.share(PROVIDER)).collect();
    let of_few = if all.iter().any(|around| around.cut.is_none()) {
        format!(" (\"{}\": {} logins do not tell it)", format::TOO_FEW, format::count(anatomy.count()))
    } else {
        String::new()
    };
    if shares.iter().all(|share| *share <= 0.0) {
        let lengths = each(&|cut, rough| format!("{rough}{}", format::ms(cut.mean_ms)));
        return format!(
            "{title}: login asks no identity provider. Around the median, the 95th and the 99th percentile it takes {lengths}; \
             the largest part is {largest}{of_few}."
        );
    }
    let percent = each(&|cut, rough| {
        let share = cut.share(PROVIDER);
        format!(
            "{rough}{} ({} of {})",
            format::percent(share),
            format::ms(share * cut.mean_ms),
            format::ms(cut.mean_ms)
        )
    });
    let provider =
        format!("the identity provider is {percent} of the logins around the median, the 95th and the 99th percentile");
    let median_is_firm =
        all.first().is_some_and(|median| median.cut.is_some() && !median.name.starts_with(format::ROUGHLY));
    if !median_is_firm {
        return format!(
            "{title}: whose time a login is cannot be told from {} logins; the median takes 20, the 95th percentile 200 and the 99th \
             1,000. So far {provider}.",
            format::count(anatomy.count())
        );
    }
    if shares.iter().all(|share| *share >= DOMINANT) {
        format!("{title}: login's latency is the identity provider's: {provider}{of_few}.")
    } else if shares.iter().all(|share| *share < DOMINANT) {
        format!(
            "{title}: login's latency is not the identity provider's: {provider}; the largest part is {largest}{of_few}."
        )
    } else {
        format!(
            "{title}: whose time a login is depends on the login: {provider}; the largest part is {largest}{of_few}."
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::said;
    use super::*;
    use crate::report::testing::{endpoint_with_stages, run};
    use crate::result::Sums;
    use crate::run::Run;

    /// Logins: (count, parts in milliseconds).
    fn logins(label: &str, kinds: &[(u64, &[(&str, u64)])]) -> Run {
        let mut endpoint = endpoint_with_stages(1, 1, &[], 0);
        for (count, parts) in kinds {
            let latency: u64 = parts.iter().map(|(_, ms)| ms * 1_000).sum();
            let parts = parts.iter().map(|(part, ms)| ((*part).to_owned(), ms * 1_000 * count)).collect();
            let sums = Sums { count: *count, latency: latency * count, parts };
            endpoint.anatomy.add(Anatomy::class(latency), &sums);
        }
        Run { role: Some(label.to_owned()), ..run(label, [(LOGIN, endpoint)]) }
    }

    #[test]
    fn what_the_slow_ones_met_is_named_beside_what_it_was_at_the_median() {
        let runs = [logins("a", &[(950, &[("hash", 25)]), (50, &[("hash", 25), ("admission", 400)])])];
        let sentences = said(&SLOW_REQUESTS, &runs);
        assert!(
            sentences[0].1.starts_with(
                "login: around the 99th percentile (50 requests, 425 ms on average) 94 % is waiting for a permit (admission); \
                 at the median it is 0 %"
            ),
            "{sentences:?}"
        );
        let even: &[(&str, u64)] = &[("hash", 30), ("db", 40), ("app", 30)];
        assert_eq!(said(&SLOW_REQUESTS, &[logins("a", &[(1_000, even)])]), []);
    }

    #[test]
    fn whose_time_a_login_is_follows_from_the_providers_share() {
        let local = logins("local", &[(1_000, &[("hash", 25), ("db", 5)])]);
        assert_eq!(said(&IS_IT_THE_IDENTITY_PROVIDER, std::slice::from_ref(&local)), [], "nobody asks one");
        let provider = logins("cognito", &[(900, &[("idp", 200), ("app", 5)]), (100, &[("idp", 900), ("app", 5)])]);
        let sentences = said(&IS_IT_THE_IDENTITY_PROVIDER, &[local.clone(), provider]);
        assert!(
            sentences[0].1.contains("asks no identity provider") && sentences[0].1.contains("hash"),
            "{sentences:?}"
        );
        assert!(sentences[1].1.contains("login's latency is the identity provider's"), "{sentences:?}");
        let expected = "98 % (200 ms of 205 ms), 99 % (900 ms of 905 ms) and 99 % (900 ms of 905 ms) of the logins";
        assert!(sentences[1].1.contains(expected), "{sentences:?}");
        let queue = logins("fast", &[(1_000, &[("idp", 2), ("admission", 200)])]);
        let sentences = said(&IS_IT_THE_IDENTITY_PROVIDER, &[queue]);
        assert!(sentences[0].1.contains("is not the identity provider's"), "{sentences:?}");
        assert!(sentences[0].1.contains("admission"), "{sentences:?}");
        let few = logins("few", &[(6, &[("idp", 2), ("app", 1)])]);
        let sentences = said(&IS_IT_THE_IDENTITY_PROVIDER, &[few]);
        let expected = "≈67 % (2.00 ms of 3.00 ms), too few and too few";
        assert!(sentences[0].1.contains(expected), "{sentences:?}");
        assert!(sentences[0].1.contains("whose time a login is cannot be told from 6 logins"), "{sentences:?}");
        assert!(!sentences[0].1.contains("login's latency"), "{sentences:?}");
        let some = logins("some", &[(60, &[("idp", 2), ("app", 1)])]);
        let sentences = said(&IS_IT_THE_IDENTITY_PROVIDER, &[some]);
        assert!(sentences[0].1.contains("login's latency is the identity provider's"), "{sentences:?}");
        assert!(sentences[0].1.contains("(\"too few\": 60 logins do not tell it)"), "{sentences:?}");
        let both = logins("both", &[(900, &[("idp", 200)]), (100, &[("idp", 200), ("admission", 900)])]);
        assert!(said(&IS_IT_THE_IDENTITY_PROVIDER, &[both])[0].1.contains("depends on the login"));
    }
}
