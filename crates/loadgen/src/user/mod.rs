//! A virtual user: somebody with an account, a session and one connection.

mod checks;
mod requests;
mod session;

use std::sync::Arc;
use std::time::{Duration, Instant};

use envelope::result::Failure;
use http::StatusCode;

use crate::client::{Answer, Client, ServerTiming, Target, refused};
use crate::dataset::{self, Dataset, Identity};
use crate::run::Timeouts;
use crate::scenario::{Endpoint, Identities};
pub(crate) use requests::{Payloads, Requests};
use session::Session;

/// How often a request before the load is tried while the target says that it is busy.
const SET_UP_ATTEMPTS: u32 = 20;
/// Longest wait between two of them, whatever the target asks for.
const LONGEST_RETRY: Duration = Duration::from_secs(5);
/// A target that refused without saying for how long is asked again after this.
const RETRY: Duration = Duration::from_millis(250);

/// What all virtual users of a run share.
pub(crate) struct Cast {
    pub(crate) requests: Requests,
    pub(crate) payloads: Payloads,
    pub(crate) identities: Identities,
    pub(crate) dataset: Option<Dataset>,
    /// Makes addresses this run's own.
    pub(crate) tag: String,
}

/// As whom a request was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Person {
    /// The account of a virtual user.
    Own(u32),
    /// A user of the dataset.
    Populated(u64),
    /// An account that the request itself made.
    New,
}

/// What is to be done next.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Task {
    pub(crate) endpoint: Endpoint,
    /// Unique within the run.
    pub(crate) iteration: u64,
    /// Decides who of the dataset logs in.
    pub(crate) draw: u64,
}

/// One request and its answer.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) started: Instant,
    pub(crate) ended: Instant,
    pub(crate) outcome: Result<ServerTiming, Failure>,
    pub(crate) person: Person,
}

struct Account {
    identity: Identity,
    person: Person,
    /// The actor's id, once known.
    id: Option<String>,
}

pub(crate) struct VirtualUser {
    cast: Arc<Cast>,
    client: Client,
    account: Account,
    session: Option<Session>,
}

impl VirtualUser {
    /// Virtual user `index` of `all`; sends nothing yet.
    pub(crate) fn new(cast: Arc<Cast>, target: Target, timeouts: Timeouts, index: u32, all: u32) -> Self {
        let account = match (&cast.dataset, cast.identities) {
            (Some(users), Identities::Populated) => {
                // Spread over the dataset, each another.
                let n = u64::from(index) * (users.users / u64::from(all.max(1))).max(1);
                populated(users, n)
            }
            _ => Account {
                identity: Identity {
                    email: format!("vu-{index}.{}@load.datum.example", cast.tag),
                    password: format!("virtual user {index} of {}", cast.tag),
                },
                person: Person::Own(index),
                id: None,
            },
        };
        Self { cast, client: Client::new(target, timeouts), account, session: None }
    }

    /// Connects, makes the account where it is the user's own, and logs in, as far as the load needs it.
    pub(crate) async fn set_up(&mut self, needs_account: bool, needs_token: bool) -> Result<(), String> {
        let connected = self.client.connect().await;
        connected.map_err(|failure| self.client.describe(&failure))?;
        if needs_account && self.cast.identities == Identities::PerVu {
            let outcome = self.patiently(async |user| user.register_own().await).await;
            match outcome {
                // A run with the same tag has made it, with the same password.
                Err(failure) if failure.status == Some(409) => {}
                other => other.map_err(|failure| format!("register: {}", self.client.describe(&failure)))?,
            }
        }
        if needs_token {
            let outcome = self.patiently(async |user| user.log_in_again().await).await;
            outcome.map_err(|failure| format!("login: {}", self.client.describe(&failure)))?;
        }
        Ok(())
    }

    async fn patiently(
        &mut self,
        mut attempt: impl AsyncFnMut(&mut Self) -> Result<(), (Failure, Option<Duration>)>,
    ) -> Result<(), Failure> {
        for _ in 1..SET_UP_ATTEMPTS {
            match attempt(self).await {
                Ok(()) => return Ok(()),
                Err((failure, wait)) if matches!(failure.status, Some(429 | 502 | 503 | 504)) => {
                    tokio::time::sleep(wait.unwrap_or(RETRY).min(LONGEST_RETRY)).await;
                }
                Err((failure, _)) => return Err(failure),
            }
        }
        attempt(self).await.map_err(|(failure, _)| failure)
    }

    async fn register_own(&mut self) -> Result<(), (Failure, Option<Duration>)> {
        let request = self.cast.requests.register(&self.account.identity);
        let answer = self.client.send(request).await.map_err(|failure| (failure, None))?;
        let registered = expect(&answer, StatusCode::CREATED, self.client.body())
            .and_then(|()| checks::registered(&answer, self.client.body(), &self.account.identity.email));
        self.account.id = Some(registered.map_err(|failure| (failure, answer.retry_after))?);
        Ok(())
    }

    async fn log_in_again(&mut self) -> Result<(), (Failure, Option<Duration>)> {
        let request = self.cast.requests.login(&self.account.identity);
        let answer = self.client.send(request).await.map_err(|failure| (failure, None))?;
        let session = self.read_session(&answer).map_err(|failure| (failure, answer.retry_after))?;
        self.session = Some(session);
        Ok(())
    }

    fn read_session(&self, answer: &Answer) -> Result<Session, Failure> {
        expect(answer, StatusCode::OK, self.client.body())?;
        Session::read(answer, self.client.body(), Instant::now())
    }

    /// Whether the token ought to be renewed before it is used again.
    pub(crate) fn should_renew(&self, now: Instant) -> bool {
        self.session.as_ref().is_some_and(|session| session.should_renew(now))
    }

    /// Renews the token by its refresh token, and by a login where that is refused. Every request of it is returned.
    pub(crate) async fn renew(&mut self) -> Vec<Exchange> {
        let mut exchanges = Vec::with_capacity(1);
        let Some(session) = &self.session else { return exchanges };
        let refresh = self.cast.requests.refresh(session.refresh_token());
        for request in [Some(refresh), None] {
            let request = request.unwrap_or_else(|| self.cast.requests.login(&self.account.identity));
            let started = Instant::now();
            let outcome = match self.client.send(request).await {
                Ok(answer) => self.read_session(&answer).map(|session| {
                    self.session = Some(session);
                    answer.timing
                }),
                Err(failure) => Err(failure),
            };
            let renewed = outcome.is_ok();
            exchanges.push(Exchange { started, ended: Instant::now(), outcome, person: self.account.person });
            if renewed {
                break;
            }
        }
        exchanges
    }

    /// Sends one request of the mix and checks its answer.
    pub(crate) async fn perform(&mut self, task: Task) -> Exchange {
        let mut person = self.account.person;
        let started = Instant::now();
        let outcome = match task.endpoint {
            Endpoint::GetUser => self.get_user().await,
            Endpoint::Upload => self.upload(task.iteration).await,
            Endpoint::Register => {
                person = Person::New;
                self.register_new(task.iteration).await
            }
            Endpoint::Login => {
                let account = self.who_logs_in(task.draw);
                person = account.as_ref().map_or(person, |account| account.person);
                self.log_in(account).await
            }
        };
        Exchange { started, ended: Instant::now(), outcome, person }
    }

    /// Who it would be that a task is done as, should it not come to an end.
    pub(crate) fn person(&self) -> Person {
        self.account.person
    }

    fn who_logs_in(&self, draw: u64) -> Option<Account> {
        match (&self.cast.dataset, self.cast.identities) {
            (Some(users), Identities::Populated) => Some(populated(users, draw % users.users.max(1))),
            _ => None,
        }
    }

    async fn get_user(&mut self) -> Result<ServerTiming, Failure> {
        let request = self.cast.requests.get_user(self.session.as_ref().map(Session::authorization));
        let answer = self.client.send(request).await?;
        let body = self.client.body();
        expect(&answer, StatusCode::OK, body)?;
        let id = checks::is_person(&answer, body, &self.account.identity.email, self.account.id.as_deref())?;
        if let Some(id) = id {
            self.account.id = Some(id);
        }
        Ok(answer.timing)
    }

    async fn upload(&mut self, iteration: u64) -> Result<ServerTiming, Failure> {
        let cast = Arc::clone(&self.cast);
        let payload = cast.payloads.get(iteration);
        let name = format!("load-{}-{iteration}.bin", cast.tag);
        let authorization = self.session.as_ref().map(Session::authorization);
        let request = cast.requests.upload(self.client.target(), authorization, &name, payload);
        let answer = self.client.send(request).await?;
        expect(&answer, StatusCode::CREATED, self.client.body())?;
        checks::is_stored(&answer, self.client.body(), payload)?;
        Ok(answer.timing)
    }

    async fn register_new(&mut self, iteration: u64) -> Result<ServerTiming, Failure> {
        let identity = Identity {
            email: format!("new-{iteration}.{}@load.datum.example", self.cast.tag),
            password: "registered under load".to_owned(),
        };
        let answer = self.client.send(self.cast.requests.register(&identity)).await?;
        expect(&answer, StatusCode::CREATED, self.client.body())?;
        checks::registered(&answer, self.client.body(), &identity.email)?;
        Ok(answer.timing)
    }

    /// Logs in as somebody else, or as oneself. Who fails stays who they were.
    async fn log_in(&mut self, other: Option<Account>) -> Result<ServerTiming, Failure> {
        let identity = other.as_ref().map_or(&self.account.identity, |account| &account.identity);
        let answer = self.client.send(self.cast.requests.login(identity)).await?;
        self.session = Some(self.read_session(&answer)?);
        if let Some(account) = other {
            self.account = account;
        }
        Ok(answer.timing)
    }
}

fn populated(users: &Dataset, n: u64) -> Account {
    let id = Some(dataset::user_id(users.seed, n).to_string());
    Account { identity: dataset::identity(users, n), person: Person::Populated(n), id }
}

fn expect(answer: &Answer, status: StatusCode, body: &[u8]) -> Result<(), Failure> {
    if answer.status == status { Ok(()) } else { Err(refused(answer, body)) }
}
