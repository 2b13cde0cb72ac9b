//! One suite for whoever claims to be a user pool.
//!
//! A case asks a question, says what Amazon Cognito answers and which page of AWS's says so, and is put to the double, to moto and to
//! ministack. The double must answer as AWS does. Where an emulator differs, [`differences`] says how: an emulator that is mended,
//! or breaks elsewhere, makes the suite say so. `docs/cognito-conformance.md` is written from the same lists.

mod accounts;
mod callers;
mod differences;
mod document;
mod secrets;
mod sessions;
mod tokens;

use std::collections::BTreeMap;

use test_support::Emulator;

use crate::user_pool::UserPool;
use differences::Difference;

/// A question.
pub(crate) struct Case {
    /// Its name.
    pub(crate) name: &'static str,
    /// What AWS answers.
    pub(crate) aws: &'static str,
    /// The page that says so: of the API reference by the call's name, of the developer guide by its title.
    pub(crate) source: &'static str,
}

const fn case(name: &'static str, aws: &'static str, source: &'static str) -> Case {
    Case { name, aws, source }
}

/// All of them.
pub(crate) fn cases() -> impl Iterator<Item = &'static Case> {
    accounts::CASES.iter().chain(&sessions::CASES).chain(&callers::CASES).chain(&tokens::CASES).chain(&secrets::CASES)
}

/// Puts every question to a pool.
async fn observe(pool: &UserPool) -> BTreeMap<&'static str, String> {
    let mut observed = BTreeMap::new();
    for case in &accounts::CASES {
        observed.insert(case.name, accounts::observe(case.name, pool).await);
    }
    for case in &sessions::CASES {
        observed.insert(case.name, sessions::observe(case.name, pool).await);
    }
    for case in &callers::CASES {
        observed.insert(case.name, callers::observe(case.name, pool).await);
    }
    for case in &tokens::CASES {
        observed.insert(case.name, tokens::observe(case.name, pool).await);
    }
    for case in &secrets::CASES {
        observed.insert(case.name, secrets::observe(case.name, pool).await);
    }
    observed
}

/// What a pool answers otherwise than is listed.
fn surprises(observed: &BTreeMap<&'static str, String>, listed: &[Difference]) -> Vec<String> {
    cases()
        .filter_map(|case| {
            let difference = listed.iter().find(|difference| difference.case == case.name);
            let expected = difference.map_or(case.aws, |difference| difference.instead);
            let found = observed.get(case.name).map(String::as_str).unwrap_or_default();
            (found != expected).then(|| {
                let hint = if found == case.aws { " (as AWS does: take it off the list)" } else { "" };
                format!("{}\n    listed  {expected}\n    found   {found}{hint}", case.name)
            })
        })
        .collect()
}

async fn check(pool: &UserPool, who: &str, listed: &[Difference]) {
    let surprises = surprises(&observe(pool).await, listed);
    assert!(surprises.is_empty(), "{who} answers otherwise than is listed:\n  {}", surprises.join("\n  "));
}

#[tokio::test]
async fn the_double_answers_as_aws_does() {
    check(&UserPool::double().await, "the double", &[]).await;
}

#[tokio::test]
async fn moto_differs_as_listed() {
    let Some(pool) = UserPool::emulator(Emulator::Moto, "moto_differs_as_listed").await else { return };
    check(&pool, "moto", &differences::MOTO).await;
}

#[tokio::test]
async fn ministack_differs_as_listed() {
    let Some(pool) = UserPool::emulator(Emulator::Ministack, "ministack_differs_as_listed").await else { return };
    check(&pool, "ministack", &differences::MINISTACK).await;
}
