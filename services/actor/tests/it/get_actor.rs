//! `GET /v1/actors/{id}`

use serde_json::{Value, json};
use uuid::Uuid;

use crate::served::Actors;

#[tokio::test]
async fn the_own_id_is_me_and_made_on_first_sight() {
    let actors = Actors::start().await;
    let ada = actors.user("ada@example.com");
    let caller = actors.app.as_user(&ada);
    let by_id = caller.get(&format!("/v1/actors/{}", ada.id)).await;
    by_id.assert_status(200);
    let me = caller.get("/v1/actors/me").await;
    assert_eq!(by_id.json(), me.json());
    assert_eq!(by_id.header("etag"), me.header("etag"));
    assert!(by_id.header("etag").is_some());
}

#[tokio::test]
async fn the_own_copy_that_is_still_right_is_not_sent_again() {
    let actors = Actors::start().await;
    let ada = actors.user("ada@example.com");
    let (caller, path) = (actors.app.as_user(&ada), format!("/v1/actors/{}", ada.id));
    let tag = caller.get(&path).await.header("etag").unwrap().to_owned();
    let reply = caller.request(caller.build(http::Method::GET, &path).header("if-none-match", &tag)).await;
    reply.assert_status(304);
}

#[tokio::test]
async fn without_the_scope_another_person_looks_like_nobody() {
    let actors = Actors::start().await;
    let (ada, bob) = (actors.user("ada@example.com"), actors.user("bob@example.com"));
    actors.app.as_user(&bob).get("/v1/actors/me").await.assert_status(200);
    let caller = actors.app.as_user(&ada);
    let existing = caller.get(&format!("/v1/actors/{}", bob.id)).await.assert_problem(404, "not_found");
    let missing = caller.get(&format!("/v1/actors/{}", Uuid::from_u128(7))).await.assert_problem(404, "not_found");
    let without_id = |mut body: Value| {
        body["request_id"] = Value::Null;
        body
    };
    assert_eq!(without_id(existing), without_id(missing));
}

#[tokio::test]
async fn with_the_scope_everybody_who_was_seen_is_visible() {
    let actors = Actors::start().await;
    let bob = actors.user("bob@example.com");
    actors.app.as_user(&bob).get("/v1/actors/me").await.assert_status(200);
    let reader = actors.app.as_bearer(actors.token(&json!({"scope": "documents:write actors:read"})));
    let reply = reader.get(&format!("/v1/actors/{}", bob.id)).await;
    reply.assert_status(200);
    assert_eq!(reply.json()["id"], json!(bob.id));
    assert_eq!(reply.json()["email"], "bob@example.com");
}

#[tokio::test]
async fn looking_for_somebody_never_seen_does_not_make_them() {
    let actors = Actors::start().await;
    let reader = actors.app.as_bearer(actors.token(&json!({"scope": "actors:read"})));
    let path = format!("/v1/actors/{}", Uuid::from_u128(7));
    for _ in 0..2 {
        reader.get(&path).await.assert_problem(404, "not_found");
    }
    assert_eq!(actors.count().await, 0);
}

#[tokio::test]
async fn scopes_that_only_resemble_it_open_nothing() {
    let actors = Actors::start().await;
    let bob = actors.user("bob@example.com");
    actors.app.as_user(&bob).get("/v1/actors/me").await.assert_status(200);
    for scope in ["", "actors", "actors:read:all", "xactors:read", "ACTORS:READ", "actors:read,documents:read"] {
        let caller = actors.app.as_bearer(actors.token(&json!({"scope": scope})));
        caller.get(&format!("/v1/actors/{}", bob.id)).await.assert_problem(404, "not_found");
    }
}

#[tokio::test]
async fn an_id_that_is_no_uuid_is_400() {
    let actors = Actors::start().await;
    let caller = actors.app.as_user(&actors.user("ada@example.com"));
    let too_long = "a".repeat(3_000);
    for id in [
        "ada",
        "1",
        "%00",
        "%ff",
        "%c3%28",
        "00000000-0000-0000-0000-00000000000g",
        "me%00",
        "'%20OR%201=1--",
        &too_long,
    ] {
        caller.get(&format!("/v1/actors/{id}")).await.assert_problem(400, "invalid_path");
    }
}

#[tokio::test]
async fn who_is_not_known_learns_nothing_about_ids() {
    let actors = Actors::start().await;
    for id in ["ada", "%00", "00000000-0000-0000-0000-000000000007"] {
        actors.app.anonymous().get(&format!("/v1/actors/{id}")).await.assert_problem(401, "token_missing");
    }
}
