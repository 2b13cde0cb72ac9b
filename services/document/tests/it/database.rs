//! A database that is busy or away.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use test_support::{TestPostgres, eventually};
use tokio::sync::oneshot;

use crate::served::{Documents, MIB, content_path, document_path, noise, post, stored};

#[tokio::test]
async fn when_every_connection_is_taken_it_is_503_and_recovers() {
    let pool = [("DB_POOL_MAX", "2"), ("DB_POOL_MIN", "0"), ("DB_POOL_ACQUIRE_TIMEOUT_MS", "200")];
    let documents = Documents::start_with(&pool, &[]).await;
    let caller = documents.caller();
    drop(documents.take_connections(2).await);
    let body = stored(&caller, "x", "text/plain", "x").await;
    let taken = documents.take_connections(2).await;
    for content in [noise(10), noise(6 * MIB)] {
        post(&caller, "x", "text/plain", content).await.assert_problem(503, "database_busy");
    }
    caller.get("/v1/documents").await.assert_problem(503, "database_busy");
    caller.get(&document_path(&body)).await.assert_problem(503, "database_busy");
    caller.get(&content_path(&body)).await.assert_problem(503, "database_busy");
    caller.delete(&document_path(&body)).await.assert_problem(503, "database_busy");
    documents.app.anonymous().get("/live").await.assert_status(200);
    drop(taken);
    post(&caller, "x", "text/plain", "x").await.assert_status(201);
    documents.state.settled().await;
    documents.assert_rows_and_objects_agree().await;
}

#[tokio::test]
async fn no_connection_is_held_while_bytes_arrive_or_leave() {
    let pool = [("DB_POOL_MAX", "1"), ("DB_POOL_MIN", "0"), ("DB_POOL_ACQUIRE_TIMEOUT_MS", "200")];
    let documents = Documents::start_with(&pool, &[]).await;
    let caller = documents.caller();
    drop(documents.take_connections(1).await);
    let body = stored(&caller, "x", "text/plain", noise(16 * MIB)).await;
    // A download that nobody reads, and an upload that has sent one part and waits.
    let download = caller.build(http::Method::GET, &content_path(&body)).send().await.unwrap();
    let (finish, uploading) = begin_upload(&documents);
    eventually("the first part is stored", async || documents.store.stored_bytes() >= 21 * MIB as u64).await;
    caller.get(&document_path(&body)).await.assert_status(200);

    finish.send(()).unwrap();
    uploading.await.unwrap().assert_status(201);
    assert_eq!(download.bytes().await.unwrap().len(), 16 * MIB);
}

#[tokio::test]
async fn an_upload_that_cannot_be_committed_is_503_and_is_swept_up() {
    let mut postgres = TestPostgres::start(&[]).await;
    postgres.migrate().await;
    let url = postgres.url("document");
    let documents = Documents::start_with(&[("DATABASE_URL", &url)], &[]).await;
    let (finish, uploading) = begin_upload(&documents);
    eventually("the first part is stored", async || documents.store.stored_bytes() >= 5 * MIB as u64).await;
    postgres.stop().await;
    finish.send(()).unwrap();
    uploading.await.unwrap().assert_problem(503, "database_unavailable");
    documents.caller().get("/v1/documents").await.assert_problem(503, "database_unavailable");
    documents.state.settled().await;

    postgres.resume().await;
    eventually("the database is used again", async || documents.caller().get("/v1/documents").await.status == 200)
        .await;
    let count = async || -> i64 {
        let admin = postgres.admin().await;
        admin.query_one("SELECT count(*) FROM document.documents", &[]).await.unwrap().get(0)
    };
    assert_eq!(count().await, 1, "the pending row could not be removed");
    documents.sweep_after(Duration::from_hours(2)).await;
    assert_eq!(count().await, 0);
    assert_eq!(documents.store.keys().await, Vec::<String>::new());
    assert_eq!(documents.store.stored_bytes(), 0);
}

/// An upload that has sent more than one part and waits to be told to finish.
fn begin_upload(documents: &Documents) -> (oneshot::Sender<()>, tokio::task::JoinHandle<test_support::Reply>) {
    let caller = documents.caller();
    let (finish, finished) = oneshot::channel::<()>();
    let end = stream::once(async move {
        let _ = finished.await;
        Ok::<_, std::io::Error>(Bytes::from_static(b"end"))
    });
    let body = reqwest::Body::wrap_stream(stream::iter([Ok(noise(6 * MIB))]).chain(end));
    let uploading = tokio::spawn(async move { caller.post_raw("/v1/documents?name=x", "text/plain", body).await });
    (finish, uploading)
}
