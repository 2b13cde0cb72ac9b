//! The dataset in a real database, and the services that read it.

use auth::Config;
use auth::hashing::{Hasher, HashingConfig};
use auth::keys::generate_pem;
use envelope::result::Dataset;
use loadgen::dataset::{HashCost, PopulateError, PopulateOptions, Populated, Progress, identity, populate, user_id};
use serde_json::json;
use service_kit::clock::SystemClock;
use service_kit::config::{self, Environment};
use test_support::{App, TestDatabase};
use tokio_util::sync::CancellationToken;

/// Cheap, so that the debug build's hashing does not take the time of the tests.
const CHEAP: HashCost = HashCost { memory_kib: 64, iterations: 1, parallelism: 1 };

fn options(database: &TestDatabase, users: u64) -> PopulateOptions {
    let dataset = Dataset { users, seed: 5, distinct_hashes: 3 };
    PopulateOptions { database_url: database.admin_url(), dataset, cost: CHEAP }
}

async fn run(options: &PopulateOptions) -> Result<Populated, PopulateError> {
    populate(options, |_| {}, &CancellationToken::new()).await
}

async fn counts(admin: &tokio_postgres::Client) -> (i64, i64) {
    let row = admin.query_one("SELECT (SELECT count(*) FROM auth.users), (SELECT count(*) FROM actor.actors)", &[]);
    let row = row.await.unwrap();
    (row.get(0), row.get(1))
}

async fn auth_on(database: &TestDatabase) -> App {
    let (url, key) = (database.url("auth"), generate_pem().unwrap());
    let environment = Environment::from_pairs([
        ("DATABASE_URL", url.as_str()),
        ("AUTH_ISSUER", "https://datum.test"),
        ("AUTH_SIGNING_KEYS", key.as_str()),
        ("AUTH_ARGON2_MEMORY_KIB", "64"),
        ("AUTH_ARGON2_ITERATIONS", "1"),
        ("AUTH_HASH_DEADLINE_MS", "60000"),
    ]);
    let config = config::load(&environment, Config::read).unwrap();
    let hasher = Hasher::start(&config::load(&environment, HashingConfig::read).unwrap()).unwrap();
    App::serve(auth::assemble(config, hasher, std::sync::Arc::new(SystemClock)).unwrap()).await
}

#[test]
fn hashes_cost_what_the_auth_service_wants_by_default() {
    let wanted = config::load(&Environment::from_pairs([("X", "y")]), HashingConfig::read).unwrap().cost;
    let cost = HashCost::default();
    assert_eq!(
        (cost.memory_kib, cost.iterations, cost.parallelism),
        (wanted.memory_kib, wanted.iterations, wanted.parallelism)
    );
}

#[tokio::test]
async fn populated_users_log_in_with_the_hash_that_is_there_and_are_known_as_actors() {
    let database = TestDatabase::create().await;
    let options = options(&database, 50);
    assert_eq!(run(&options).await.unwrap(), Populated { there: 50, written: 50, interrupted: false });
    let auth = auth_on(&database).await;
    let admin = database.admin().await;
    let stored = async |n: u64| -> String {
        let id = user_id(5, n);
        admin.query_one("SELECT password_hash FROM auth.users WHERE id = $1", &[&id]).await.unwrap().get(0)
    };
    for n in [0, 1, 2, 3, 49] {
        let who = identity(&options.dataset, n);
        let before = stored(n).await;
        let login = json!({"email": who.email, "password": who.password});
        let tokens = auth.anonymous().post_json("/v1/auth/login", login).await;
        tokens.assert_status(200);
        assert_eq!(stored(n).await, before, "it is what the service would have made: nothing to replace");
        let wrong = json!({"email": who.email, "password": identity(&options.dataset, n + 1).password});
        auth.anonymous().post_json("/v1/auth/login", wrong).await.assert_status(401);
    }
    let hashes: i64 =
        admin.query_one("SELECT count(DISTINCT password_hash) FROM auth.users", &[]).await.unwrap().get(0);
    assert_eq!(hashes, 3);
    // As the actor service reads them.
    let pairs = "SELECT count(*) FROM auth.users u JOIN actor.actors a ON (a.id, a.email) = (u.id, u.email)
                  WHERE a.email_issued_at = u.created_at AND a.revision = 1 AND a.display_name IS NULL";
    let pairs: i64 = admin.query_one(pairs, &[]).await.unwrap().get(0);
    assert_eq!(pairs, 50);
}

#[tokio::test]
async fn a_second_call_writes_nothing_and_a_larger_one_the_rest() {
    let database = TestDatabase::create().await;
    let admin = database.admin().await;
    run(&options(&database, 30)).await.unwrap();
    assert_eq!(run(&options(&database, 30)).await.unwrap().written, 0);
    assert_eq!(run(&options(&database, 70)).await.unwrap().written, 40);
    assert_eq!(counts(&admin).await, (70, 70));
    assert_eq!(run(&options(&database, 10)).await.unwrap(), Populated { there: 10, written: 0, interrupted: false });
    assert_eq!(counts(&admin).await, (70, 70), "nobody is removed");
}

#[tokio::test]
async fn what_an_interruption_left_is_made_whole() {
    let database = TestDatabase::create().await;
    let admin = database.admin().await;
    // More than one batch, stopped after the first.
    let (options, stop) = (options(&database, 45_000), CancellationToken::new());
    let stopping = |progress| {
        if matches!(progress, Progress::Users { .. }) {
            stop.cancel();
        }
    };
    let first = populate(&options, stopping, &stop).await.unwrap();
    assert!(first.interrupted && first.there < 45_000 && first.there == first.written, "{first:?}");
    // And rows went missing here and there.
    admin.batch_execute("DELETE FROM actor.actors WHERE email LIKE 'user-00000001_.%'").await.unwrap();
    admin.batch_execute("DELETE FROM auth.users WHERE email LIKE 'user-00000002_.%'").await.unwrap();
    let mut seen = Vec::new();
    let second = populate(&options, |progress| seen.push(progress), &CancellationToken::new()).await.unwrap();
    assert_eq!((second.there, second.interrupted), (45_000, false));
    assert_eq!(counts(&admin).await, (45_000, 45_000));
    let last = Progress::Users { done: 45_000, of: 45_000, written: second.written };
    assert_eq!(seen.last(), Some(&last));
    assert!(seen.starts_with(&[Progress::Hashes { done: 1, of: 3 }]), "{seen:?}");
}

#[tokio::test]
async fn other_passwords_for_the_same_users_are_refused() {
    let database = TestDatabase::create().await;
    run(&options(&database, 20)).await.unwrap();
    let mut other = options(&database, 20);
    other.dataset.distinct_hashes = 4;
    assert!(matches!(run(&other).await, Err(PopulateError::OtherPool { seed: 5, hashes: 4 })));
    other.dataset.seed = 6;
    assert_eq!(run(&other).await.unwrap().written, 20, "another seed is other users");
}

#[tokio::test]
async fn an_address_that_somebody_else_has_is_an_error_and_nobody_is_overwritten() {
    let database = TestDatabase::create().await;
    let admin = database.admin().await;
    let taken = identity(&options(&database, 20).dataset, 7).email;
    let insert =
        "INSERT INTO auth.users (id, email, password_hash, created_at) VALUES (gen_random_uuid(), $1, '$x', now())";
    admin.execute(insert, &[&taken]).await.unwrap();
    let refused = run(&options(&database, 20)).await;
    assert!(matches!(refused, Err(PopulateError::Taken { from: 0, until: 19, missing: 1 })), "{refused:?}");
    assert_eq!(counts(&admin).await, (20, 20), "the others are there; and whose address it is");
    let hash: String =
        admin.query_one("SELECT password_hash FROM auth.users WHERE email = $1", &[&taken]).await.unwrap().get(0);
    assert_eq!(hash, "$x");
}

#[tokio::test]
async fn numbers_that_make_no_sense_are_refused_before_anything_is_connected() {
    let nowhere = |users, distinct_hashes| PopulateOptions {
        database_url: "postgres://127.0.0.1:1/none".to_owned(),
        dataset: Dataset { users, seed: 1, distinct_hashes },
        cost: CHEAP,
    };
    for (users, hashes) in [(0, 1), (1, 0), (2_000_000_000, 1)] {
        assert!(matches!(run(&nowhere(users, hashes)).await, Err(PopulateError::Options(_))));
    }
    assert!(matches!(run(&nowhere(1, 1)).await, Err(PopulateError::Database(_))));
}
