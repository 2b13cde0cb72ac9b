//! The row that is made when a person is first seen, and what later tokens change of it.

use serde_json::json;
use uuid::Uuid;

use crate::served::Actors;

#[tokio::test]
async fn the_second_request_finds_the_row_and_writes_nothing() {
    let actors = Actors::start().await;
    let caller = actors.app.as_user(&actors.user("ada@example.com"));
    let first = caller.get("/v1/actors/me").await.json();
    let version = actors.row_version().await;
    actors.advance_seconds(60);
    assert_eq!(caller.get("/v1/actors/me").await.json(), first);
    assert_eq!(actors.row_version().await, version, "the row was written again");
}

#[tokio::test]
async fn fifty_first_sights_at_once_make_one_row() {
    let actors = Actors::start().await;
    let caller = actors.app.as_user(&actors.user("ada@example.com"));
    let barrier = std::sync::Arc::new(tokio::sync::Barrier::new(50));
    let mut requests = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let (caller, barrier) = (caller.clone(), barrier.clone());
        requests.spawn(async move {
            barrier.wait().await;
            caller.get("/v1/actors/me").await
        });
    }
    let replies = requests.join_all().await;
    for reply in &replies {
        reply.assert_status(200);
        assert_eq!(reply.json(), replies[0].json());
    }
    assert_eq!(actors.count().await, 1);
}

#[tokio::test]
async fn the_name_claim_is_the_first_display_name_and_no_later_one() {
    let actors = Actors::start().await;
    let id = Uuid::from_u128(1);
    let named = |name: &str| actors.app.as_bearer(actors.token(&json!({"sub": id, "name": name})));
    let display_name =
        async |caller: test_support::Caller| caller.get("/v1/actors/me").await.json()["display_name"].clone();
    assert_eq!(display_name(named("  Ada Lovelace ")).await, "Ada Lovelace");
    assert_eq!(display_name(named("Countess")).await, "Ada Lovelace");
    named("Countess").patch_json("/v1/actors/me", json!({"display_name": null})).await.assert_status(200);
    assert_eq!(display_name(named("Countess")).await, json!(null), "a cleared name stays cleared");
}

#[tokio::test]
async fn a_claim_that_cannot_be_stored_is_left_out() {
    let actors = Actors::start().await;
    let long_email = format!("{}@example.com", "a".repeat(250));
    for (name, email) in
        [("\0", "a\0@example.com"), ("\u{202e}adA", ""), (&"x".repeat(101), &long_email), ("  ", "a\nb@example.com")]
    {
        let token = actors.token(&json!({"sub": Uuid::new_v4(), "name": name, "email": email}));
        let reply = actors.app.as_bearer(token).get("/v1/actors/me").await;
        reply.assert_status(200);
        assert_eq!(reply.json()["display_name"], json!(null), "{name:?}");
        assert_eq!(reply.json()["email"], json!(null), "{email:?}");
    }
}

#[tokio::test]
async fn an_email_that_no_token_has_stated_is_null_until_one_does() {
    let actors = Actors::start().await;
    let id = Uuid::from_u128(1);
    let without = actors.app.as_bearer(actors.token(&json!({"sub": id, "email": null})));
    assert_eq!(without.get("/v1/actors/me").await.json()["email"], json!(null));
    let with = actors.app.as_bearer(actors.token(&json!({"sub": id, "email": "ada@example.com"})));
    let reply = with.get("/v1/actors/me").await;
    assert_eq!(reply.json()["email"], "ada@example.com");
    assert_eq!(reply.header("etag"), Some(format!("\"{}.2\"", id.simple()).as_str()));
    assert_eq!(
        without.get("/v1/actors/me").await.json()["email"],
        "ada@example.com",
        "a token without one takes none away"
    );
}

#[tokio::test]
async fn the_newest_token_knows_the_email() {
    let actors = Actors::start().await;
    let id = Uuid::from_u128(1);
    let issued = |email: &str| actors.app.as_bearer(actors.token(&json!({"sub": id, "email": email})));
    let email = async |caller: &test_support::Caller| caller.get("/v1/actors/me").await.json()["email"].clone();

    let before = issued("ada@example.com");
    assert_eq!(email(&before).await, "ada@example.com");
    actors.advance_seconds(60);
    let after = issued("lovelace@example.com");
    assert_eq!(email(&after).await, "lovelace@example.com");
    assert_eq!(email(&before).await, "lovelace@example.com", "the older token is still valid, but knows less");

    let reply = after.get("/v1/actors/me").await;
    assert_eq!(reply.json()["updated_at"], json!(actors.now_rfc3339()));
    assert_ne!(reply.json()["created_at"], reply.json()["updated_at"]);
    assert_eq!(reply.header("etag"), Some(format!("\"{}.2\"", id.simple()).as_str()), "one change, one revision");
}

#[tokio::test]
async fn a_token_whose_row_was_deleted_makes_it_again() {
    let actors = Actors::start().await;
    let ada = actors.user("ada@example.com");
    let caller = actors.app.as_user(&ada);
    caller.patch_json("/v1/actors/me", json!({"display_name": "Ada"})).await.assert_status(200);
    actors.execute("DELETE FROM actor.actors").await;
    let reply = caller.get("/v1/actors/me").await;
    reply.assert_status(200);
    assert_eq!(reply.json()["id"], json!(ada.id));
    assert_eq!(reply.json()["display_name"], json!(null));
}

#[tokio::test]
async fn a_change_may_be_the_first_thing_seen_of_a_person() {
    let actors = Actors::start().await;
    let caller = actors.app.as_user(&actors.user("ada@example.com"));
    let reply = caller.patch_json("/v1/actors/me", json!({"display_name": "Ada"})).await;
    reply.assert_status(200);
    assert_eq!(reply.json()["email"], "ada@example.com");
    assert_eq!(reply.json()["display_name"], "Ada");
}
