//! Populated users in the user pool of a system whose accounts are in the Cognito double.

use loadgen::dataset::{Dataset, identity, user_id};
use stack::cognito::{ControlClient, ControlError, ImportedUser};
use stack::identity::IdentityStatus;
use tokio_util::sync::CancellationToken;

/// Users of one request.
const BATCH: u64 = 5_000;

/// Why the users are not there.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ImportError {
    /// A pool that somebody else runs.
    #[error(
        "the system's accounts are in a {0}: `datum populate` puts users into the auth service's own database and into the \
         Cognito double only"
    )]
    Elsewhere(String),
    /// The double does not do as it is told.
    #[error(transparent)]
    Double(#[from] ControlError),
}

/// Refuses a user pool that cannot be populated, before anything is written.
pub(crate) fn check(provider: &IdentityStatus) -> Result<(), ImportError> {
    match provider {
        IdentityStatus::Local | IdentityStatus::CognitoDouble { .. } => Ok(()),
        IdentityStatus::Cognito { .. } => Err(ImportError::Elsewhere(provider.describe().unwrap_or_default())),
    }
}

/// Puts the users into the double, if there is one; false when it was stopped before all were there. Those who are there keep nothing of
/// their own: everything about a user follows from the dataset.
pub(crate) async fn import(
    provider: &IdentityStatus,
    dataset: &Dataset,
    stop: &CancellationToken,
) -> Result<bool, ImportError> {
    check(provider)?;
    let IdentityStatus::CognitoDouble { endpoint, .. } = provider else { return Ok(true) };
    let control = ControlClient::new(endpoint);
    let mut from = 0;
    while from < dataset.users {
        if stop.is_cancelled() {
            return Ok(false);
        }
        let until = (from + BATCH).min(dataset.users);
        let users: Vec<ImportedUser> = (from..until)
            .map(|n| {
                let person = identity(dataset, n);
                ImportedUser { email: person.email, password: person.password, sub: Some(user_id(dataset.seed, n)) }
            })
            .collect();
        control.import(&users).await?;
        from = until;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use stack::cognito::{CognitoDouble, Options};

    use super::*;

    #[tokio::test]
    async fn every_user_of_the_dataset_is_in_the_double() {
        let double = CognitoDouble::start(Options::default()).await.expect("started");
        let provider =
            IdentityStatus::CognitoDouble { endpoint: double.endpoint(), user_pool_id: double.access().pool_id };
        let dataset = Dataset { users: BATCH + 1, seed: 3, distinct_hashes: 4 };
        let imported = import(&provider, &dataset, &CancellationToken::new()).await.expect("imported");
        assert!(imported);
        assert_eq!(double.stats().users, BATCH + 1);
        let stopped = CancellationToken::new();
        stopped.cancel();
        assert!(!import(&provider, &dataset, &stopped).await.expect("no error"));
    }

    #[test]
    fn a_pool_elsewhere_is_not_populated() {
        let provider = IdentityStatus::Cognito { endpoint: None, user_pool_id: "us-east-1_x".into() };
        let error = check(&provider).expect_err("refused");
        assert!(error.to_string().contains("us-east-1_x of Amazon Cognito"), "{error}");
        assert!(check(&IdentityStatus::Local).is_ok());
    }
}
