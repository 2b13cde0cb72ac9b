//! How a stack comes up: what is cheap and may fail first, what is slow at the same time.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use migrator::{Migrator, Owner, RolePasswords};
use service_kit::clock::{Clock, SystemClock};
use service_kit::config::{Environment, Secret};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::board::Board;
use crate::cognito::{CognitoDouble, PoolAccess};
use crate::cpu_quota::{self, Quotas, TaskCpu};
use crate::database::{self, ClaimedRoles};
use crate::environment::{self, Chosen, ObjectStoreAccess, Wiring};
use crate::error::StackError;
use crate::identity::{IdentityOptions, IdentityStatus, IdentityWiring};
use crate::launcher::Launcher;
use crate::object_store::{self, ObjectStore};
use crate::observer::{Event, Observer, Step};
use crate::options::{Inspect, MAX_TASKS, StackOptions};
use crate::ports::Reserved;
use crate::postgres;
use crate::postgres_keeper::PostgresKeeper;
use crate::registry;
use crate::running::{Identity, Parts, Stack};
use crate::secrets::Secrets;
use crate::service::{Service, TaskId};
use crate::signing_key::{self, Found};
use crate::slot::{Slot, Surroundings};
use crate::state_dir::{self, StateDir};
use crate::targets::LoadBalancer;

/// The documents' bucket.
const BUCKET: &str = "datum-documents";

/// See [`Stack::start`].
pub(crate) async fn start(
    options: StackOptions,
    observer: Arc<dyn Observer>,
    cancel: CancellationToken,
) -> Result<Stack, StackError> {
    let began = Instant::now();
    observer.observe(Event::Started(Step::State));
    let chosen = checked(&options)?;
    // What it depends on is blocking and fast: a few small files.
    let state = StateDir::open(&options.location)?;
    observer.observe(Event::Logs(state.logs()));
    let mut parts = Parts::new(state);
    let start = Start { options: &options, chosen: &chosen, observer: &observer, cancel: &cancel };
    let outcome = match start.prepare(&mut parts, began) {
        Ok(prepared) => start.bring_up(&mut parts, prepared).await,
        Err(error) => Err(error),
    };
    let (identity, board, admin_url, fatal) = match outcome {
        Ok(running) => running,
        Err(error) => {
            parts.stop(&*observer).await;
            return Err(error);
        }
    };
    let path = parts.state.path().to_owned();
    Stack::assemble(identity, board, parts, admin_url, observer, fatal).map_err(|source| StackError::State {
        action: "listen in",
        path,
        source,
    })
}

/// What the options say without touching anything.
fn checked(options: &StackOptions) -> Result<Chosen, StackError> {
    for service in Service::ALL {
        let count = options.tasks.of(service);
        if !(1..=MAX_TASKS).contains(&count) {
            return Err(StackError::Configuration(format!(
                "{count} tasks of {service}: from 1 to {MAX_TASKS} are possible"
            )));
        }
    }
    if let Some(url) = &options.database_url {
        database::check_url(url)?;
    }
    Chosen::new(&options.environment, &options.set)
}

/// Refuses what the tasks would refuse, and variables that were typed and nobody reads.
fn inspect(inspect: Inspect, wiring: &Wiring, chosen: &Chosen) -> Result<(), StackError> {
    let (mut errors, mut names) = (Vec::new(), BTreeSet::new());
    for service in Service::ALL {
        // Any port: none is taken yet.
        let variables = environment::of_task(wiring, chosen, TaskId::new(service, 1), 1, None);
        let found = inspect(service, &Environment::from_pairs(variables));
        for error in found.errors {
            // Most variables are read by every service.
            if !errors.contains(&error) {
                errors.push(error);
            }
        }
        names.extend(found.names);
    }
    let unknown = chosen.unknown(&names);
    errors.extend(unknown.into_iter().map(|name| format!("--set {name}: no service reads a variable of this name")));
    if errors.is_empty() { Ok(()) } else { Err(StackError::TasksConfiguration(errors.join("\n"))) }
}

struct Start<'a> {
    options: &'a StackOptions,
    chosen: &'a Chosen,
    observer: &'a Arc<dyn Observer>,
    cancel: &'a CancellationToken,
}

/// What is in place before anything is started.
struct Prepared {
    secrets: Secrets,
    reserved: Reserved,
    quotas: Option<Quotas>,
    identity: Identity,
}

type Running = (Identity, Arc<Board>, Secret, mpsc::Receiver<StackError>);

impl Start<'_> {
    /// Everything that can fail at once does so here: nothing slow has been started yet.
    fn prepare(&self, parts: &mut Parts, began: Instant) -> Result<Prepared, StackError> {
        let state = &parts.state;
        let reserved = Reserved::hold(self.options.port)?;
        cpu_quota::remove_left_behind();
        let quotas = self.options.task_cpu.map(Quotas::prepare).transpose()?;
        let secrets = Secrets::ensure(&state.secrets()).map_err(|source| failed("read", &state.secrets(), source))?;
        let key = signing_key::ensure(&state.signing_key(), self.options.make_signing_key)
            .map_err(|source| failed("write", &state.signing_key(), source))?;
        let port = reserved.port();
        let base_url = format!("http://127.0.0.1:{port}");
        if let Some(inspect_task) = self.options.inspect {
            // An own database and the object store have no address yet.
            let own = Secret::new("postgres://127.0.0.1:1/datum".to_owned());
            let database = self.options.database_url.as_ref().unwrap_or(&own);
            let places = (database, "http://127.0.0.1:1");
            let provider = self.provider("http://127.0.0.1:1");
            let wiring = self.wiring(base_url.clone(), state.signing_key(), &secrets, places, provider)?;
            inspect(inspect_task, &wiring, self.chosen)?;
        }
        let identity = Identity {
            base_url,
            port,
            started_at: SystemClock.now(),
            throttle_off: matches!(self.options.identity, IdentityOptions::Local) && self.chosen.throttle_off(),
            task_cpu_units: self.options.task_cpu.map(TaskCpu::units),
            provider: self.provider_status(""),
            faults: self.chosen.faults(),
        };
        let entry = registry::Entry { port, pid: std::process::id(), state_dir: state.path().to_owned() };
        parts.registration =
            Some(registry::register(&entry).map_err(|source| failed("register", state.path(), source))?);
        let kept = match (state.is_ephemeral(), key) {
            (true, _) => "temporary",
            (false, Found::Made) => "new",
            (false, Found::Existing) => "as the last run left it",
        };
        self.done(Step::State, format!("{} ({kept})", state.path().display()), began);
        Ok(Prepared { secrets, reserved, quotas, identity })
    }

    fn wiring(
        &self,
        base_url: String,
        signing_key: PathBuf,
        secrets: &Secrets,
        (admin_url, object_store): (&Secret, &str),
        identity: IdentityWiring,
    ) -> Result<Wiring, StackError> {
        Ok(Wiring {
            base_url,
            database_urls: database::role_urls(admin_url, secrets)?,
            object_store: ObjectStoreAccess {
                endpoint: object_store.to_owned(),
                bucket: BUCKET.to_owned(),
                access_key_id: secrets.s3_access_key_id.clone(),
                secret_access_key: Secret::new(secrets.s3_secret_access_key.clone()),
            },
            identity,
            signing_key,
            task_cpu: self.options.task_cpu,
        })
    }

    /// What the tasks are told about who keeps the accounts; the double listens at `endpoint`.
    fn provider(&self, endpoint: &str) -> IdentityWiring {
        match &self.options.identity {
            IdentityOptions::Local => IdentityWiring::Local,
            IdentityOptions::Double(options) => {
                IdentityWiring::double(&PoolAccess::new(&options.pool, endpoint.to_owned()), self.chosen.confirmation())
            }
            IdentityOptions::Pool(pool) => IdentityWiring::pool(pool),
        }
    }

    fn provider_status(&self, endpoint: &str) -> IdentityStatus {
        match &self.options.identity {
            IdentityOptions::Local => IdentityStatus::Local,
            IdentityOptions::Double(options) => IdentityStatus::CognitoDouble {
                endpoint: endpoint.to_owned(),
                user_pool_id: options.pool.pool_id.clone(),
            },
            IdentityOptions::Pool(pool) => pool.status(),
        }
    }

    async fn bring_up(&self, parts: &mut Parts, prepared: Prepared) -> Result<Running, StackError> {
        let Prepared { secrets, reserved, quotas, mut identity } = prepared;
        let board = Arc::new(Board::new(Arc::clone(self.observer)));
        self.write_status(parts, &identity, &board, false);

        // At the same time, and each waited for whatever the other does: what was started must be stoppable.
        let (database, object_store, cognito) = tokio::join!(
            self.start_database(parts.state.postgres(), &board, parts.state.is_ephemeral()),
            self.start_object_store(&parts.state, &secrets),
            self.start_cognito(&parts.state)
        );
        let admin_url = match database {
            Ok((admin_url, postgres)) => {
                parts.postgres = postgres;
                admin_url
            }
            Err(error) => {
                parts.object_store = object_store.ok();
                parts.cognito = cognito.ok().flatten();
                return Err(error);
            }
        };
        match cognito {
            Ok(cognito) => parts.cognito = cognito,
            Err(error) => {
                parts.object_store = object_store.ok();
                return Err(error);
            }
        }
        let provider_endpoint = parts.cognito.as_ref().map(CognitoDouble::endpoint).unwrap_or_default();
        identity.provider = self.provider_status(&provider_endpoint);
        let object_store = parts.object_store.insert(object_store?);
        let endpoint = object_store.endpoint();

        if self.options.database_url.is_some() {
            let owner = Owner { id: secrets.id(), place: parts.state.path().display().to_string() };
            parts.roles = Some(ClaimedRoles { admin_url: admin_url.clone(), owner });
        }
        self.migrate(&admin_url, &secrets, parts.roles.as_ref()).await?;

        let places = (&admin_url, endpoint.as_str());
        let provider = self.provider(&provider_endpoint);
        let wiring = self.wiring(identity.base_url.clone(), parts.state.signing_key(), &secrets, places, provider)?;
        let launcher =
            Launcher::new(&self.options.executable, wiring, self.chosen.clone(), quotas, parts.state.path().to_owned());

        let began = self.started(Step::Balancer);
        let balancer = parts.balancer.insert(LoadBalancer::start(
            reserved,
            self.options.pages.clone(),
            self.chosen.forward_delay(),
        )?);
        self.done(Step::Balancer, identity.base_url.clone(), began);

        let (fatal_sender, fatal) = mpsc::channel(1);
        let surroundings =
            Surroundings { launcher: Arc::new(launcher), board: Arc::clone(&board), fatal: fatal_sender };
        let began = self.started(Step::Tasks);
        let mut ready = Vec::new();
        for task in self.options.tasks.tasks() {
            let (slot, first) = Slot::start(task, balancer.targets(task.service), surroundings.clone());
            parts.slots.push(Arc::new(slot));
            ready.push(first);
        }
        self.all_ready(ready).await?;
        self.done(Step::Tasks, format!("{} ready", parts.slots.len()), began);
        self.write_status(parts, &identity, &board, true);
        Ok((identity, board, admin_url, fatal))
    }

    /// The database: an own server, or the given one.
    async fn start_database(
        &self,
        data_dir: std::path::PathBuf,
        board: &Arc<Board>,
        ephemeral: bool,
    ) -> Result<(Secret, Option<PostgresKeeper>), StackError> {
        let began = self.started(Step::Postgres);
        let (tasks, pool_max) = (self.options.tasks.total(), self.chosen.pool_max());
        if let Some(url) = &self.options.database_url {
            let found = self.unless_cancelled(database::check_given(url, tasks, pool_max)).await?;
            self.done(Step::Postgres, found, began);
            if ephemeral {
                // Not refused: a run of load against a prepared server wants just that, and knows about its rows.
                self.observer.observe(Event::Notice(
                    "NOTE          only the state folder is temporary: rows stay in the database that was given, and the \
                     documents of which they tell go at the end"
                        .to_owned(),
                ));
            }
            return Ok((url.clone(), None));
        }
        // The first start of a folder takes seconds, later ones a fraction of one.
        let doing = if data_dir.exists() { "starting" } else { "making a new database" };
        self.observer.observe(Event::Doing(Step::Postgres, doing.to_owned()));
        let options = postgres::Options {
            // Not removed when it stops: one that died is started again, and finds its data.
            ephemeral,
            max_connections: database::max_connections(tasks, pool_max)?,
            ..postgres::Options::new(data_dir)
        };
        let postgres = PostgresKeeper::start(options, Arc::clone(board), self.cancel).await?;
        self.done(Step::Postgres, postgres.description.clone(), began);
        Ok((postgres.admin_url.clone(), Some(postgres)))
    }

    async fn start_object_store(&self, state: &StateDir, secrets: &Secrets) -> Result<ObjectStore, StackError> {
        let began = self.started(Step::ObjectStore);
        let secret = Secret::new(secrets.s3_secret_access_key.clone());
        let options = object_store::Options::new(state.objects(), &secrets.s3_access_key_id, secret, BUCKET);
        let store = ObjectStore::start(options).await?;
        self.done(Step::ObjectStore, store.endpoint(), began);
        Ok(store)
    }

    /// The double, where one is wanted; it keeps its users beside the database, and an ephemeral system's in memory.
    async fn start_cognito(&self, state: &StateDir) -> Result<Option<CognitoDouble>, StackError> {
        let began = self.started(Step::Identity);
        let options = match &self.options.identity {
            IdentityOptions::Local => return Ok(None),
            IdentityOptions::Pool(_) => {
                let what = self.provider_status("").describe().unwrap_or_default();
                self.done(Step::Identity, what, began);
                return Ok(None);
            }
            IdentityOptions::Double(options) => options,
        };
        let mut options = options.as_ref().clone();
        options.pool.auto_confirm = self.chosen.confirmation().is_none_or(|it| it == "automatic");
        if options.pool.data_dir.is_none() && !state.is_ephemeral() {
            options.pool.data_dir = Some(state.cognito());
        }
        let double = CognitoDouble::start(options).await?;
        let what = self.provider_status(&double.endpoint()).describe().unwrap_or_default();
        self.done(Step::Identity, what, began);
        Ok(Some(double))
    }

    /// Nobody else can have the roles of an own server; those of another are claimed first.
    async fn migrate(
        &self,
        admin_url: &Secret,
        secrets: &Secrets,
        roles: Option<&ClaimedRoles>,
    ) -> Result<(), StackError> {
        let began = self.started(Step::Migrations);
        let password = |service| Secret::new(secrets.role_password(service).to_owned());
        let passwords = RolePasswords {
            auth: password(Service::Auth),
            actor: password(Service::Actor),
            document: password(Service::Document),
        };
        let mut migrator = Migrator::new(passwords);
        if let Some(roles) = roles {
            migrator = migrator.owned_by(roles.owner.clone(), self.options.take_over_roles);
        }
        let mut tell = |progress: migrator::Progress<'_>| {
            self.observer.observe(Event::Doing(Step::Migrations, progress.to_string()));
        };
        let work = async { Ok(migrator.run(admin_url.expose(), &mut tell).await?) };
        let report = self.unless_cancelled(work).await?;
        let what = match report.applied.len() {
            0 => "nothing new".to_owned(),
            count => format!("{count} applied"),
        };
        self.done(Step::Migrations, what, began);
        Ok(())
    }

    /// Ends when every task gets requests, or with the first error.
    async fn all_ready(&self, ready: Vec<oneshot::Receiver<Result<(), StackError>>>) -> Result<(), StackError> {
        let total = ready.len();
        let mut done = 0;
        let mut waiting = futures_util::stream::FuturesUnordered::from_iter(ready);
        while done < total {
            let next = async {
                match futures_util::StreamExt::next(&mut waiting).await {
                    Some(Ok(outcome)) => outcome,
                    _ => Err(StackError::Interrupted),
                }
            };
            self.unless_cancelled(next).await?;
            done += 1;
            self.observer.observe(Event::Doing(Step::Tasks, format!("{done} of {total} ready")));
        }
        Ok(())
    }

    async fn unless_cancelled<T>(&self, work: impl Future<Output = Result<T, StackError>>) -> Result<T, StackError> {
        self.cancel.run_until_cancelled(work).await.unwrap_or(Err(StackError::Interrupted))
    }

    fn write_status(&self, parts: &Parts, identity: &Identity, board: &Board, ready: bool) {
        if let Err(error) = state_dir::write_status(parts.state.path(), &identity.status(board, ready)) {
            self.observer.observe(Event::Notice(format!("cannot write stack.json: {error}")));
        }
    }

    fn started(&self, step: Step) -> Instant {
        self.observer.observe(Event::Started(step));
        Instant::now()
    }

    fn done(&self, step: Step, what: String, began: Instant) {
        self.observer.observe(Event::Done(step, what, began.elapsed()));
    }
}

fn failed(action: &'static str, path: &Path, source: std::io::Error) -> StackError {
    StackError::State { action, path: path.to_owned(), source }
}
