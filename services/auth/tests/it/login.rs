//! `POST /v1/auth/login`

use serde_json::json;

use crate::jwks::claims;
use crate::served::{Auth, OTHER_PASSWORD, PASSWORD};

const LOGIN: &str = "/v1/auth/login";

#[tokio::test]
async fn the_right_password_begins_a_session() {
    let auth = Auth::start().await;
    let id = auth.register("ada@example.com", PASSWORD).await.json()["id"].clone();
    let reply = auth.login("ada@example.com", PASSWORD).await;
    reply.assert_status(200);
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    let body = reply.json();
    let members: Vec<_> = body.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(members, ["access_token", "token_type", "expires_in", "refresh_token"]);
    assert_eq!((&body["token_type"], &body["expires_in"]), (&json!("Bearer"), &json!(900)));
    assert!(body["refresh_token"].as_str().unwrap().starts_with("dr_"));

    let now = auth.now().unix_timestamp();
    let mut claims = claims(body["access_token"].as_str().unwrap());
    assert!(claims["jti"].take().is_string());
    assert_eq!(
        claims,
        json!({
            "iss": "https://datum.test", "sub": id, "aud": "datum", "client_id": "datum", "iat": now, "nbf": now,
            "exp": now + 900, "jti": null, "token_use": "access", "scope": "profile documents", "email": "ada@example.com",
        })
    );
}

#[tokio::test]
async fn a_display_name_and_granted_scopes_travel_in_the_token() {
    let auth = Auth::start().await;
    let body = json!({"email": "ada@example.com", "password": PASSWORD, "display_name": "Ada"});
    auth.app.anonymous().post_json("/v1/auth/register", body).await.assert_status(201);
    auth.admin.execute("UPDATE auth.users SET scopes = '{actors:read}'", &[]).await.unwrap();
    let tokens = auth.session("ada@example.com", PASSWORD).await;
    let refreshed = auth.refresh(&tokens.refresh).await.json();
    for access in [tokens.access.as_str(), refreshed["access_token"].as_str().unwrap()] {
        let claims = claims(access);
        assert_eq!(claims["name"], "Ada");
        assert_eq!(claims["scope"], "profile documents actors:read");
    }
}

#[tokio::test]
async fn whatever_is_wrong_the_answer_is_the_same() {
    let auth = Auth::start().await;
    auth.register("ada@example.com", PASSWORD).await.assert_status(201);
    auth.register("locked@example.com", PASSWORD).await.assert_status(201);
    auth.lock_account("locked@example.com").await;
    let too_long = "x".repeat(1_025);
    let mut answers = Vec::new();
    for (email, password) in [
        ("ada@example.com", OTHER_PASSWORD),
        ("ada@example.com", ""),
        ("nobody@example.com", PASSWORD),
        ("locked@example.com", PASSWORD),
        ("locked@example.com", OTHER_PASSWORD),
        ("ada@example.com", &too_long),
        ("nobody@example.com", &too_long),
    ] {
        let reply = auth.login(email, password).await;
        let mut body = reply.assert_problem(401, "invalid_credentials");
        body["request_id"].take();
        let mut headers = reply.headers.clone();
        for own in ["x-request-id", "server-timing", "date", "content-length"] {
            headers.remove(own);
        }
        answers.push((body, format!("{headers:?}")));
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!(auth.count("SELECT count(*) FROM auth.refresh_families").await, 0);
}

#[tokio::test]
async fn unknown_accounts_cost_the_same_hash_as_wrong_passwords() {
    let auth = Auth::start().await;
    auth.register("ada@example.com", PASSWORD).await.assert_status(201);
    auth.register("locked@example.com", PASSWORD).await.assert_status(201);
    auth.lock_account("locked@example.com").await;
    for email in ["ada@example.com", "nobody@example.com", "locked@example.com"] {
        let before = auth.hasher.counters().started();
        let reply = auth.login(email, OTHER_PASSWORD).await;
        reply.assert_problem(401, "invalid_credentials");
        assert_eq!(auth.hasher.counters().started() - before, 1, "{email}");
        let timing = reply.header("server-timing").unwrap();
        for stage in ["admission;", "pool;", "db;", "hash;"] {
            assert!(timing.contains(stage), "no {stage} in {timing} for {email}");
        }
    }
}

#[tokio::test]
async fn a_password_over_the_cap_is_wrong_without_being_hashed() {
    let auth = Auth::start().await;
    auth.register("ada@example.com", PASSWORD).await.assert_status(201);
    let before = auth.hasher.counters().started();
    for _ in 0..20 {
        auth.login("ada@example.com", &"x".repeat(1_025)).await.assert_problem(401, "invalid_credentials");
    }
    assert_eq!(auth.hasher.counters().started(), before);
    auth.session("ada@example.com", PASSWORD).await;
}

#[tokio::test]
async fn login_checks_no_rules_of_passwords() {
    let auth = Auth::start().await;
    auth.register("ada@example.com", PASSWORD).await.assert_status(201);
    // Set when rules were laxer: the hash of `abc`, too short to be registered today.
    let lax = auth.hasher.hash(auth::password::Password::attempt("abc".to_owned()).unwrap()).await.unwrap();
    auth.admin.execute("UPDATE auth.users SET password_hash = $1", &[&lax.as_str()]).await.unwrap();
    auth.session("ada@example.com", "abc").await;
}

#[tokio::test]
async fn fields_are_checked_as_everywhere() {
    let auth = Auth::start().await;
    let caller = auth.app.anonymous();
    caller.post_json(LOGIN, json!({})).await.assert_invalid(&[("/email", "missing"), ("/password", "missing")]);
    let body = json!({"email": "a\u{0}b@example.com", "password": 5, "remember": true});
    caller.post_json(LOGIN, body).await.assert_invalid(&[
        ("/email", "invalid_email"),
        ("/password", "wrong_type"),
        ("/remember", "unknown_field"),
    ]);
    auth.login("ada@example.com", "nul \u{0} in it").await.assert_problem(401, "invalid_credentials");
}

#[tokio::test]
async fn a_hash_of_another_cost_works_and_is_replaced_once() {
    let auth = Auth::start_with(&[("AUTH_ARGON2_MEMORY_KIB", "128")]).await;
    auth.register("ada@example.com", PASSWORD).await.assert_status(201);
    let old = auth.stored_hash().await;
    assert!(old.contains("m=128,t=1,p=1"));

    let today = auth.another_task_with(&[("AUTH_ARGON2_MEMORY_KIB", "64"), ("AUTH_ARGON2_ITERATIONS", "2")]).await;
    today.login("ada@example.com", OTHER_PASSWORD).await.assert_problem(401, "invalid_credentials");
    assert_eq!(auth.stored_hash().await, old, "a wrong password replaces nothing");
    let session = today.session("ada@example.com", PASSWORD).await;
    let new = auth.stored_hash().await;
    assert!(new.contains("m=64,t=2,p=1"), "{new}");
    today.refresh(&session.refresh).await.assert_status(200);
    today.session("ada@example.com", PASSWORD).await;
    assert_eq!(auth.stored_hash().await, new, "it is replaced only once");
}

#[tokio::test]
async fn a_stored_hash_that_would_cost_gigabytes_is_never_computed() {
    let auth = Auth::start().await;
    auth.register("ada@example.com", PASSWORD).await.assert_status(201);
    for hash in [
        "$argon2id$v=19$m=4194304,t=50,p=64$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
        "$argon2id$v=19$m=64,t=4294967295,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
        "$2b$12$abcdefghijklmnopqrstuuJ1Q0Q1Q0Q1Q0Q1Q0Q1Q0Q1Q0Q1Q0Q1Q",
        "$",
    ] {
        auth.admin.execute("UPDATE auth.users SET password_hash = $1", &[&hash]).await.unwrap();
        auth.admin.execute("DELETE FROM auth.login_failures", &[]).await.unwrap();
        let before = auth.hasher.counters().started();
        auth.login("ada@example.com", PASSWORD).await.assert_problem(401, "invalid_credentials");
        assert_eq!(auth.hasher.counters().started() - before, 1, "it costs what any login costs");
    }
    assert!(auth.hasher.counters().memory_kib() <= 64 * 256, "no thread holds more than one ordinary hash needs");
}

#[tokio::test]
async fn each_login_is_a_session_of_its_own() {
    let auth = Auth::start().await;
    let one = auth.sign_up("ada@example.com").await;
    let two = auth.session("ada@example.com", PASSWORD).await;
    assert_ne!(one.refresh, two.refresh);
    auth.logout(&one.refresh).await.assert_status(204);
    auth.refresh(&one.refresh).await.assert_problem(401, "invalid_refresh_token");
    auth.refresh(&two.refresh).await.assert_status(200);
}
