//! `GET /v1/actors/me`

use serde_json::json;

use crate::served::Actors;

#[tokio::test]
async fn the_profile_comes_from_the_claims() {
    let actors = Actors::start().await;
    let ada = actors.user("ada@example.com");
    let reply = actors.app.as_user(&ada).get("/v1/actors/me").await;
    reply.assert_status(200);
    assert_eq!(
        reply.json(),
        json!({
            "id": ada.id,
            "email": "ada@example.com",
            "display_name": null,
            "created_at": actors.now_rfc3339(),
            "updated_at": actors.now_rfc3339(),
        })
    );
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(reply.header("etag"), Some(format!("\"{}.1\"", ada.id.simple()).as_str()));
    assert_eq!(reply.header("cache-control"), Some("private, no-cache"));
    assert_eq!(reply.header("vary"), Some("authorization"));
}

#[tokio::test]
async fn head_answers_as_get_without_the_body() {
    let actors = Actors::start().await;
    let caller = actors.app.as_user(&actors.user("ada@example.com"));
    let (get, head) = (caller.get("/v1/actors/me").await, caller.head("/v1/actors/me").await);
    head.assert_status(200);
    for name in ["etag", "content-type", "content-length", "cache-control"] {
        assert!(head.header(name).is_some(), "no {name}");
        assert_eq!(head.header(name), get.header(name), "{name}");
    }
}

#[tokio::test]
async fn a_copy_that_is_still_right_is_not_sent_again() {
    let actors = Actors::start().await;
    let caller = actors.app.as_user(&actors.user("ada@example.com"));
    let tag = caller.get("/v1/actors/me").await.header("etag").unwrap().to_owned();
    for known in [tag.clone(), format!("W/{tag}"), format!("\"other\", {tag}"), "*".to_owned()] {
        let request = caller.build(http::Method::GET, "/v1/actors/me").header("if-none-match", &known);
        let reply = caller.request(request).await;
        reply.assert_status(304);
        assert!(reply.body.is_empty(), "{known}");
        assert_eq!(reply.header("etag"), Some(tag.as_str()));
        assert_eq!(reply.header("cache-control"), Some("private, no-cache"));
    }
}

#[tokio::test]
async fn a_copy_that_is_out_of_date_or_unreadable_is_sent_again() {
    let actors = Actors::start().await;
    let caller = actors.app.as_user(&actors.user("ada@example.com"));
    let before = caller.get("/v1/actors/me").await.header("etag").unwrap().to_owned();
    caller.patch_json("/v1/actors/me", json!({"display_name": "Ada"})).await.assert_status(200);
    for known in [before.as_str(), "\"other\"", "unquoted", "\"open", ""] {
        let request = caller.build(http::Method::GET, "/v1/actors/me").header("if-none-match", known);
        let reply = caller.request(request).await;
        reply.assert_status(200);
        assert_eq!(reply.json()["display_name"], "Ada", "{known}");
    }
}

#[tokio::test]
async fn one_persons_tag_is_never_anothers() {
    let actors = Actors::start().await;
    let ada = actors.app.as_user(&actors.user("ada@example.com"));
    let bob = actors.app.as_user(&actors.user("bob@example.com"));
    let tag = ada.get("/v1/actors/me").await.header("etag").unwrap().to_owned();
    let reply = bob.request(bob.build(http::Method::GET, "/v1/actors/me").header("if-none-match", tag)).await;
    reply.assert_status(200);
    assert_eq!(reply.json()["email"], "bob@example.com");
}
