//! Bodies that are not what they should be, on every route that takes one.

use serde_json::json;
use test_support::{Caller, Reply};

use crate::served::{Auth, PASSWORD};

const ROUTES: [&str; 5] =
    ["/v1/auth/register", "/v1/auth/login", "/v1/auth/refresh", "/v1/auth/logout", "/v1/auth/password"];

struct Setting {
    auth: Auth,
    /// Has a token, so that the one route that wants it gets to the body.
    caller: Caller,
}

impl Setting {
    async fn start() -> Self {
        let auth = Auth::start().await;
        let caller = auth.app.as_bearer(auth.sign_up("ada@example.com").await.access);
        Self { auth, caller }
    }

    /// Posts the body to every route.
    async fn post(&self, content_type: Option<&str>, body: &[u8]) -> Vec<Reply> {
        let mut replies = Vec::new();
        for route in ROUTES {
            let builder = self.caller.build(http::Method::POST, route).body(body.to_vec());
            let builder =
                content_type.into_iter().fold(builder, |builder, media| builder.header("content-type", media));
            replies.push(self.caller.request(builder).await);
        }
        replies
    }

    async fn assert_works(&self) {
        self.auth.session("ada@example.com", PASSWORD).await;
    }
}

#[tokio::test]
async fn broken_syntax_is_400() {
    let setting = Setting::start().await;
    let brackets = "[".repeat(16_000).into_bytes();
    let objects = r#"{"a":"#.repeat(3_000).into_bytes();
    for body in [
        &b""[..],
        b"{",
        b"nonsense",
        b"{\"email\":\"ada@example.com\",}",
        b"{'email':1}",
        b"{\"email\":NaN}",
        b"{\"email\":\"\xff\xfe\"}",
        b"\xff\xfe{\x00}\x00",
        br#"{"email":"\ud800"}"#,
        br#"{"email":"\u00"}"#,
        b"{\"email\":\"a\nb\"}",
        b"{} {}",
        &brackets,
        &objects,
    ] {
        for reply in setting.post(Some("application/json"), body).await {
            reply.assert_problem(400, "malformed_json");
        }
    }
    setting.assert_works().await;
}

#[tokio::test]
async fn well_formed_json_that_is_no_object_is_422() {
    let setting = Setting::start().await;
    for body in ["null", "true", "7", "\"text\"", "[]", r#"["ada@example.com","correct horse battery"]"#] {
        for reply in setting.post(Some("application/json"), body.as_bytes()).await {
            reply.assert_problem(422, "invalid_request");
        }
    }
}

#[tokio::test]
async fn a_key_given_twice_is_422_and_neither_wins() {
    let setting = Setting::start().await;
    let body = format!(r#"{{"email":"ada@example.com","password":"wrong password","password":"{PASSWORD}"}}"#);
    let caller = setting.auth.app.anonymous();
    let reply = caller.post_raw("/v1/auth/login", "application/json", body).await;
    reply.assert_invalid(&[("/password", "duplicate_field")]);
}

#[tokio::test]
async fn nul_in_any_field_is_refused_and_named() {
    let setting = Setting::start().await;
    let caller = setting.auth.app.anonymous();
    let body = json!({"email": "a\u{0}@example.com", "password": "a\u{0}bcdefgh", "display_name": "a\u{0}b"});
    caller.post_json("/v1/auth/register", body).await.assert_invalid(&[
        ("/email", "invalid_email"),
        ("/password", "control_character"),
        ("/display_name", "control_character"),
    ]);
    let body = json!({"email": "ada@example.com\u{0}", "password": PASSWORD});
    caller.post_json("/v1/auth/login", body).await.assert_invalid(&[("/email", "invalid_email")]);
    let reply = caller.post_json("/v1/auth/login", json!({"email": "ada@example.com", "password": "\u{0}"})).await;
    reply.assert_problem(401, "invalid_credentials");
    setting.assert_works().await;
}

#[tokio::test]
async fn only_json_in_utf_8_is_read() {
    let setting = Setting::start().await;
    let body = format!(r#"{{"email":"ada@example.com","password":"{PASSWORD}"}}"#);
    for content_type in [
        None,
        Some("text/plain"),
        Some("application/x-www-form-urlencoded"),
        Some("multipart/form-data; boundary=x"),
        Some("application/json; charset=utf-16"),
        Some("application/jsonp"),
        Some("nonsense"),
    ] {
        for reply in setting.post(content_type, body.as_bytes()).await {
            reply.assert_problem(415, "unsupported_media_type");
        }
    }
    for content_type in ["application/json; charset=utf-8", "Application/JSON;charset=UTF-8"] {
        let reply = setting.auth.app.anonymous().post_raw("/v1/auth/login", content_type, body.clone()).await;
        reply.assert_status(200);
    }
}

#[tokio::test]
async fn encoded_bodies_are_refused() {
    let setting = Setting::start().await;
    for route in ROUTES {
        let builder =
            setting.caller.build(http::Method::POST, route).json(&json!({})).header("content-encoding", "gzip");
        assert_eq!(setting.caller.request(builder).await.status, 415, "{route}");
    }
}

#[tokio::test]
async fn bodies_over_16_kib_are_413_with_and_without_a_length_and_nothing_is_hashed() {
    let setting = Setting::start().await;
    let before = setting.auth.hasher.counters().started();
    let huge = format!(r#"{{"email":"ada@example.com","password":"{}"}}"#, "x".repeat(1024 * 1024));
    for reply in setting.post(Some("application/json"), huge.as_bytes()).await {
        reply.assert_problem(413, "body_too_large");
    }
    for route in ROUTES {
        let chunks: Vec<Result<Vec<u8>, std::io::Error>> =
            huge.as_bytes().chunks(4_096).take(16).map(|chunk| Ok(chunk.to_vec())).collect();
        let body = reqwest::Body::wrap_stream(futures_util::stream::iter(chunks));
        setting.caller.post_raw(route, "application/json", body).await.assert_problem(413, "body_too_large");
    }
    assert_eq!(setting.auth.hasher.counters().started(), before);
    setting.assert_works().await;
}

#[tokio::test]
async fn passwords_of_a_megabyte_twenty_at_once_cost_no_hash() {
    let setting = Setting::start().await;
    let before = setting.auth.hasher.counters().started();
    let password = "x".repeat(1024 * 1024);
    let attempts = (0..20).map(|n| {
        let (auth, password) = (&setting.auth, &password);
        async move {
            match n % 2 {
                0 => auth.login("ada@example.com", password).await,
                _ => auth.register("bob@example.com", password).await,
            }
        }
    });
    for reply in futures_util::future::join_all(attempts).await {
        reply.assert_problem(413, "body_too_large");
    }
    assert_eq!(setting.auth.hasher.counters().started(), before);
    setting.assert_works().await;
}

#[tokio::test]
async fn a_body_that_does_not_come_is_408() {
    let auth = Auth::start().await;
    for route in ["/v1/auth/register", "/v1/auth/login", "/v1/auth/refresh", "/v1/auth/logout"] {
        let app = auth.serve_again(&[("BODY_IDLE_TIMEOUT_MS", "50")]).await;
        let head = format!(
            "POST {route} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{{\"email\""
        );
        let reply = Reply::from_bytes(&app.raw(head).await);
        assert_eq!(reply.status, 408, "{route}");
        assert_eq!(reply.header("content-type"), Some("application/problem+json"));
    }
}
