//! Whether a target answers rightly at all, asked before it is loaded: a broken target can be very fast.

use std::collections::BTreeMap;
use std::time::Duration;

use http::StatusCode;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};
use url::Url;

use crate::client::{Answer, Client, Prepared, Target, Trust};
use crate::dataset::Identity;
use crate::run::Timeouts;
use crate::user::{Payloads, Requests};

/// What a check that passed says.
pub const OK: &str = "ok";

/// Size of the file that is uploaded and downloaded again.
const FILE_BYTES: usize = 10_000;

/// How long a target may take. A slow one is no reason not to measure; one that hangs is, and nobody should wait for each check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// For one check, the connection included.
    pub check: Duration,
    /// For all of them together.
    pub all: Duration,
}

impl Default for Patience {
    /// 10 s and 30 s: the answers asked for here take milliseconds, a hash half a second on a small task.
    fn default() -> Self {
        Self { check: Duration::from_secs(10), all: Duration::from_secs(30) }
    }
}

/// One journey through the API, each step checked: `register`, `duplicate-refused`, `login`, `wrong-password-refused`,
/// `get-user`, `no-token-refused`, `upload`, `download`. Says for each [`OK`] or what was wrong; steps that need an earlier one
/// that failed say so. `tag` makes the account this call's own.
pub async fn verify(target: &Url, trust: &Trust, tag: &str, patience: Patience) -> BTreeMap<String, String> {
    let target = match Target::new(target, trust) {
        Ok(target) => target,
        Err(error) => return [("target".to_owned(), error.to_string())].into(),
    };
    let identity =
        Identity { email: format!("verify.{tag}@load.datum.example"), password: format!("verified before {tag}") };
    // What a check may take is bounded here, whatever it waits for.
    let timeouts = Timeouts { connect: patience.all, request: patience.all, ..Timeouts::default() };
    let journey = Journey {
        requests: Requests::new(&target),
        client: Client::new(target, timeouts),
        identity,
        patience,
        until: Instant::now() + patience.all,
    };
    journey
        .walk()
        .await
        .into_iter()
        .map(|(name, outcome)| (name.to_owned(), outcome.err().unwrap_or_else(ok)))
        .collect()
}

/// Whether every check passed.
#[must_use]
pub fn is_verified(checks: &BTreeMap<String, String>) -> bool {
    checks.values().all(|outcome| outcome == OK)
}

fn ok() -> String {
    OK.to_owned()
}

type Checked<T> = Result<T, String>;

struct Journey {
    client: Client,
    requests: Requests,
    identity: Identity,
    patience: Patience,
    /// When all patience is over.
    until: Instant,
}

impl Journey {
    async fn walk(mut self) -> Vec<(&'static str, Checked<()>)> {
        let registered = self.register().await;
        let id = registered.clone().unwrap_or_default();
        let mut checks = vec![("register", registered.map(drop))];
        checks.push(("duplicate-refused", self.duplicate().await));
        let token = self.login().await;
        checks.push(("login", token.clone().map(drop)));
        checks.push(("wrong-password-refused", self.wrong_password().await));
        checks.push(("no-token-refused", self.no_token().await));
        let Ok(token) = token else {
            let skipped = || Err("not asked: the login failed".to_owned());
            checks.extend([("get-user", skipped()), ("upload", skipped()), ("download", skipped())]);
            return checks;
        };
        checks.push(("get-user", self.get_user(&token, &id).await));
        let payloads = Payloads::new(FILE_BYTES, 1);
        let document = self.upload(&token, &payloads).await;
        checks.push(("upload", document.clone().map(drop)));
        checks.push((
            "download",
            match document {
                Ok(document) => self.download(&token, &document, &payloads).await,
                Err(_) => Err("not asked: the upload failed".to_owned()),
            },
        ));
        checks
    }

    async fn send(&mut self, request: Prepared) -> Checked<Answer> {
        let now = Instant::now();
        if now >= self.until {
            return Err(format!("not asked: the {} s for all checks were over", self.patience.all.as_secs_f64()));
        }
        let until = self.until.min(now + self.patience.check);
        if let Ok(answered) = timeout_at(until, self.client.send(request)).await {
            return answered.map_err(|failure| self.client.describe(&failure));
        }
        self.client.forget_connection();
        Err(format!("no answer within {:.0} s", (until - now).as_secs_f64()))
    }

    fn body(&self) -> Value {
        serde_json::from_slice(self.client.body()).unwrap_or_default()
    }

    async fn register(&mut self) -> Checked<String> {
        let answer = self.send(self.requests.register(&self.identity)).await?;
        status(&answer, StatusCode::CREATED)?;
        let body = self.body();
        equal("email", body["email"].as_str(), Some(&self.identity.email))?;
        body["id"].as_str().map(str::to_owned).ok_or_else(|| "it has no id".to_owned())
    }

    async fn duplicate(&mut self) -> Checked<()> {
        let answer = self.send(self.requests.register(&self.identity)).await?;
        status(&answer, StatusCode::CONFLICT)?;
        equal("code", self.body()["code"].as_str(), Some("email_taken"))
    }

    async fn login(&mut self) -> Checked<String> {
        let answer = self.send(self.requests.login(&self.identity)).await?;
        status(&answer, StatusCode::OK)?;
        self.body()["access_token"].as_str().map(str::to_owned).ok_or_else(|| "it has no access_token".to_owned())
    }

    async fn wrong_password(&mut self) -> Checked<()> {
        let wrong = Identity { password: "a password that was never set".to_owned(), ..self.identity.clone() };
        let answer = self.send(self.requests.login(&wrong)).await?;
        status(&answer, StatusCode::UNAUTHORIZED)
    }

    async fn no_token(&mut self) -> Checked<()> {
        let answer = self.send(self.requests.get_user(None)).await?;
        status(&answer, StatusCode::UNAUTHORIZED)
    }

    async fn get_user(&mut self, token: &str, id: &str) -> Checked<()> {
        let bearer = bearer(token)?;
        let answer = self.send(self.requests.get_user(Some(&bearer))).await?;
        status(&answer, StatusCode::OK)?;
        let body = self.body();
        equal("id", body["id"].as_str(), Some(id))?;
        // Cognito's access tokens state no email.
        if body["email"].is_null() {
            Ok(())
        } else {
            equal("email", body["email"].as_str(), Some(&self.identity.email))
        }
    }

    async fn upload(&mut self, token: &str, payloads: &Payloads) -> Checked<String> {
        let (bearer, payload) = (bearer(token)?, payloads.get(0));
        let request = self.requests.upload(self.client.target(), Some(&bearer), "verify.bin", payload);
        let answer = self.send(request).await?;
        status(&answer, StatusCode::CREATED)?;
        let body = self.body();
        equal("sha256", body["sha256"].as_str(), Some(&payload.sha256))?;
        body["id"].as_str().map(str::to_owned).ok_or_else(|| "it has no id".to_owned())
    }

    async fn download(&mut self, token: &str, document: &str, payloads: &Payloads) -> Checked<()> {
        // What a target sends does not become a path without a look at it.
        if !document.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            return Err("the document's id is no id".to_owned());
        }
        let path = format!("/v1/documents/{document}/content");
        let request = self.requests.get(self.client.target(), &path, Some(&bearer(token)?));
        let answer = self.send(request).await?;
        status(&answer, StatusCode::OK)?;
        let same = self.client.body() == payloads.get(0).bytes;
        if same { Ok(()) } else { Err("other bytes came back than were sent".to_owned()) }
    }
}

fn bearer(token: &str) -> Checked<http::HeaderValue> {
    http::HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| "the token is no header value".to_owned())
}

fn status(answer: &Answer, expected: StatusCode) -> Checked<()> {
    if answer.status == expected {
        Ok(())
    } else {
        Err(format!("answered {} instead of {}", answer.status.as_u16(), expected.as_u16()))
    }
}

fn equal(what: &str, found: Option<&str>, expected: Option<&str>) -> Checked<()> {
    if found == expected {
        Ok(())
    } else {
        Err(format!("its {what} is {} instead of {}", found.unwrap_or("missing"), expected.unwrap_or("missing")))
    }
}
