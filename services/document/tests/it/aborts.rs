//! Clients that go away: nothing may be left of what they began.

use std::time::Duration;

use rand::{RngExt, SeedableRng, rngs::StdRng};
use test_support::eventually;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::served::{Documents, MIB, chunked, form, noise};

#[tokio::test]
async fn uploads_that_are_cut_off_at_any_byte_leave_nothing() {
    let documents = Documents::start().await;
    let token = documents.user("ada@example.com").access_token;
    let whole = form("name=file; filename=x", "text/plain", &noise(12 * MIB));
    let head = format!(
        "POST /v1/documents HTTP/1.1\r\nhost: documents\r\nauthorization: Bearer {token}\r\n\
         content-type: multipart/form-data; boundary=BOUNDARY\r\ncontent-length: {}\r\n\r\n",
        whole.len()
    );
    let seed = rand::random();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    // The last byte is never sent: an upload that is whole is another test.
    let cuts: Vec<_> = (0..50).map(|_| random.random_range(0..whole.len())).collect();
    for batch in cuts.chunks(10) {
        let uploads = batch.iter().map(|cut| cut_off(&documents, &head, &whole[..*cut]));
        futures_util::future::join_all(uploads).await;
    }
    eventually("every upload has been taken back", async || {
        documents.rows().await.is_empty() && documents.store.unfinished_uploads().await.is_empty()
    })
    .await;
    documents.assert_nothing_is_left().await;
    let swept = documents.sweep_after(Duration::from_hours(2)).await;
    assert_eq!(swept, document::Swept::default(), "the sweeper had nothing to do");
}

async fn cut_off(documents: &Documents, head: &str, body: &[u8]) {
    let mut stream = TcpStream::connect(documents.app.address()).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    // The service may refuse early; then the rest cannot be sent.
    let _ = stream.write_all(body).await;
    drop(stream);
}

#[tokio::test]
async fn a_client_that_leaves_after_its_last_byte_leaves_a_whole_document_or_none() {
    let documents = Documents::start().await;
    let token = documents.user("ada@example.com").access_token;
    for size in [10, 100 * 1024, 6 * MIB] {
        let head = format!(
            "POST /v1/documents?name=x HTTP/1.1\r\nhost: documents\r\nauthorization: Bearer {token}\r\n\
             content-length: {size}\r\n\r\n"
        );
        for _ in 0..5 {
            cut_off(&documents, &head, &noise(size)).await;
        }
    }
    eventually("no upload is on its way any more", async || {
        documents.state.settled().await;
        documents.rows().await.iter().all(|(_, state)| state == "stored")
    })
    .await;
    eventually("the objects are those of the rows", async || {
        documents.state.settled().await;
        documents.store.keys().await.len() == documents.rows().await.len()
    })
    .await;
    documents.assert_rows_and_objects_agree().await;
    // What was acknowledged or committed is complete.
    let caller = documents.caller();
    caller.post_raw("/v1/documents?name=after", "text/plain", chunked(noise(10))).await.assert_status(201);
}
