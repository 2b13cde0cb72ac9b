//! Tasks that die while people use the system.
//!
//! A request that a dying task had may be lost: the client gets 502, 503 or 504 and does not know whether it took effect.
//! Nothing else may happen: no other status, no broken connection, and no write that took effect twice or that nobody sent.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use e2e::{Datum, Person, Process, Signal, new_email};
use serde_json::json;
use test_support::{Caller, Reply, eventually};
use tokio::task::JoinSet;

const DATUM: &str = env!("CARGO_BIN_EXE_e2e-datum");

/// How many people there are; each has at most one request under way.
const PEOPLE: usize = 4;

/// What one person has sent, and what came of it.
#[derive(Debug, Default)]
struct Diary {
    changes: u64,
    uncertain_changes: u64,
    /// By name; whether it certainly took effect.
    uploads: BTreeMap<String, bool>,
    /// By email; whether it certainly took effect.
    registrations: BTreeMap<String, bool>,
    lost_reads: u64,
}

impl Diary {
    /// How many requests got no answer of a task.
    fn lost(&self) -> usize {
        let writes = self.uploads.values().chain(self.registrations.values()).filter(|certain| !**certain).count();
        writes + usize::try_from(self.uncertain_changes + self.lost_reads).unwrap()
    }
}

/// Whether it certainly took effect; false when the balancer lost it.
fn is_certain(reply: &Reply, expected: u16) -> bool {
    if reply.status == expected {
        return true;
    }
    let (status, code) = reply.problem();
    assert!(matches!(status.as_u16(), 502..=504), "{status} {code}: {}", reply.text());
    assert!(reply.is_balancers_own(), "a task answered {status} {code}");
    false
}

/// What people share.
#[derive(Debug, Default)]
struct Life {
    is_over: AtomicBool,
    rounds: AtomicUsize,
}

/// People who use a system at the same time.
struct People {
    life: Arc<Life>,
    at_work: JoinSet<(Person, Diary)>,
}

impl People {
    async fn move_in(system: &Datum) -> Self {
        let (life, mut at_work) = (Arc::new(Life::default()), JoinSet::new());
        for _ in 0..PEOPLE {
            let anyone = system.anyone();
            let person = Person::new(&anyone, "resident").await;
            at_work.spawn(live(person, anyone, life.clone()));
        }
        let people = Self { life, at_work };
        people.go_on().await;
        people
    }

    /// Waits until each has done something more, on average.
    async fn go_on(&self) {
        let rounds = || self.life.rounds.load(Ordering::Relaxed);
        let target = rounds() + 3 * PEOPLE;
        eventually("people go on", async || rounds() >= target).await;
    }

    /// Lets them finish, checks that what is stored is what they sent, and says how many requests were lost.
    async fn move_out(self, anyone: &Caller) -> usize {
        self.life.is_over.store(true, Ordering::Relaxed);
        let mut lost = 0;
        for (person, diary) in self.at_work.join_all().await {
            assert!(diary.changes > 0 && diary.uploads.values().any(|certain| *certain), "{diary:?}");
            check(&person, &diary, anyone).await;
            lost += diary.lost();
        }
        lost
    }
}

/// Uses the system until told to stop.
async fn live(person: Person, anyone: Caller, life: Arc<Life>) -> (Person, Diary) {
    let mut diary = Diary::default();
    while !life.is_over.load(Ordering::Relaxed) {
        let round = life.rounds.fetch_add(1, Ordering::Relaxed);
        let reply = person.caller.get("/v1/actors/me").await;
        if is_certain(&reply, 200) {
            assert_eq!(reply.json()["id"], json!(person.id), "somebody else's profile");
        } else {
            diary.lost_reads += 1;
        }
        let change = json!({"display_name": format!("round {round}")});
        if is_certain(&person.caller.patch_json("/v1/actors/me", change).await, 200) {
            diary.changes += 1;
        } else {
            diary.uncertain_changes += 1;
        }
        let name = format!("{round}.txt");
        let upload = person.caller.post_raw(&format!("/v1/documents?name={name}"), "text/plain", name.clone()).await;
        diary.uploads.insert(name, is_certain(&upload, 201));
        // Hashing a password is the most work: few of them keep the load light.
        if round.is_multiple_of(8) {
            let email = new_email("born");
            let registered = Person::register(&anyone, &email).await;
            diary.registrations.insert(email, is_certain(&registered, 201));
        }
    }
    (person, diary)
}

/// Compares what is stored with what was sent.
async fn check(person: &Person, diary: &Diary, anyone: &Caller) {
    let me = person.caller.get("/v1/actors/me").await;
    let revision: u64 =
        me.header("etag").and_then(|tag| tag.trim_matches('"').rsplit('.').next()?.parse().ok()).unwrap();
    let changes = revision - 1;
    let possible = diary.changes..=diary.changes + diary.uncertain_changes;
    assert!(possible.contains(&changes), "{changes} changes took effect, of {possible:?}");

    let mut stored = person.document_names().await;
    stored.sort();
    let count = stored.len();
    stored.dedup();
    assert_eq!(stored.len(), count, "a document was stored twice");
    for name in &stored {
        assert!(diary.uploads.contains_key(name), "nobody has uploaded {name}");
    }
    for (name, certain) in &diary.uploads {
        assert!(!certain || stored.contains(name), "{name} was acknowledged and is lost");
    }
    for (email, certain) in &diary.registrations {
        let again = Person::register(anyone, email).await;
        match again.status.as_u16() {
            201 if !certain => {}
            _ => drop(again.assert_problem(409, "email_taken")),
        }
        Person::log_in(anyone, email).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_tasks_cost_at_most_what_they_had_in_hand_and_come_back() {
    let system = Datum::up(DATUM, &["--ephemeral", "--tasks", "2"]);
    let people = People::move_in(&system).await;
    for service in ["actor", "document", "auth"] {
        let victim = system.tasks(service).remove(0).process.expect("a running task");
        victim.signal(Signal::SIGKILL);
        // One task carries on alone, and another one takes the place of the dead.
        people.go_on().await;
        eventually("the task is back", async || {
            let tasks = system.tasks(service);
            tasks.iter().all(|task| task.health == "healthy" && task.process.as_ref() != Some(&victim))
        })
        .await;
        let restarts: Vec<_> = system.tasks(service).iter().map(|task| task.restarts).collect();
        assert_eq!(restarts, [1, 0], "{service}");
        people.go_on().await;
    }
    // Each of the dead can take at most one request of each person with it.
    let lost = people.move_out(&system.anyone()).await;
    assert!(lost <= 3 * PEOPLE, "{lost} requests were lost");

    for task in ["auth", "actor", "document"].iter().flat_map(|service| system.tasks(service)) {
        Caller::at(format!("http://127.0.0.1:{}", task.port)).get("/ready").await.assert_status(200);
    }
    assert!(system.stop().status.success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replacing_every_task_loses_no_request() {
    let system = Arc::new(Datum::up(DATUM, &["--ephemeral", "--tasks", "2"]));
    let people = People::move_in(&system).await;
    let before: Vec<_> = processes(&system);
    let (replaced, port) = (system.clone(), system.address().port().to_string());
    let restart = tokio::task::spawn_blocking(move || replaced.run(&["restart", "--port", &port])).await.unwrap();
    assert!(restart.status.success(), "{restart:?}");
    people.go_on().await;
    assert_eq!(people.move_out(&system.anyone()).await, 0, "requests were lost");
    assert!(processes(&system).iter().all(|process| !before.contains(process)), "a task was not replaced");
}

fn processes(system: &Datum) -> Vec<Process> {
    let tasks = ["auth", "actor", "document"].into_iter().flat_map(|service| system.tasks(service));
    tasks.map(|task| task.process.expect("a running task")).collect()
}
