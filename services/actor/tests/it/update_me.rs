//! `PATCH /v1/actors/me`

use http::Method;
use serde_json::{Value, json};
use test_support::{Caller, Reply};

use crate::served::Actors;

const ME: &str = "/v1/actors/me";

async fn rename(caller: &Caller, name: &str, if_match: Option<&str>) -> Reply {
    let builder = caller.build(Method::PATCH, ME).json(&json!({"display_name": name}));
    let builder = if_match.into_iter().fold(builder, |builder, tags| builder.header("if-match", tags));
    caller.request(builder).await
}

async fn patch_raw(caller: &Caller, content_type: Option<&str>, body: impl Into<reqwest::Body>) -> Reply {
    let builder = caller.build(Method::PATCH, ME).body(body);
    let builder = content_type.into_iter().fold(builder, |builder, media| builder.header("content-type", media));
    caller.request(builder).await
}

fn tag(reply: &Reply) -> String {
    reply.header("etag").expect("an ETag").to_owned()
}

#[tokio::test]
async fn the_name_is_changed_and_the_answer_shows_it() {
    let actors = Actors::start().await;
    let caller = actors.app.as_user(&actors.user("ada@example.com"));
    let before = caller.get(ME).await;
    actors.advance_seconds(60);
    let changed = rename(&caller, "Ada", None).await;
    changed.assert_status(200);
    let body = changed.json();
    assert_eq!(body["display_name"], "Ada");
    assert_eq!(body["email"], "ada@example.com");
    assert_eq!(body["created_at"], before.json()["created_at"]);
    assert_eq!(body["updated_at"], json!(actors.now_rfc3339()));
    assert_ne!(tag(&changed), tag(&before));
    assert_eq!(changed.header("cache-control"), Some("private, no-cache"));
    let after = caller.get(ME).await;
    assert_eq!((after.json(), tag(&after)), (body, tag(&changed)));
}

#[tokio::test]
async fn the_name_is_kept_trimmed_and_composed() {
    let actors = Actors::start().await;
    let caller = actors.app.as_user(&actors.user("ada@example.com"));
    assert_eq!(rename(&caller, " \tZoe\u{308} \n", None).await.json()["display_name"], "Zoë");
}

#[tokio::test]
async fn null_clears_the_name() {
    let actors = Actors::start().await;
    let caller = actors.app.as_user(&actors.user("ada@example.com"));
    rename(&caller, "Ada", None).await.assert_status(200);
    let cleared = caller.patch_json(ME, json!({"display_name": null})).await;
    cleared.assert_status(200);
    assert_eq!(cleared.json()["display_name"], Value::Null);
}

#[tokio::test]
async fn only_the_caller_is_changed() {
    let actors = Actors::start().await;
    let ada = actors.app.as_user(&actors.user("ada@example.com"));
    let bob = actors.app.as_user(&actors.user("bob@example.com"));
    rename(&bob, "Bob", None).await.assert_status(200);
    let before = bob.get(ME).await;
    rename(&ada, "Ada", None).await.assert_status(200);
    let after = bob.get(ME).await;
    assert_eq!((after.json(), tag(&after)), (before.json(), tag(&before)));
}

#[tokio::test]
async fn names_that_are_none_are_refused_and_nothing_changes() {
    let actors = Actors::start().await;
    let caller = actors.app.as_user(&actors.user("ada@example.com"));
    rename(&caller, "Ada", None).await.assert_status(200);
    for (name, code) in [
        ("", "empty"),
        (" \t\n", "empty"),
        ("a\0b", "control_character"),
        ("a\nb", "control_character"),
        ("\u{202e}adA", "bidi_character"),
        ("a\u{200b}b", "invisible_character"),
        (&"x".repeat(101), "too_long"),
    ] {
        rename(&caller, name, None).await.assert_invalid(&[("/display_name", code)]);
    }
    assert_eq!(caller.get(ME).await.json()["display_name"], "Ada");
    rename(&caller, &"é".repeat(100), None).await.assert_status(200);
}

#[tokio::test]
async fn every_field_that_does_not_fit_is_named() {
    let actors = Actors::start().await;
    let caller = actors.app.as_user(&actors.user("ada@example.com"));
    let patch = async |body: Value| caller.patch_json(ME, body).await;
    patch(json!({})).await.assert_invalid(&[("/display_name", "missing")]);
    patch(json!({"display_name": 5})).await.assert_invalid(&[("/display_name", "wrong_type")]);
    patch(json!({"display_name": ["Ada"]})).await.assert_invalid(&[("/display_name", "wrong_type")]);
    patch(json!([])).await.assert_invalid(&[("", "not_an_object")]);
    patch(json!({"id": "x", "email": "e@x.io", "role": "admin", "display_name": ""})).await.assert_invalid(&[
        ("/display_name", "empty"),
        ("/email", "unknown_field"),
        ("/id", "unknown_field"),
        ("/role", "unknown_field"),
    ]);
    let twice = r#"{"display_name":"Ada","display_name":"Eve"}"#;
    patch_raw(&caller, Some("application/json"), twice).await.assert_invalid(&[("/display_name", "duplicate_field")]);
    assert_eq!(caller.get(ME).await.json()["display_name"], Value::Null);
}

#[tokio::test]
async fn a_matching_condition_lets_the_change_through() {
    let actors = Actors::start().await;
    let caller = actors.app.as_user(&actors.user("ada@example.com"));
    let mut current = tag(&caller.get(ME).await);
    for condition in ["{}", "\"other\", {}", "{} , W/\"x\"", "*"] {
        let reply = rename(&caller, "Ada", Some(&condition.replace("{}", &current))).await;
        reply.assert_status(200);
        current = tag(&reply);
    }
}

#[tokio::test]
async fn a_condition_that_does_not_hold_changes_nothing() {
    let actors = Actors::start().await;
    let ada = actors.user("ada@example.com");
    let caller = actors.app.as_user(&ada);
    let old = tag(&caller.get(ME).await);
    let current = tag(&rename(&caller, "Ada", None).await);
    let anothers = tag(&rename(&actors.app.as_user(&actors.user("bob@example.com")), "Bob", None).await);
    let future = format!("\"{}.99\"", ada.id.simple());
    for condition in [&old, &future, &format!("W/{current}"), &anothers, "\"2\"", "\"other\"", "\"\""] {
        rename(&caller, "Eve", Some(condition)).await.assert_problem(412, "precondition_failed");
    }
    let after = caller.get(ME).await;
    assert_eq!((after.json()["display_name"].as_str(), tag(&after)), (Some("Ada"), current));
}

#[tokio::test]
async fn a_malformed_condition_is_refused_rather_than_dropped() {
    let actors = Actors::start().await;
    let caller = actors.app.as_user(&actors.user("ada@example.com"));
    for condition in ["", "unquoted", "\"open", "\"a\" \"b\"", "*, \"a\""] {
        rename(&caller, "Eve", Some(condition)).await.assert_problem(400, "invalid_if_match");
    }
    assert_eq!(caller.get(ME).await.json()["display_name"], Value::Null);
}

#[tokio::test]
async fn of_many_changes_based_on_one_state_exactly_one_wins() {
    let actors = Actors::start().await;
    let caller = actors.app.as_user(&actors.user("ada@example.com"));
    let base = tag(&caller.get(ME).await);
    let barrier = std::sync::Arc::new(tokio::sync::Barrier::new(20));
    let mut changes = tokio::task::JoinSet::new();
    for number in 0..20 {
        let (caller, base, barrier) = (caller.clone(), base.clone(), barrier.clone());
        changes.spawn(async move {
            barrier.wait().await;
            (number, rename(&caller, &format!("Ada {number}"), Some(&base)).await)
        });
    }
    let mut winners = Vec::new();
    for (number, reply) in changes.join_all().await {
        match reply.status.as_u16() {
            200 => winners.push(format!("Ada {number}")),
            _ => drop(reply.assert_problem(412, "precondition_failed")),
        }
    }
    assert_eq!(winners.len(), 1, "{winners:?}");
    assert_eq!(caller.get(ME).await.json()["display_name"], json!(winners[0]));
}

#[tokio::test]
async fn without_a_condition_all_changes_count_and_the_last_one_stays() {
    let actors = Actors::start().await;
    let ada = actors.user("ada@example.com");
    let caller = actors.app.as_user(&ada);
    let mut changes = tokio::task::JoinSet::new();
    for number in 0..10 {
        let caller = caller.clone();
        changes.spawn(async move { rename(&caller, &format!("Ada {number}"), None).await });
    }
    let mut replies = changes.join_all().await;
    for reply in &replies {
        reply.assert_status(200);
    }
    replies.sort_by_key(|reply| tag(reply).trim_end_matches('"').rsplit('.').next().unwrap().parse::<u32>().unwrap());
    let last = replies.last().unwrap();
    assert_eq!(tag(last), format!("\"{}.11\"", ada.id.simple()));
    assert_eq!(caller.get(ME).await.json(), last.json());
}

#[tokio::test]
async fn broken_bodies_are_400_and_other_media_415() {
    let actors = Actors::start().await;
    let caller = actors.app.as_user(&actors.user("ada@example.com"));
    let json = Some("application/json");
    for body in [&b""[..], b"{", b"{\"display_name\":\"\xff\xfe\"}", br#"{"display_name":"\ud800"}"#, b"{} {}"] {
        patch_raw(&caller, json, body.to_vec()).await.assert_problem(400, "malformed_json");
    }
    let good = r#"{"display_name":"Ada"}"#;
    for media in
        [None, Some("text/plain"), Some("application/x-www-form-urlencoded"), Some("application/json; charset=utf-16")]
    {
        patch_raw(&caller, media, good).await.assert_problem(415, "unsupported_media_type");
    }
    let encoded =
        caller.build(Method::PATCH, ME).json(&json!({"display_name": "Ada"})).header("content-encoding", "gzip");
    caller.request(encoded).await.assert_problem(415, "unsupported_media_type");
    patch_raw(&caller, Some("application/json; charset=utf-8"), good).await.assert_status(200);
}

#[tokio::test]
async fn bodies_over_16_kib_are_413_with_and_without_a_length() {
    let actors = Actors::start().await;
    let caller = actors.app.as_user(&actors.user("ada@example.com"));
    let large = format!(r#"{{"display_name":"{}"}}"#, "x".repeat(16 * 1024));
    patch_raw(&caller, Some("application/json"), large.clone()).await.assert_problem(413, "body_too_large");
    let chunks = futures_util::stream::iter([Ok::<_, std::io::Error>(large)]);
    let chunked = reqwest::Body::wrap_stream(chunks);
    patch_raw(&caller, Some("application/json"), chunked).await.assert_problem(413, "body_too_large");
}

#[tokio::test]
async fn a_body_that_does_not_come_is_408_and_the_connection_ends() {
    let actors = Actors::start_with(&[], &[("BODY_IDLE_TIMEOUT_MS", "200")]).await;
    let ada = actors.user("ada@example.com");
    let head = format!(
        "PATCH {ME} HTTP/1.1\r\nhost: actor\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: 22\r\n\r\n{{\"display",
        ada.access_token
    );
    let reply = Reply::from_bytes(&actors.app.raw(head).await);
    reply.assert_problem(408, "request_timeout");
    assert_eq!(reply.header("connection"), Some("close"));
    assert_eq!(actors.app.as_user(&ada).get(ME).await.json()["display_name"], Value::Null);
}
