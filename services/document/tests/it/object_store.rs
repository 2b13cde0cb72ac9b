//! The object store in bad moments.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{Method, StatusCode};
use test_support::{Fault, Mischief, TestObjectStore, eventually};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use crate::proxy::Proxy;
use crate::served::{Documents, MIB, content_path, document_path, noise, post, sha256, stored};

const LATER: Duration = Duration::from_hours(2);

/// Short timeouts and one attempt: what is down is reported at once.
const IMPATIENT: [(&str, &str); 1] = [("S3_MAX_ATTEMPTS", "1")];

#[tokio::test]
async fn while_the_store_is_down_uploads_are_503_without_a_row_and_work_again_later() {
    let documents = Documents::start().await;
    let caller = documents.caller();
    let before = stored(&caller, "before", "text/plain", "x").await;
    documents.store.stop().await;
    for content in [Bytes::new(), noise(10), noise(6 * MIB)] {
        post(&caller, "x", "text/plain", content).await.assert_problem(503, "storage_unavailable");
        // Not later, when somebody cleans up: with the answer.
        assert_eq!(documents.rows().await.len(), 1);
    }
    caller.get(&content_path(&before)).await.assert_problem(503, "storage_unavailable");
    // What needs no object store works.
    caller.get(&document_path(&before)).await.assert_status(200);
    caller.head(&content_path(&before)).await.assert_status(200);
    caller.get("/v1/documents").await.assert_status(200);
    documents.app.anonymous().get("/ready").await.assert_status(200);

    documents.store.resume().await;
    for content in [Bytes::new(), noise(10), noise(6 * MIB)] {
        post(&caller, "x", "text/plain", content).await.assert_status(201);
    }
    assert_eq!(caller.get(&content_path(&before)).await.assert_status(200).body, "x");
    documents.state.settled().await;
    documents.assert_rows_and_objects_agree().await;
}

#[tokio::test]
async fn one_failure_of_each_step_is_borne() {
    let documents = Documents::start().await;
    let caller = documents.caller();
    let (small, large) = (noise(100), noise(11 * MIB));
    for mischief in [
        Mischief::Status(StatusCode::INTERNAL_SERVER_ERROR),
        Mischief::Status(StatusCode::SERVICE_UNAVAILABLE),
        Mischief::Disconnect,
    ] {
        // PUT: the object, a part. POST: begin, complete. GET and DELETE for what follows.
        for method in [Method::PUT, Method::POST, Method::GET, Method::DELETE] {
            documents.store.inject(Fault { mischief, method: Some(method), times: 1 });
        }
        let in_parts = stored(&caller, "large", "text/plain", large.clone()).await;
        documents.store.inject(Fault { mischief, method: Some(Method::PUT), times: 1 });
        let whole = stored(&caller, "small", "text/plain", small.clone()).await;
        for (body, content) in [(&in_parts, &large), (&whole, &small)] {
            assert_eq!(body["sha256"], sha256(content), "{mischief:?}");
            assert!(caller.get(&content_path(body)).await.assert_status(200).body == *content, "{mischief:?}");
            caller.delete(&document_path(body)).await.assert_status(204);
        }
        assert_eq!(documents.store.faults().remaining(), 0, "{mischief:?}");
    }
    documents.assert_nothing_is_left().await;
}

#[tokio::test]
async fn a_store_that_fails_for_longer_is_503_and_what_it_kept_is_swept_up() {
    let documents = Documents::start_with(&IMPATIENT, &[]).await;
    let caller = documents.caller();
    documents.store.fail_next(usize::MAX / 2);
    for content in [noise(10), noise(6 * MIB)] {
        post(&caller, "x", "text/plain", content).await.assert_problem(503, "storage_unavailable");
        assert_eq!(documents.rows().await, []);
    }
    documents.state.settled().await;
    documents.store.faults().clear();
    stored(&caller, "x", "text/plain", "x").await;
    documents.sweep_after(LATER).await;
    documents.assert_rows_and_objects_agree().await;
}

#[tokio::test]
async fn a_store_that_does_not_answer_is_503_within_the_deadline() {
    let impatient = [
        ("S3_CONNECT_TIMEOUT_MS", "1000"),
        ("S3_READ_TIMEOUT_MS", "1000"),
        ("S3_ATTEMPT_TIMEOUT_MS", "1000"),
        ("S3_OPERATION_TIMEOUT_MS", "1500"),
    ];
    let documents = Documents::start_with(&impatient, &[]).await;
    let caller = documents.caller();
    let before = stored(&caller, "before", "text/plain", "x").await;
    let never = Mischief::Delay(Duration::from_hours(1));
    documents.store.inject(Fault { mischief: never, method: None, times: usize::MAX / 2 });
    post(&caller, "x", "text/plain", "x").await.assert_problem(503, "storage_unavailable");
    caller.get(&content_path(&before)).await.assert_problem(503, "storage_unavailable");
    caller.delete(&document_path(&before)).await.assert_status(204);
    assert_eq!(documents.rows().await.len(), 1, "only the deletion that is to be finished");
}

#[tokio::test]
async fn a_store_that_goes_away_between_two_parts_is_503_and_the_rest_is_swept_up() {
    let documents = Documents::start().await;
    let caller = documents.caller();
    let (go_on, told_to_go_on) = oneshot::channel::<()>();
    let rest = stream::once(async move {
        let _ = told_to_go_on.await;
        Ok::<_, std::io::Error>(noise(6 * MIB))
    });
    let body = reqwest::Body::wrap_stream(stream::iter([Ok(noise(6 * MIB))]).chain(rest));
    let uploading = tokio::spawn(async move { caller.post_raw("/v1/documents?name=x", "text/plain", body).await });
    eventually("the first part is stored", async || documents.store.stored_bytes() >= 5 * MIB as u64).await;
    documents.store.stop().await;
    go_on.send(()).unwrap();
    uploading.await.unwrap().assert_problem(503, "storage_unavailable");
    assert_eq!(documents.rows().await, []);

    documents.state.settled().await;
    documents.store.resume().await;
    assert_eq!(documents.store.unfinished_uploads().await.len(), 1, "nobody could abort it");
    assert_eq!(documents.sweep_after(LATER).await.multiparts, 1);
    documents.assert_nothing_is_left().await;
}

#[tokio::test]
async fn connections_that_the_store_has_closed_while_idle_cost_no_request() {
    let idle = Duration::from_millis(100);
    let documents = Documents::start_on(TestObjectStore::start_with_idle_timeout(idle).await, &[], &[]).await;
    let caller = documents.caller();
    for _ in 0..5 {
        let body = stored(&caller, "x", "text/plain", noise(100_000)).await;
        caller.get(&content_path(&body)).await.assert_status(200);
        // A connection that is opened now and closed by the store has been idle for less long than those before it.
        let address = documents.store.endpoint().replace("http://", "");
        let mut younger = TcpStream::connect(address).await.unwrap();
        assert_eq!(younger.read(&mut [0; 1]).await.unwrap_or(0), 0);
    }
}

#[tokio::test]
async fn requests_share_few_connections() {
    let store = TestObjectStore::start().await;
    let proxy = Proxy::to(&store.endpoint()).await;
    let documents = Documents::start_on(store, &[("S3_ENDPOINT", &proxy.endpoint())], &[]).await;
    let caller = documents.caller();
    for _ in 0..100 {
        stored(&caller, "x", "text/plain", "x").await;
    }
    assert!(proxy.opened() <= 3, "{} connections for 100 uploads, one after the other", proxy.opened());
}

#[tokio::test]
async fn a_download_that_breaks_off_is_resumed_without_the_client_noticing() {
    let store = TestObjectStore::start().await;
    let proxy = Proxy::to(&store.endpoint()).await;
    let documents = Documents::start_on(store, &[("S3_ENDPOINT", &proxy.endpoint())], &[]).await;
    let caller = documents.caller();
    let content = noise(8 * MIB);
    let body = stored(&caller, "x", "text/plain", content.clone()).await;
    proxy.cut(3, MIB as u64);
    let received = caller.get(&content_path(&body)).await;
    assert!(received.assert_status(200).body == content, "other bytes came");

    // Broken more often, the answer is torn, and the client can tell.
    proxy.cut(100, MIB as u64);
    let torn = caller.build(Method::GET, &content_path(&body)).send().await.unwrap();
    assert_eq!(torn.status(), 200);
    assert!(torn.bytes().await.is_err(), "a part was taken for the whole");
}

#[tokio::test]
async fn a_client_that_does_not_read_holds_the_store_back_and_one_that_leaves_ends_the_transfer() {
    let store = TestObjectStore::start().await;
    let proxy = Proxy::to(&store.endpoint()).await;
    let documents = Documents::start_on(store, &[("S3_ENDPOINT", &proxy.endpoint())], &[]).await;
    let caller = documents.caller();
    let size = 64 * MIB;
    let body = stored(&caller, "x", "text/plain", noise(size)).await;
    let before = proxy.sent_by_store();
    let response = caller.build(Method::GET, &content_path(&body)).send().await.unwrap();
    assert_eq!(response.status(), 200);
    let open = proxy.open();
    drop(response);
    eventually("the transfer has ended", async || proxy.open() < open).await;
    let transferred = proxy.sent_by_store() - before;
    assert!(transferred < size as u64 / 2, "{transferred} bytes were read for a client that read none");
}

#[tokio::test]
async fn an_object_that_is_missing_is_503_and_its_row_stays() {
    let documents = Documents::start().await;
    let caller = documents.caller();
    let body = stored(&caller, "x", "text/plain", "x").await;
    let key = documents.store.keys().await.remove(0);
    documents.store.client().delete_object().bucket(documents.store.bucket()).key(key).send().await.unwrap();
    caller.get(&content_path(&body)).await.assert_problem(503, "storage_unavailable");
    caller.get(&document_path(&body)).await.assert_status(200);
}

#[tokio::test]
async fn a_document_that_is_deleted_while_its_download_begins_is_404() {
    let documents = Documents::start().await;
    let caller = documents.caller();
    let body = stored(&caller, "x", "text/plain", "x").await;
    let slowly = Mischief::Delay(Duration::from_millis(500));
    documents.store.inject(Fault { mischief: slowly, method: Some(Method::GET), times: 1 });
    let download = {
        let (caller, path) = (caller.clone(), content_path(&body));
        tokio::spawn(async move { caller.get(&path).await })
    };
    eventually("the row was read and the store was asked", async || documents.store.faults().remaining() == 0).await;
    caller.delete(&document_path(&body)).await.assert_status(204);
    download.await.unwrap().assert_problem(404, "not_found");
}

#[tokio::test]
async fn an_object_of_another_length_than_its_row_is_not_served() {
    let documents = Documents::start().await;
    let caller = documents.caller();
    let body = stored(&caller, "x", "text/plain", "hello").await;
    let key = documents.store.keys().await.remove(0);
    let other = documents.store.client().put_object().bucket(documents.store.bucket()).key(key);
    other.body(Bytes::from_static(b"hi").into()).send().await.unwrap();
    caller.get(&content_path(&body)).await.assert_problem(503, "storage_unavailable");
}
