//! Who keeps accounts, and what the tasks are told about it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::cognito::{self, PoolAccess};
use crate::environment::Variables;
use crate::error::StackError;
use crate::service::Service;

/// Names a given user pool.
const POOL_ID: &str = "COGNITO_USER_POOL_ID";
/// Names a given app client.
const CLIENT_ID: &str = "COGNITO_CLIENT_ID";
/// How accounts are confirmed: `automatic`, `code`, `admin`.
const CONFIRMATION: &str = "COGNITO_CONFIRMATION";
/// What says something about a given pool alone: the variable, the value that is true of the double, and what to do for the double.
const OF_A_POOL: [(&str, &str, &str); 3] = [
    ("COGNITO_ENDPOINT_URL", "", "or unset it for the Cognito double"),
    ("COGNITO_CLIENT_SECRET", "", "or give the double's client a secret with COGNITO_DOUBLE_CLIENT_SECRET"),
    ("COGNITO_REFRESH_TOKEN_ROTATION", "off", "or unset it for the Cognito double, which does not rotate"),
];
/// What finds AWS credentials, for whoever confirms accounts as an administrator.
const CREDENTIALS: [&str; 6] =
    ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_CONFIG_FILE", "HOME"];

/// Who keeps accounts.
#[derive(Debug, Clone, Default)]
pub enum IdentityOptions {
    /// The auth service, in its database.
    #[default]
    Local,
    /// A double of Amazon Cognito that the stack starts.
    Double(Box<cognito::Options>),
    /// A user pool elsewhere: Amazon Cognito's own, or an emulator's.
    Pool(GivenPool),
}

/// A user pool that was there before the stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenPool {
    user_pool_id: String,
    region: String,
    client_id: String,
    endpoint: Option<String>,
    credentials: Variables,
}

impl GivenPool {
    /// The pool that an environment names by `COGNITO_USER_POOL_ID` or `COGNITO_CLIENT_ID`; none where it names neither.
    ///
    /// # Errors
    /// It names only one of the two, or not the region; or it describes a pool without naming it, which the double could only
    /// disappoint.
    pub fn find(environment: &Variables, set: &Variables) -> Result<Option<Self>, StackError> {
        let get = |name: &str| {
            let value = set.get(name).or_else(|| environment.get(name));
            value.filter(|value| !value.is_empty()).cloned()
        };
        let (pool, client) = match (get(POOL_ID), get(CLIENT_ID)) {
            (None, None) => {
                return match OF_A_POOL.iter().find(|(name, of_double, _)| get(name).is_some_and(|it| it != *of_double))
                {
                    Some((name, _, instead)) => Err(StackError::Configuration(format!(
                        "{name} is set, and no user pool is named; set {POOL_ID} and {CLIENT_ID} too, {instead}"
                    ))),
                    None => Ok(None),
                };
            }
            (Some(pool), Some(client)) => (pool, client),
            (pool, _) => {
                let (found, missing) = if pool.is_some() { (POOL_ID, CLIENT_ID) } else { (CLIENT_ID, POOL_ID) };
                return Err(StackError::Configuration(format!(
                    "{found} names a user pool, and {missing} is not set; set both, or neither for the Cognito double"
                )));
            }
        };
        let of_pool = pool.split_once('_').map(|(region, _)| region.to_owned());
        let Some(region) = get("COGNITO_REGION").or(of_pool) else {
            return Err(StackError::Configuration(format!(
                "{POOL_ID} is no REGION_NAME, and COGNITO_REGION is not set"
            )));
        };
        // Credentials of the shell are for that one purpose; without it nothing asks for any.
        let admin = get(CONFIRMATION).as_deref() == Some("admin");
        let credentials = CREDENTIALS.into_iter().filter(|_| admin);
        let credentials = credentials.filter_map(|name| Some((name.to_owned(), get(name)?))).collect();
        let endpoint = get("COGNITO_ENDPOINT_URL").map(|endpoint| endpoint.trim_end_matches('/').to_owned());
        Ok(Some(Self { user_pool_id: pool, region, client_id: client, endpoint, credentials }))
    }

    pub(crate) fn status(&self) -> IdentityStatus {
        IdentityStatus::Cognito { endpoint: self.endpoint.clone(), user_pool_id: self.user_pool_id.clone() }
    }

    fn issuer(&self) -> String {
        format!("https://cognito-idp.{}.amazonaws.com/{}", self.region, self.user_pool_id)
    }

    /// Below the issuer; of a stand-in, which signs with AWS's issuer, below its own address.
    fn jwks_url(&self) -> String {
        let below = match &self.endpoint {
            Some(endpoint) => format!("{endpoint}/{}", self.user_pool_id),
            None => self.issuer(),
        };
        format!("{below}/.well-known/jwks.json")
    }
}

/// What a running stack says about who keeps its accounts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "provider")]
pub enum IdentityStatus {
    /// The auth service.
    #[default]
    Local,
    /// The double that the stack has started.
    CognitoDouble {
        /// `http://127.0.0.1:port`.
        endpoint: String,
        /// The pool.
        user_pool_id: String,
    },
    /// A pool elsewhere.
    Cognito {
        /// Where, if it is not AWS's.
        endpoint: Option<String>,
        /// The pool.
        user_pool_id: String,
    },
}

impl IdentityStatus {
    /// A line for whoever looks; none where there is nothing to say.
    #[must_use]
    pub fn describe(&self) -> Option<String> {
        match self {
            Self::Local => None,
            Self::CognitoDouble { endpoint, user_pool_id } => {
                Some(format!("Cognito double at {endpoint}, user pool {user_pool_id}"))
            }
            Self::Cognito { endpoint: Some(endpoint), user_pool_id } => {
                Some(format!("user pool {user_pool_id} at {endpoint}"))
            }
            Self::Cognito { endpoint: None, user_pool_id } => {
                Some(format!("user pool {user_pool_id} of Amazon Cognito"))
            }
        }
    }
}

/// What connects the tasks with whoever keeps accounts.
#[derive(Debug, Clone, Default)]
pub enum IdentityWiring {
    /// The auth service itself.
    #[default]
    Local,
    /// A user pool.
    Cognito {
        /// For every task that verifies tokens or reads users.
        all: Variables,
        /// For the auth service alone.
        auth: Variables,
    },
}

impl IdentityWiring {
    /// Of the double that listens at `access`.
    pub(crate) fn double(access: &PoolAccess, confirmation: Option<&str>) -> Self {
        let all = [
            ("AUTH_ISSUER", access.issuer.clone()),
            ("AUTH_JWKS_URL", access.jwks_url.clone()),
            (CLIENT_ID, access.client_id.clone()),
            ("COGNITO_ENDPOINT_URL", access.endpoint.clone()),
            ("COGNITO_REGION", access.region.clone()),
            (POOL_ID, access.pool_id.clone()),
        ];
        let mut auth = vec![(CONFIRMATION, confirmation.unwrap_or("automatic").to_owned())];
        auth.extend(access.client_secret.iter().map(|secret| ("COGNITO_CLIENT_SECRET", secret.expose().to_owned())));
        // The double asks for a signature and does not check whose it is.
        auth.extend(["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"].map(|name| (name, "datum".to_owned())));
        Self::Cognito { all: named(all), auth: named(auth) }
    }

    /// Of a pool elsewhere.
    pub(crate) fn pool(pool: &GivenPool) -> Self {
        let all = [
            ("AUTH_ISSUER", pool.issuer()),
            ("AUTH_JWKS_URL", pool.jwks_url()),
            (CLIENT_ID, pool.client_id.clone()),
            ("COGNITO_REGION", pool.region.clone()),
            (POOL_ID, pool.user_pool_id.clone()),
        ];
        let all = all.into_iter().chain(pool.endpoint.clone().map(|endpoint| ("COGNITO_ENDPOINT_URL", endpoint)));
        Self::Cognito { all: named(all), auth: pool.credentials.clone() }
    }

    /// The variables of a service's tasks; none where the auth service keeps the accounts.
    pub(crate) fn variables(&self, service: Service) -> Option<Variables> {
        let Self::Cognito { all, auth } = self else { return None };
        let mut variables = all.clone();
        variables.insert("AUTH_IDENTITY_PROVIDER".to_owned(), "cognito".to_owned());
        if service == Service::Auth {
            variables.extend(auth.clone());
        }
        Some(variables)
    }

    /// Whether a variable of the user's environment is kept from a service's tasks: a secret goes to nobody but the auth service, and
    /// nothing about a user pool to tasks that have none.
    pub(crate) fn withholds(&self, service: Service, name: &str) -> bool {
        match self {
            Self::Local => name.starts_with("COGNITO_"),
            Self::Cognito { .. } => name == "COGNITO_CLIENT_SECRET" && service != Service::Auth,
        }
    }
}

fn named(pairs: impl IntoIterator<Item = (&'static str, String)>) -> Variables {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<BTreeMap<_, _>>()
}

/// `COGNITO_CONFIRMATION`, where somebody chose it.
pub(crate) fn confirmation<'a>(environment: &'a Variables, set: &'a Variables) -> Option<&'a str> {
    let value = set.get(CONFIRMATION).or_else(|| environment.get(CONFIRMATION));
    value.map(String::as_str).filter(|value| !value.is_empty())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> Variables {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn find(environment: &[(&str, &str)], set: &[(&str, &str)]) -> Result<Option<GivenPool>, StackError> {
        GivenPool::find(&variables(environment), &variables(set))
    }

    fn given(more: &[(&str, &str)]) -> IdentityWiring {
        let named = [(POOL_ID, "eu-central-1_abc"), (CLIENT_ID, "client")];
        IdentityWiring::pool(&find(&[&named[..], more].concat(), &[]).unwrap().unwrap())
    }

    #[test]
    fn a_pool_is_given_by_its_id_and_its_client() {
        assert_eq!(find(&[], &[]).unwrap(), None);
        assert_eq!(find(&[("COGNITO_MAX_CONNECTIONS", "5"), (POOL_ID, "")], &[]).unwrap(), None);
        let pool = find(&[(POOL_ID, "us-east-1_a")], &[(CLIENT_ID, "c")]).unwrap().unwrap();
        assert_eq!((pool.region.as_str(), pool.client_id.as_str()), ("us-east-1", "c"));
        for (name, value) in [
            ("COGNITO_ENDPOINT_URL", "http://127.0.0.1:5000"),
            ("COGNITO_CLIENT_SECRET", "hunter2"),
            ("COGNITO_REFRESH_TOKEN_ROTATION", "on"),
        ] {
            let error = find(&[], &[(name, value)]).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{name} is set, and no user pool is named")), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
            assert_eq!(find(&[(name, "")], &[]).unwrap(), None, "empty is unset");
        }
        assert_eq!(find(&[("COGNITO_REFRESH_TOKEN_ROTATION", "off")], &[]).unwrap(), None, "what the double does");
        for (name, missing) in [(POOL_ID, CLIENT_ID), (CLIENT_ID, POOL_ID)] {
            let error = find(&[(name, "us-east-1_a")], &[]).unwrap_err();
            assert!(error.to_string().contains(missing), "{error}");
        }
        assert!(find(&[(POOL_ID, "a"), (CLIENT_ID, "c")], &[]).is_err());
    }

    #[test]
    fn a_pool_of_awss_has_its_keys_below_the_issuer_and_a_stand_in_below_its_address() {
        let issuer = "https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_abc";
        let real = given(&[]).variables(Service::Actor).unwrap();
        assert_eq!(real["AUTH_ISSUER"], issuer);
        assert_eq!(real["AUTH_JWKS_URL"], format!("{issuer}/.well-known/jwks.json"));
        assert!(!real.contains_key("COGNITO_ENDPOINT_URL"));
        let stand_in = given(&[("COGNITO_ENDPOINT_URL", "http://127.0.0.1:5000/")]).variables(Service::Actor).unwrap();
        assert_eq!(stand_in["AUTH_ISSUER"], issuer);
        assert_eq!(stand_in["AUTH_JWKS_URL"], "http://127.0.0.1:5000/eu-central-1_abc/.well-known/jwks.json");
    }

    #[test]
    fn credentials_of_the_shell_reach_the_auth_service_alone_and_only_to_confirm_accounts() {
        let shell = [("AWS_ACCESS_KEY_ID", "AKIA"), ("AWS_PROFILE", "work")];
        let code = given(&shell);
        assert!(!code.variables(Service::Auth).unwrap().contains_key("AWS_ACCESS_KEY_ID"));
        let admin = given(&[&shell[..], &[(CONFIRMATION, "admin")]].concat());
        assert_eq!(admin.variables(Service::Auth).unwrap()["AWS_PROFILE"], "work");
        assert!(!admin.variables(Service::Document).unwrap().contains_key("AWS_ACCESS_KEY_ID"));
        assert!(admin.withholds(Service::Actor, "COGNITO_CLIENT_SECRET"));
        assert!(!admin.withholds(Service::Auth, "COGNITO_CLIENT_SECRET"));
        assert!(IdentityWiring::Local.withholds(Service::Auth, "COGNITO_MAX_CONNECTIONS"));
        assert_eq!(IdentityWiring::Local.variables(Service::Auth), None);
    }
}
