//! Every query function against real PostgreSQL: what the routes' tests do not see.

use std::time::Duration;

use auth::email::Email;
use auth::hashing::PasswordHash;
use auth::queries::sessions::{self, NewSession, Verdict};
use auth::queries::throttle::{self, Attempt};
use auth::queries::users::{self, NewUser};
use auth::refresh_token::TokenHash;
use auth::throttle::{MAX_DELAY, THRESHOLD, ThrottleKey, WINDOW};
use service_kit::database::Connection;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::served::Auth;

const GRACE: Duration = Duration::from_secs(10);

fn email(text: &str) -> Email {
    Email::parse(text.to_owned()).expect("valid")
}

fn hash(text: &str) -> PasswordHash {
    PasswordHash::from_stored(format!("${text}"))
}

fn key(text: &str) -> ThrottleKey {
    ThrottleKey::new(text, [192, 0, 2, 1].into())
}

fn token(byte: u8) -> TokenHash {
    [byte; 32]
}

async fn insert_user(connection: &mut Connection, id: u128, address: &str, now: OffsetDateTime) -> Uuid {
    let id = Uuid::from_u128(id);
    let (email, password_hash) = (email(address), hash("verified"));
    let user = NewUser { id, email: &email, password_hash: &password_hash, display_name: None, created_at: now };
    users::insert(connection, &user).await.expect("inserted");
    id
}

fn session(user_id: Uuid, verified: &PasswordHash, first: TokenHash, now: OffsetDateTime) -> NewSession<'_> {
    NewSession {
        user_id,
        verified,
        upgrade: None,
        family_id: Uuid::new_v4(),
        token_hash: first,
        now,
        expires_at: now + Duration::from_secs(1_000),
        failures: None,
    }
}

#[tokio::test]
async fn a_user_is_found_by_email_and_id_as_inserted() {
    let auth = Auth::start().await;
    let mut connection = auth.pool.acquire().await.unwrap();
    let (ada, stored) = (email("ada@example.com"), hash("verified"));
    assert!(!users::exists(&mut connection, &ada).await.unwrap());
    assert!(users::find_by_email(&mut connection, &ada).await.unwrap().is_none());
    let id = Uuid::from_u128(7);
    assert!(users::find_by_id(&mut connection, id).await.unwrap().is_none());

    let new = NewUser { id, email: &ada, password_hash: &stored, display_name: Some("Ada"), created_at: auth.now() };
    assert_eq!(users::insert(&mut connection, &new).await.unwrap(), auth.now());
    assert!(users::exists(&mut connection, &ada).await.unwrap());
    for found in [
        users::find_by_email(&mut connection, &ada).await.unwrap().expect("found"),
        users::find_by_id(&mut connection, id).await.unwrap().expect("found"),
    ] {
        assert_eq!(
            (found.id, found.email.as_str(), found.display_name.as_deref()),
            (id, "ada@example.com", Some("Ada"))
        );
        assert_eq!((found.password_hash, found.scopes, found.disabled), (stored.clone(), Vec::new(), false));
    }
    auth.lock_account("ada@example.com").await;
    assert!(users::find_by_id(&mut connection, id).await.unwrap().expect("found").disabled);
}

#[tokio::test]
async fn a_second_user_of_an_email_violates_the_constraint_that_is_mapped() {
    let auth = Auth::start().await;
    let mut connection = auth.pool.acquire().await.unwrap();
    insert_user(&mut connection, 1, "ada@example.com", auth.now()).await;
    let (ada, stored) = (email("ada@example.com"), hash("x"));
    let again = NewUser {
        id: Uuid::from_u128(2),
        email: &ada,
        password_hash: &stored,
        display_name: None,
        created_at: auth.now(),
    };
    let error = users::insert(&mut connection, &again).await.expect_err("taken");
    assert!(error.violates(users::EMAIL_KEY), "{error:?}");
}

#[tokio::test]
async fn attempts_are_counted_refused_and_admitted_in_turn() {
    let auth = Auth::start().await;
    let mut connection = auth.pool.acquire().await.unwrap();
    let (key, start) = (key("ada"), auth.now());
    for n in 0..THRESHOLD {
        let attempt =
            throttle::admit(&mut connection, &key, None, start + Duration::from_secs(n.unsigned_abs().into())).await;
        assert!(matches!(attempt.unwrap(), Attempt::Admitted(None)));
    }
    let mut now = start + Duration::from_secs(10);
    let mut pauses = Vec::new();
    for _ in 0..9 {
        let Attempt::Refused { until } = throttle::admit(&mut connection, &key, None, now).await.unwrap() else {
            panic!("admitted")
        };
        pauses.push((until - now).whole_seconds());
        let early = until - Duration::from_millis(1);
        let refused = throttle::admit(&mut connection, &key, None, early).await.unwrap();
        assert!(matches!(refused, Attempt::Refused { until: same } if same == until));
        now = until;
        assert!(matches!(throttle::admit(&mut connection, &key, None, now).await.unwrap(), Attempt::Admitted(None)));
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    assert_eq!(MAX_DELAY.as_secs(), 60);
    let later = start + WINDOW;
    assert!(matches!(throttle::admit(&mut connection, &key, None, later).await.unwrap(), Attempt::Admitted(None)));
    assert_eq!(auth.count("SELECT failures::bigint FROM auth.login_failures").await, 1);
}

#[tokio::test]
async fn any_number_of_failures_can_be_counted() {
    let auth = Auth::start().await;
    let mut connection = auth.pool.acquire().await.unwrap();
    let (key, now) = (key("ada"), auth.now());
    throttle::admit(&mut connection, &key, None, now).await.unwrap();
    auth.admin.execute("UPDATE auth.login_failures SET failures = 1000000", &[]).await.unwrap();
    let refused = throttle::admit(&mut connection, &key, None, now).await.unwrap();
    assert!(matches!(refused, Attempt::Refused { until } if until == now + MAX_DELAY));
}

#[tokio::test]
async fn an_admitted_attempt_brings_the_account_along() {
    let auth = Auth::start().await;
    let mut connection = auth.pool.acquire().await.unwrap();
    let id = insert_user(&mut connection, 7, "ada@example.com", auth.now()).await;
    let (key, now) = (key("ada"), auth.now());
    let admitted = throttle::admit(&mut connection, &key, Some(&email("ada@example.com")), now).await.unwrap();
    assert!(matches!(admitted, Attempt::Admitted(Some(user)) if user.id == id));
    let admitted = throttle::admit(&mut connection, &key, Some(&email("bob@example.com")), now).await.unwrap();
    assert!(matches!(admitted, Attempt::Admitted(None)));
}

#[tokio::test]
async fn an_attempt_given_back_is_admitted_again() {
    let auth = Auth::start().await;
    let mut connection = auth.pool.acquire().await.unwrap();
    let (key, mut now) = (key("ada"), auth.now());
    throttle::give_back(&mut connection, &key, now).await.expect("nothing to give back is fine");
    for _ in 0..3 * THRESHOLD {
        assert!(matches!(throttle::admit(&mut connection, &key, None, now).await.unwrap(), Attempt::Admitted(_)));
        throttle::give_back(&mut connection, &key, now).await.unwrap();
    }
    // The same after a pause.
    for _ in 0..THRESHOLD {
        throttle::admit(&mut connection, &key, None, now).await.unwrap();
    }
    let Attempt::Refused { until } = throttle::admit(&mut connection, &key, None, now).await.unwrap() else {
        panic!("admitted")
    };
    now = until;
    for _ in 0..3 {
        assert!(matches!(throttle::admit(&mut connection, &key, None, now).await.unwrap(), Attempt::Admitted(_)));
        throttle::give_back(&mut connection, &key, now).await.unwrap();
    }
}

#[tokio::test]
async fn only_windows_that_have_passed_are_removed() {
    let auth = Auth::start().await;
    let mut connection = auth.pool.acquire().await.unwrap();
    let now = auth.now();
    for (name, start) in [("old", now - WINDOW), ("young", now - WINDOW + Duration::from_secs(1))] {
        throttle::admit(&mut connection, &key(name), None, start).await.unwrap();
    }
    assert_eq!(throttle::delete_passed(&mut connection, now, 10).await.unwrap(), 1);
    assert_eq!(throttle::delete_passed(&mut connection, now, 10).await.unwrap(), 0);
    assert_eq!(auth.count("SELECT count(*) FROM auth.login_failures").await, 1);
}

#[tokio::test]
async fn a_session_begins_only_for_the_user_that_was_verified() {
    let auth = Auth::start().await;
    let mut connection = auth.pool.acquire().await.unwrap();
    let (now, verified, other) = (auth.now(), hash("verified"), hash("other"));
    let id = insert_user(&mut connection, 7, "ada@example.com", now).await;
    throttle::admit(&mut connection, &key("ada"), None, now).await.unwrap();
    let failures = Some(key("ada"));
    for refused in [
        NewSession { failures, ..session(id, &other, token(1), now) },
        NewSession { failures, ..session(Uuid::from_u128(8), &verified, token(1), now) },
        NewSession { failures, upgrade: Some(&verified), ..session(id, &other, token(1), now) },
    ] {
        assert!(!sessions::start(&mut connection, &refused).await.unwrap());
    }
    assert_eq!(auth.count("SELECT count(*) FROM auth.refresh_families").await, 0);
    assert_eq!(auth.count("SELECT count(*) FROM auth.login_failures").await, 1, "nothing is forgotten");

    let accepted = NewSession { failures, ..session(id, &verified, token(1), now) };
    assert!(sessions::start(&mut connection, &accepted).await.unwrap());
    assert_eq!(auth.count("SELECT count(*) FROM auth.login_failures").await, 0);
    auth.lock_account("ada@example.com").await;
    assert!(!sessions::start(&mut connection, &session(id, &verified, token(2), now)).await.unwrap());
}

#[tokio::test]
async fn a_hash_is_upgraded_as_the_session_begins() {
    let auth = Auth::start().await;
    let mut connection = auth.pool.acquire().await.unwrap();
    let (now, verified, upgrade) = (auth.now(), hash("verified"), hash("upgraded"));
    let id = insert_user(&mut connection, 7, "ada@example.com", now).await;
    throttle::admit(&mut connection, &key("ada"), None, now).await.unwrap();
    let new =
        NewSession { upgrade: Some(&upgrade), failures: Some(key("ada")), ..session(id, &verified, token(1), now) };
    assert!(sessions::start(&mut connection, &new).await.unwrap());
    assert_eq!(auth.stored_hash().await, upgrade.as_str());
    assert_eq!(auth.count("SELECT count(*) FROM auth.login_failures").await, 0);
    assert_eq!(auth.count("SELECT count(*) FROM auth.refresh_tokens").await, 1);
    assert!(!sessions::start(&mut connection, &session(id, &verified, token(2), now)).await.unwrap());
}

#[tokio::test]
async fn a_token_is_judged_by_its_use_and_its_family() {
    let auth = Auth::start().await;
    let mut connection = auth.pool.acquire().await.unwrap();
    let (now, verified) = (auth.now(), hash("verified"));
    let id = insert_user(&mut connection, 7, "ada@example.com", now).await;
    assert!(sessions::rotate(&mut connection, &token(1), &token(9), now, GRACE).await.unwrap().is_none());
    let start = async |first: u8| {
        let new = session(id, &verified, token(first), now);
        assert!(sessions::start(&mut auth.pool.acquire().await.unwrap(), &new).await.unwrap());
        new.family_id
    };
    let (one, two) = (start(1).await, start(2).await);

    let second = Duration::from_secs(1);
    for (used, child, at, expected) in [
        (1, 11, now, Verdict::Rotated),
        (1, 12, now + GRACE - second, Verdict::Grace),
        (11, 13, now + GRACE, Verdict::Rotated),
        (1, 14, now + GRACE, Verdict::Reused),
        (1, 15, now, Verdict::Revoked),
        (12, 16, now, Verdict::Revoked),
        (13, 17, now, Verdict::Revoked),
        (2, 21, now + Duration::from_secs(999), Verdict::Rotated),
        (21, 22, now + Duration::from_secs(1_000), Verdict::Expired),
    ] {
        let rotation =
            sessions::rotate(&mut connection, &token(used), &token(child), at, GRACE).await.unwrap().unwrap();
        assert_eq!(rotation.verdict, expected, "token {used}");
        assert_eq!((rotation.user_id, rotation.email.as_str()), (id, "ada@example.com"));
        assert_eq!(rotation.family_id, if used == 2 || used == 21 { two } else { one });
        let children =
            auth.admin.query("SELECT FROM auth.refresh_tokens WHERE token_hash = $1", &[&&token(child)[..]]).await;
        assert_eq!(children.unwrap().len(), usize::from(expected.is_good()), "child of token {used}");
    }
    auth.admin.execute("DELETE FROM auth.users", &[]).await.unwrap();
    let gone = sessions::rotate(&mut connection, &token(21), &token(23), now, GRACE).await.unwrap().unwrap();
    assert_eq!(gone.verdict, Verdict::UserUnavailable);
}

#[tokio::test]
async fn ending_a_family_is_idempotent_and_keeps_its_first_reason() {
    let auth = Auth::start().await;
    let mut connection = auth.pool.acquire().await.unwrap();
    let (now, verified) = (auth.now(), hash("verified"));
    let id = insert_user(&mut connection, 7, "ada@example.com", now).await;
    assert!(!sessions::end_family(&mut connection, &token(1), now).await.unwrap());
    assert!(sessions::start(&mut connection, &session(id, &verified, token(1), now)).await.unwrap());
    for seconds in [0, 5] {
        assert!(sessions::end_family(&mut connection, &token(1), now + Duration::from_secs(seconds)).await.unwrap());
    }
    let row = auth.admin.query_one("SELECT revoked_at, revoke_reason FROM auth.refresh_families", &[]).await.unwrap();
    assert_eq!((row.get::<_, OffsetDateTime>(0), row.get::<_, &str>(1)), (now, "logout"));
}

#[tokio::test]
async fn a_password_is_changed_only_if_it_is_still_the_verified_one() {
    let auth = Auth::start().await;
    let mut connection = auth.pool.acquire().await.unwrap();
    let (now, verified, new) = (auth.now(), hash("verified"), hash("new"));
    let id = insert_user(&mut connection, 7, "ada@example.com", now).await;
    let bob = insert_user(&mut connection, 8, "bob@example.com", now).await;
    for (user, first) in [(id, 1), (id, 2), (bob, 3)] {
        assert!(sessions::start(&mut connection, &session(user, &verified, token(first), now)).await.unwrap());
    }
    throttle::admit(&mut connection, &key("ada"), None, now).await.unwrap();
    let failures = Some(&key("ada"));

    assert!(!sessions::change_password(&mut connection, id, &hash("other"), &new, failures, now).await.unwrap());
    assert!(!sessions::change_password(&mut connection, Uuid::nil(), &verified, &new, failures, now).await.unwrap());
    assert_eq!(auth.count("SELECT count(*) FROM auth.refresh_families WHERE revoked_at IS NULL").await, 3);
    assert_eq!(auth.count("SELECT count(*) FROM auth.login_failures").await, 1);

    assert!(sessions::change_password(&mut connection, id, &verified, &new, failures, now).await.unwrap());
    assert_eq!(auth.count("SELECT count(*) FROM auth.refresh_families WHERE revoked_at IS NULL").await, 1);
    assert_eq!(auth.count("SELECT count(*) FROM auth.login_failures").await, 0);
    assert!(!sessions::change_password(&mut connection, id, &verified, &new, failures, now).await.unwrap());
    auth.lock_account("ada@example.com").await;
    assert!(!sessions::change_password(&mut connection, id, &new, &verified, failures, now).await.unwrap());
}

#[tokio::test]
async fn expired_rows_are_removed_in_batches() {
    let auth = Auth::start().await;
    let mut connection = auth.pool.acquire().await.unwrap();
    let (now, verified) = (auth.now(), hash("verified"));
    let id = insert_user(&mut connection, 7, "ada@example.com", now).await;
    for first in 1..=3 {
        assert!(sessions::start(&mut connection, &session(id, &verified, token(first), now)).await.unwrap());
    }
    let end = now + Duration::from_secs(1_000);
    assert_eq!(sessions::delete_expired(&mut connection, end, 10).await.unwrap(), 0, "its last instant is not over");
    let after = end + Duration::from_secs(1);
    for expected in [4, 2, 0] {
        assert_eq!(sessions::delete_expired(&mut connection, after, 2).await.unwrap(), expected);
    }
}

#[tokio::test]
async fn names_and_scopes_that_the_code_would_not_write_are_refused_by_the_table() {
    let auth = Auth::start().await;
    let insert = async |column: &str, value: &str| {
        let sql = format!(
            "INSERT INTO auth.users (id, email, password_hash, created_at) VALUES (gen_random_uuid(), 'a@b.de', '$x', now());
             UPDATE auth.users SET {column} = {value}; DELETE FROM auth.users"
        );
        auth.admin.batch_execute(&sql).await
    };
    for (column, value, constraint) in [
        ("email", "''", "users_email_length"),
        ("password_hash", "'plain'", "users_password_hash_is_phc"),
        ("display_name", "''", "users_display_name_length"),
        ("scopes", "'{\"two words\",\"\"}'", "users_scopes_are_words"),
        ("scopes", "'{\"quo\\\"te\"}'", "users_scopes_are_words"),
    ] {
        let error = insert(column, value).await.expect_err(constraint);
        assert_eq!(error.as_db_error().and_then(|error| error.constraint()), Some(constraint), "{column} = {value}");
    }
    insert("scopes", "'{actors:read,x}'").await.expect("scopes are words");
}
