//! What clients should not send, through the balancer: the right answer, and everybody else is served as before.

use e2e::{PASSWORD, Person, new_email};
use http::{Method, header};
use serde_json::json;
use test_support::{Caller, Reply};

use crate::SYSTEM;

async fn post(caller: &Caller, path: &str, content_type: Option<&str>, body: impl Into<reqwest::Body>) -> Reply {
    let builder = caller.build(Method::POST, path).body(body);
    let builder = content_type.into_iter().fold(builder, |builder, media| builder.header(header::CONTENT_TYPE, media));
    caller.request(builder).await
}

#[tokio::test]
async fn broken_json_is_400_and_unfit_json_422_naming_each_field() {
    let system = SYSTEM.get();
    let anyone = system.anyone();
    let json_type = Some("application/json");
    for path in ["/v1/auth/register", "/v1/auth/login", "/v1/auth/refresh", "/v1/auth/logout"] {
        for body in [
            &b""[..],
            b"{",
            b"\xff\xfe",
            b"{\"email\":\"\xff\"}",
            br#"{"email":"\ud800"}"#,
            &b"[".repeat(10_000),
            &b"{\"a\":".repeat(3_000),
        ] {
            post(&anyone, path, json_type, body.to_vec()).await.assert_problem(400, "malformed_json");
        }
        for body in ["[]", "null", "1", "\"text\""] {
            post(&anyone, path, json_type, body).await.assert_invalid(&[("", "not_an_object")]);
        }
        for media in [
            None,
            Some("text/plain"),
            Some("application/x-www-form-urlencoded"),
            Some("application/json; charset=utf-16"),
        ] {
            post(&anyone, path, media, "{}").await.assert_problem(415, "unsupported_media_type");
        }
    }
    let unfit = json!({"email": 5, "role": "admin", "is_admin": true});
    anyone.post_json("/v1/auth/register", unfit).await.assert_invalid(&[
        ("/email", "wrong_type"),
        ("/password", "missing"),
        ("/role", "unknown_field"),
        ("/is_admin", "unknown_field"),
    ]);
}

#[tokio::test]
async fn a_body_that_is_too_large_is_answered_before_the_connection_ends() {
    let system = SYSTEM.get();
    let anyone = system.anyone();
    let large = vec![b'x'; 10 * 1024 * 1024];
    post(&anyone, "/v1/auth/login", Some("application/json"), large.clone())
        .await
        .assert_problem(413, "body_too_large");
    let chunked = reqwest::Body::wrap_stream(futures_util::stream::iter([Ok::<_, std::io::Error>(large)]));
    post(&anyone, "/v1/auth/login", Some("application/json"), chunked).await.assert_problem(413, "body_too_large");
}

#[tokio::test]
async fn nul_is_nowhere_a_server_error() {
    let system = SYSTEM.get();
    let anyone = system.anyone();
    let email = new_email("nul");
    for body in [
        json!({"email": format!("\0{email}"), "password": PASSWORD}),
        json!({"email": email, "password": format!("{PASSWORD}\0")}),
        json!({"email": email, "password": PASSWORD, "display_name": "A\0da"}),
    ] {
        anyone.post_json("/v1/auth/register", body).await.assert_problem(422, "invalid_request");
    }
    anyone
        .post_json("/v1/auth/refresh", json!({"refresh_token": "\0"}))
        .await
        .assert_problem(401, "invalid_refresh_token");
    let ada = Person::new(&anyone, "nul").await.caller;
    ada.patch_json("/v1/actors/me", json!({"display_name": "\0"}))
        .await
        .assert_invalid(&[("/display_name", "control_character")]);
    for path in ["/v1/actors/%00", "/v1/actors/%ff", "/v1/documents/%00", "/v1/documents/%ff/content"] {
        ada.get(path).await.assert_problem(400, "invalid_path");
    }
    ada.get("/v1/documents?limit=%00").await.assert_invalid(&[("/limit", "out_of_range")]);
    ada.get("/v1/documents?cursor=%00").await.assert_problem(400, "invalid_cursor");
    ada.post_raw("/v1/documents?name=a%00b", "text/plain", "x").await.assert_invalid(&[("/name", "control_character")]);
}

#[tokio::test]
async fn lists_have_limits() {
    let system = SYSTEM.get();
    let ada = Person::new(&system.anyone(), "limits").await.caller;
    for limit in ["-1", "0", "101", "9223372036854775808", "1e3", ""] {
        ada.get(&format!("/v1/documents?limit={limit}")).await.assert_invalid(&[("/limit", "out_of_range")]);
    }
    ada.get("/v1/documents?limit=%zz").await.assert_problem(400, "malformed_query");
}

#[tokio::test]
async fn passwords_that_are_none_make_no_user() {
    let system = SYSTEM.get();
    let anyone = system.anyone();
    let email = new_email("weak");
    let long = "x".repeat(1024 * 1024 / 100);
    for password in
        [json!(""), json!("            "), json!("\t\n\t\n\t\n\t\n"), json!(null), json!("123"), json!(long)]
    {
        anyone
            .post_json("/v1/auth/register", json!({"email": email, "password": password}))
            .await
            .assert_problem(422, "invalid_request");
    }
    anyone.post_json("/v1/auth/login", json!({"email": email, "password": long})).await.assert_status(401);
    Person::register(&anyone, &email).await.assert_status(201);
}

#[tokio::test]
async fn wrong_methods_say_which_are_right() {
    let system = SYSTEM.get();
    let anyone = system.anyone();
    for (method, path) in [
        (Method::GET, "/v1/auth/login"),
        (Method::DELETE, "/v1/actors/me"),
        (Method::PUT, "/v1/documents"),
        (Method::POST, "/live"),
        (Method::POST, "/.well-known/jwks.json"),
    ] {
        anyone.request(anyone.build(method, path)).await.assert_problem(405, "method_not_allowed");
    }
}

#[tokio::test]
async fn tokens_that_are_none_open_nothing() {
    let system = SYSTEM.get();
    let anyone = system.anyone();
    let ada = Person::new(&anyone, "tokens").await;
    // {"alg":"none","typ":"at+jwt"} . {"sub":"…"} . no signature
    let unsigned =
        "eyJhbGciOiJub25lIiwidHlwIjoiYXQrand0In0.eyJzdWIiOiIwMDAwMDAwMC0wMDAwLTAwMDAtMDAwMC0wMDAwMDAwMDAwMDEifQ.";
    for token in ["", "x", "a.b.c", unsigned, &ada.refresh_token] {
        for path in ["/v1/actors/me", "/v1/documents"] {
            anyone.bearing(token).get(path).await.assert_problem(401, "token_invalid");
        }
    }
    let access_token = json!({"refresh_token": "eyJhbGciOiJFUzI1NiJ9.e30.AAAA"});
    anyone.post_json("/v1/auth/refresh", access_token).await.assert_problem(401, "invalid_refresh_token");
}
