//! Errors on purpose.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

use super::draws::Draws;
use super::per_operation::{Target, pairs};
use crate::cognito::operation::Operation;

/// What is answered in place of the call's own answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mischief {
    /// An error of this kind, in Cognito's own shape.
    Error(String),
    /// 502 with a page of HTML, as a proxy in between answers.
    Html,
    /// The connection ends without an answer.
    Disconnect,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum When {
    /// By chance.
    Probability(f64),
    /// The next calls.
    Count(u64),
}

#[derive(Debug, Clone, PartialEq)]
struct Rule {
    target: Target,
    mischief: Mischief,
    when: When,
}

/// Errors by call: `InitiateAuth=InternalErrorException:0.01` for one in a hundred, `SignUp=TooManyRequestsException:5x` for the next
/// five; in place of an error's name `html` or `disconnect`; `*` for every call. The first rule that fits answers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Faults(Vec<Rule>);

impl FromStr for Faults {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let rule = |(target, rule): (&str, &str)| {
            let refused = || format!("`{rule}`: write ERROR:0.01 (a probability) or ERROR:5x (so many times)");
            let (what, when) = rule.split_once(':').ok_or_else(refused)?;
            let mischief = match what {
                "html" => Mischief::Html,
                "disconnect" => Mischief::Disconnect,
                error if error.ends_with("Exception") && error.bytes().all(|it| it.is_ascii_alphanumeric()) => {
                    Mischief::Error(error.to_owned())
                }
                _ => return Err(format!("`{what}` is neither html, nor disconnect, nor the name of an exception")),
            };
            let when = match when.strip_suffix('x') {
                Some(count) => When::Count(count.parse().map_err(|_| refused())?),
                None => When::Probability(
                    when.parse().ok().filter(|share| (0.0..=1.0).contains(share)).ok_or_else(refused)?,
                ),
            };
            Ok(Rule { target: target.parse()?, mischief, when })
        };
        pairs(text)?.into_iter().map(rule).collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rule = |rule: &Rule| {
            let what = match &rule.mischief {
                Mischief::Error(error) => error,
                Mischief::Html => "html",
                Mischief::Disconnect => "disconnect",
            };
            match rule.when {
                When::Probability(share) => format!("{}={what}:{share}", rule.target),
                When::Count(count) => format!("{}={what}:{count}x", rule.target),
            }
        };
        f.write_str(&self.0.iter().map(rule).collect::<Vec<_>>().join(","))
    }
}

/// The rules of a running double.
#[derive(Debug)]
pub(crate) struct Saboteur {
    rules: Vec<(Rule, AtomicU64)>,
    draws: Draws,
}

impl Saboteur {
    pub(crate) fn new(faults: &Faults, seed: u64) -> Self {
        let left = |rule: &Rule| match rule.when {
            When::Count(count) => count,
            When::Probability(_) => 0,
        };
        let rules = faults.0.iter().map(|rule| (rule.clone(), AtomicU64::new(left(rule)))).collect();
        Self { rules, draws: Draws::new(seed) }
    }

    /// What a call meets, if anything.
    pub(crate) fn meets(&self, operation: Operation) -> Option<&Mischief> {
        let fits = |(rule, left): &&(Rule, AtomicU64)| {
            (rule.target == Target::Every || rule.target == Target::One(operation))
                && match rule.when {
                    When::Probability(share) => self.draws.pair().0 < share,
                    When::Count(_) => {
                        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
                    }
                }
        };
        self.rules.iter().find(fits).map(|(rule, _)| &rule.mischief)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_read_as_they_are_written() {
        let text = "InitiateAuth=InternalErrorException:0.01,*=html:2x,SignUp=disconnect:1";
        assert_eq!(text.parse::<Faults>().unwrap().to_string(), text);
        for wrong in ["SignUp=html", "SignUp=html:2", "SignUp=html:-1", "SignUp=nonsense:1x", "X=html:1x", "html:1x"] {
            assert!(wrong.parse::<Faults>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_count_is_used_up_and_other_calls_are_left_alone() {
        let saboteur = Saboteur::new(&"SignUp=TooManyRequestsException:2x".parse().unwrap(), 1);
        assert_eq!(saboteur.meets(Operation::GetUser), None);
        let met = (0..5).filter(|_| saboteur.meets(Operation::SignUp).is_some()).count();
        assert_eq!(met, 2);
    }

    #[test]
    fn a_probability_is_kept() {
        let saboteur = Saboteur::new(&"*=html:0.1".parse().unwrap(), 1);
        let met = (0..10_000).filter(|_| saboteur.meets(Operation::GetUser).is_some()).count();
        assert!((900..1_100).contains(&met), "{met}");
    }
}
