//! Registering, logging in, staying logged in, leaving.

use std::sync::Arc;

use e2e::{PASSWORD, Person, new_email};
use http::Method;
use serde_json::json;
use test_support::{Caller, Reply};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::SYSTEM;

async fn log_in(anyone: &Caller, email: &str, password: &str) -> Reply {
    anyone.post_json("/v1/auth/login", json!({"email": email, "password": password})).await
}

async fn refresh(anyone: &Caller, token: &str) -> Reply {
    anyone.post_json("/v1/auth/refresh", json!({"refresh_token": token})).await
}

fn text(reply: &Reply, name: &str) -> String {
    reply.json()[name].as_str().unwrap_or_else(|| panic!("no `{name}`")).to_owned()
}

#[tokio::test]
async fn from_registration_to_a_new_password() {
    let system = SYSTEM.get();
    let anyone = system.anyone();
    let email = new_email("ada");

    let body = json!({"email": format!("  {} ", email.to_uppercase()), "password": PASSWORD, "display_name": "Ada"});
    let registered = anyone.post_json("/v1/auth/register", body).await;
    registered.assert_status(201);
    let id = text(&registered, "id");
    assert_eq!(text(&registered, "email"), email);
    assert_eq!(registered.header("location"), Some(format!("/v1/actors/{id}").as_str()));
    for secret in [PASSWORD, "argon2", "hash"] {
        assert!(!registered.text().contains(secret), "{secret} in {}", registered.text());
    }
    Person::register(&anyone, &email).await.assert_problem(409, "email_taken");

    anyone.get("/v1/actors/me").await.assert_problem(401, "token_missing");
    let login = log_in(&anyone, &email, PASSWORD).await;
    login.assert_status(200);
    assert_eq!((text(&login, "token_type").as_str(), login.json()["expires_in"].as_u64()), ("Bearer", Some(900)));
    let ada = anyone.bearing(text(&login, "access_token"));
    let me = ada.get("/v1/actors/me").await;
    me.assert_status(200);
    assert_eq!(
        (text(&me, "id"), text(&me, "email"), text(&me, "display_name")),
        (id.clone(), email.clone(), "Ada".into())
    );

    let change = ada.build(Method::PATCH, "/v1/actors/me").header("if-match", me.header("etag").unwrap());
    let changed = ada.request(change.json(&json!({"display_name": "Countess"}))).await;
    changed.assert_status(200);
    let stale = ada.build(Method::PATCH, "/v1/actors/me").header("if-match", me.header("etag").unwrap());
    ada.request(stale.json(&json!({"display_name": "Eve"}))).await.assert_problem(412, "precondition_failed");
    assert_eq!(text(&ada.get(&format!("/v1/actors/{id}")).await, "display_name"), "Countess");

    let second = refresh(&anyone, &text(&login, "refresh_token")).await;
    second.assert_status(200);
    assert_ne!(text(&second, "refresh_token"), text(&login, "refresh_token"));
    let renewed = anyone.bearing(text(&second, "access_token"));
    renewed.get("/v1/actors/me").await.assert_status(200);

    let logout = json!({"refresh_token": text(&second, "refresh_token")});
    anyone.post_json("/v1/auth/logout", &logout).await.assert_status(204);
    anyone.post_json("/v1/auth/logout", &logout).await.assert_status(204);
    refresh(&anyone, &text(&second, "refresh_token")).await.assert_problem(401, "invalid_refresh_token");
    // Access tokens are stateless: they outlive a logout until they expire.
    renewed.get("/v1/actors/me").await.assert_status(200);

    let session = log_in(&anyone, &email, PASSWORD).await;
    let ada = anyone.bearing(text(&session, "access_token"));
    let change = |current: &str| json!({"current_password": current, "new_password": "a wholly new passphrase"});
    ada.post_json("/v1/auth/password", change("not the password")).await.assert_problem(403, "current_password_wrong");
    ada.post_json("/v1/auth/password", change(PASSWORD)).await.assert_status(204);
    refresh(&anyone, &text(&session, "refresh_token")).await.assert_problem(401, "invalid_refresh_token");
    log_in(&anyone, &email, PASSWORD).await.assert_status(401);
    log_in(&anyone, &email, "a wholly new passphrase").await.assert_status(200);
}

#[tokio::test]
async fn an_email_is_the_same_in_any_spelling() {
    let system = SYSTEM.get();
    let anyone = system.anyone();
    let email = new_email("bob");
    Person::register(&anyone, &email.to_uppercase()).await.assert_status(201);
    let bob = Person::log_in(&anyone, &email).await;
    assert_eq!(bob.email, email);
    for spelling in [email.to_uppercase(), format!("\t{email}\n"), email.replace('b', "B")] {
        assert_eq!(Person::log_in(&anyone, &spelling).await.id, bob.id, "{spelling:?}");
        Person::register(&anyone, &spelling).await.assert_problem(409, "email_taken");
    }
}

#[tokio::test]
async fn of_a_hundred_registrations_at_once_exactly_one_succeeds() {
    let system = SYSTEM.get();
    let anyone = system.anyone();
    let email = new_email("everybody");
    let barrier = Arc::new(Barrier::new(100));
    let mut registrations = JoinSet::new();
    for number in 0..100 {
        let (anyone, barrier, email) = (anyone.clone(), barrier.clone(), email.clone());
        registrations.spawn(async move {
            let password = format!("the passphrase of number {number}");
            let body = json!({"email": email, "password": password});
            barrier.wait().await;
            (anyone.post_json("/v1/auth/register", body).await, password)
        });
    }
    let mut winners = Vec::new();
    for (reply, password) in registrations.join_all().await {
        if reply.status == 201 {
            winners.push((text(&reply, "id"), password));
        } else {
            reply.assert_problem(409, "email_taken");
        }
    }
    let [(id, password)] = &winners[..] else { panic!("{} registrations succeeded", winners.len()) };
    let login = log_in(&anyone, &email, password).await;
    login.assert_status(200);
    let me = anyone.bearing(text(&login, "access_token")).get("/v1/actors/me").await;
    assert_eq!(text(&me, "id"), *id);
}

#[tokio::test]
async fn two_tabs_that_refresh_at_once_both_stay_logged_in() {
    let system = SYSTEM.get();
    let anyone = system.anyone();
    let ada = Person::new(&anyone, "tabs").await;
    let barrier = Arc::new(Barrier::new(10));
    let mut tabs = JoinSet::new();
    for _ in 0..10 {
        let (anyone, barrier, token) = (anyone.clone(), barrier.clone(), ada.refresh_token.clone());
        tabs.spawn(async move {
            barrier.wait().await;
            refresh(&anyone, &token).await
        });
    }
    for reply in tabs.join_all().await {
        reply.assert_status(200);
        refresh(&anyone, &text(&reply, "refresh_token")).await.assert_status(200);
    }
}
