//! Who may upload how much, how fast, and how many at once.

use std::net::SocketAddr;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{Method, header};
use test_support::{Reply, TestUser, eventually};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use crate::served::{Documents, FORM, MIB, chunked, content_path, form, noise, post, post_form, sha256};

/// The head of an upload that is written by hand.
fn head(token: &str, headers: &str) -> String {
    format!(
        "POST /v1/documents?name=x HTTP/1.1\r\nhost: documents\r\nauthorization: Bearer {token}\r\ncontent-type: text/plain\r\n\
         {headers}\r\n\r\n"
    )
}

/// Sends `bytes`, keeps the sending side open, and reads until the service closes.
async fn answer_without_a_body(address: SocketAddr, bytes: String) -> Reply {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // Only the answer counts, not how the connection ends after it.
    let _ = stream.read_to_end(&mut answer).await;
    Reply::from_bytes(&answer)
}

#[tokio::test]
async fn a_bad_token_is_refused_before_a_byte_of_the_body_is_read() {
    let documents = Documents::start().await;
    let huge = 100 * MIB;
    for headers in [
        format!("content-length: {huge}"),
        format!("content-length: {huge}\r\nexpect: 100-continue"),
        "transfer-encoding: chunked".to_owned(),
        // What is wrong with the body does not matter to somebody who may not send one.
        format!("content-length: {huge}\r\ncontent-encoding: identity"),
    ] {
        // Not one body byte is sent: an answer means that none was waited for.
        let reply = answer_without_a_body(documents.app.address(), head("nonsense", &headers)).await;
        reply.assert_problem(401, "token_invalid");
        assert_eq!(reply.header("connection"), Some("close"), "{headers}");
    }
    let anonymous = documents.app.anonymous();
    post(&anonymous, "x", "text/plain", "x").await.assert_problem(401, "token_missing");
    documents.assert_nothing_is_left().await;
}

#[tokio::test]
async fn an_announced_length_over_the_limit_is_refused_without_reading() {
    let documents = Documents::start_with(&[("DOCUMENT_MAX_BYTES", "1000")], &[]).await;
    let token = documents.user("ada@example.com").access_token;
    for headers in
        ["content-length: 1001", "content-length: 1001\r\nexpect: 100-continue", "content-length: 99999999999"]
    {
        let reply = answer_without_a_body(documents.app.address(), head(&token, headers)).await;
        reply.assert_problem(413, "body_too_large");
    }
    documents.assert_nothing_is_left().await;
}

#[tokio::test]
async fn a_client_that_waits_for_100_continue_is_told_to_go_on() {
    let documents = Documents::start().await;
    let token = documents.user("ada@example.com").access_token;
    let mut stream = TcpStream::connect(documents.app.address()).await.unwrap();
    let request = head(&token, "content-length: 5\r\nexpect: 100-continue\r\nconnection: close");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut interim = vec![0; b"HTTP/1.1 100 Continue\r\n\r\n".len()];
    stream.read_exact(&mut interim).await.unwrap();
    assert_eq!(interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"hello").await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    assert_eq!(Reply::from_bytes(&answer).assert_status(201).json()["size_bytes"], 5);
}

#[tokio::test]
async fn the_limit_counts_the_bytes_of_the_file() {
    let documents = Documents::start_with(&[("DOCUMENT_MAX_BYTES", "6000000")], &[]).await;
    let caller = documents.caller();
    let (most, too_much) = (noise(6_000_000), noise(6_000_001));
    post(&caller, "most", "text/plain", most.clone()).await.assert_status(201);
    caller.post_raw("/v1/documents?name=x", "text/plain", chunked(most.clone())).await.assert_status(201);
    post_form(&caller, form("name=file; filename=most", "text/plain", &most)).await.assert_status(201);
    documents.assert_rows_and_objects_agree().await;
    let stored = documents.rows().await.len();
    assert_eq!(stored, 3);

    let form: Bytes = form("name=file; filename=x", "text/plain", &too_much).into();
    let raw_path = "/v1/documents?name=x";
    caller.post_raw(raw_path, "text/plain", too_much.clone()).await.assert_problem(413, "body_too_large");
    caller.post_raw(raw_path, "text/plain", chunked(too_much)).await.assert_problem(413, "body_too_large");
    caller.post_raw("/v1/documents", FORM, form.clone()).await.assert_problem(413, "body_too_large");
    caller.post_raw("/v1/documents", FORM, chunked(form)).await.assert_problem(413, "body_too_large");
    documents.state.settled().await;
    assert_eq!(documents.rows().await.len(), stored);
    documents.assert_rows_and_objects_agree().await;
}

#[tokio::test]
async fn a_file_of_the_default_limit_is_streamed_through() {
    let documents = Documents::start().await;
    let caller = documents.caller();
    let content = noise(64 * MIB);
    let reply = caller.post_raw("/v1/documents?name=large", "application/x-noise", chunked(content.clone())).await;
    let body = reply.assert_status(201).json();
    assert_eq!(body["size_bytes"], 64 * MIB);
    assert_eq!(body["sha256"], sha256(&content));
    let received = caller.get(&content_path(&body)).await;
    assert!(received.assert_status(200).body == content, "other bytes came back");
    documents.assert_rows_and_objects_agree().await;
}

#[tokio::test]
async fn a_silent_client_gets_408_and_leaves_nothing() {
    let documents = Documents::start_with(&[], &[("BODY_IDLE_TIMEOUT_MS", "200")]).await;
    let token = documents.user("ada@example.com").access_token;
    for headers in ["content-length: 100", "transfer-encoding: chunked"] {
        let reply = answer_without_a_body(documents.app.address(), head(&token, headers)).await;
        reply.assert_problem(408, "request_timeout");
        assert_eq!(reply.header("connection"), Some("close"));
    }
    // Silent after a whole part has been sent on.
    let (start, silence) = (noise(6 * MIB), stream::pending::<std::io::Result<Bytes>>());
    let body = reqwest::Body::wrap_stream(stream::iter([Ok(start)]).chain(silence));
    let reply = documents.caller().post_raw("/v1/documents?name=x", "text/plain", body).await;
    reply.assert_problem(408, "request_timeout");
    documents.assert_nothing_is_left().await;
}

#[tokio::test]
async fn an_upload_that_takes_too_long_gets_408_and_leaves_nothing() {
    let documents = Documents::start_with(&[("DOCUMENT_UPLOAD_TIMEOUT_SECONDS", "1")], &[]).await;
    let start = noise(6 * MIB);
    // Never silent for long, and never done.
    let drops = tokio::time::interval(std::time::Duration::from_millis(20));
    let drops = stream::unfold(drops, |mut drops| async {
        drops.tick().await;
        Some((Ok(Bytes::from_static(b".")), drops))
    });
    let body = reqwest::Body::wrap_stream(stream::iter([Ok::<_, std::io::Error>(start)]).chain(drops));
    let reply = documents.caller().post_raw("/v1/documents?name=x", "text/plain", body).await;
    reply.assert_problem(408, "upload_timeout");
    documents.assert_nothing_is_left().await;
}

#[tokio::test]
async fn uploads_beyond_the_buffers_are_told_to_come_back_and_small_ones_need_none() {
    let limits = [("DOCUMENT_UPLOAD_BUFFERS", "1"), ("DOCUMENT_UPLOAD_WAIT_MS", "50")];
    let documents = Documents::start_with(&limits, &[]).await;
    let user = documents.user("ada@example.com");
    let (finish, finished) = oneshot::channel::<()>();
    let holding = tokio::spawn(slow_upload(&documents, &user, finished));

    let caller = documents.app.as_user(&user);
    eventually("the one buffer is in use", async || {
        post(&caller, "large", "text/plain", noise(65 * 1024)).await.status == 503
    })
    .await;
    let refused = post(&caller, "large", "text/plain", noise(65 * 1024)).await;
    refused.assert_problem(503, "uploads_busy");
    assert!(refused.header("server-timing").unwrap().contains("admission;"));
    post(&caller, "small", "text/plain", noise(64 * 1024)).await.assert_status(201);
    let small_without_length = caller.post_raw("/v1/documents?name=x", "text/plain", chunked(noise(64 * 1024))).await;
    small_without_length.assert_status(201);

    finish.send(()).unwrap();
    holding.await.unwrap().assert_status(201);
    post(&caller, "large", "text/plain", noise(65 * 1024)).await.assert_status(201);
    documents.assert_rows_and_objects_agree().await;
}

/// An upload that has sent more than needs no buffer, and waits for its end.
fn slow_upload(
    documents: &Documents,
    user: &TestUser,
    finished: oneshot::Receiver<()>,
) -> impl Future<Output = Reply> + Send + 'static {
    let caller = documents.app.as_user(user);
    let end = stream::once(async move {
        let _ = finished.await;
        Ok::<_, std::io::Error>(Bytes::from_static(b"end"))
    });
    let body = reqwest::Body::wrap_stream(stream::iter([Ok(noise(256 * 1024))]).chain(end));
    async move {
        let builder = caller.build(Method::POST, "/v1/documents?name=slow").header(header::CONTENT_TYPE, "text/plain");
        caller.request(builder.body(body)).await
    }
}
