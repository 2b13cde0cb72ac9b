//! Objects, as the AWS SDK with its defaults sees them.

use std::time::Duration;

use aws_sdk_s3::{
    Client,
    config::{Credentials, retry::RetryConfig},
    error::{ProvideErrorMetadata, SdkError},
    primitives::ByteStream,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use futures_util::TryStreamExt;
use sha2::{Digest, Sha256};
use stack::object_store::{Fault, Mischief};
use test_support::{TestObjectStore, eventually};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Bytes that no two places share.
pub(crate) fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|index| u8::try_from(index * 31 % 251).unwrap()).collect()
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    STANDARD.encode(Sha256::digest(bytes))
}

/// The code of an error that S3 answered with.
pub(crate) fn code<E: ProvideErrorMetadata, R>(error: &SdkError<E, R>) -> String {
    error.code().unwrap_or("no code").to_owned()
}

pub(crate) async fn content(client: &Client, key: &str) -> Vec<u8> {
    let object = client.get_object().bucket("documents").key(key).send().await.unwrap();
    object.body.collect().await.unwrap().to_vec()
}

/// A body that arrives in pieces of unknown total length, and may break off.
fn stream(pieces: Vec<Result<Bytes, std::io::Error>>) -> ByteStream {
    let frames = futures_util::stream::iter(pieces).map_ok(hyper::body::Frame::data);
    ByteStream::from_body_1_x(http_body_util::StreamBody::new(frames))
}

fn without_retries(store: &TestObjectStore) -> Client {
    Client::from_conf(store.client().config().to_builder().retry_config(RetryConfig::disabled()).build())
}

#[tokio::test]
async fn an_object_comes_back_as_it_was_put() {
    let store = TestObjectStore::start().await;
    let client = store.client();
    let body = bytes(300_000);
    client
        .put_object()
        .bucket(store.bucket())
        .key("a key/with spaces & signs+äöü")
        .content_type("text/plain; charset=utf-8")
        .content_disposition("attachment")
        .metadata("owner", "somebody")
        .body(body.clone().into())
        .send()
        .await
        .unwrap();
    let got = client.get_object().bucket(store.bucket()).key("a key/with spaces & signs+äöü").send().await.unwrap();
    assert_eq!(got.content_type(), Some("text/plain; charset=utf-8"));
    assert_eq!(got.content_disposition(), Some("attachment"));
    assert_eq!(got.content_encoding(), None);
    assert_eq!(got.metadata().unwrap()["owner"], "somebody");
    assert_eq!(got.content_length(), Some(300_000));
    // The SDK sends a CRC32 by default, and compares it on the way back.
    assert!(got.checksum_crc32().is_some());
    let head = client.head_object().bucket(store.bucket()).key("a key/with spaces & signs+äöü").send().await.unwrap();
    assert_eq!((head.e_tag(), head.content_length()), (got.e_tag(), got.content_length()));
    assert_eq!(got.body.collect().await.unwrap().to_vec(), body);
}

#[tokio::test]
async fn a_stream_with_a_known_length_and_a_trailing_checksum_is_stored() {
    let store = TestObjectStore::start().await;
    let client = store.client();
    let pieces: Vec<Bytes> = bytes(1_000_000).chunks(100_000).map(Bytes::copy_from_slice).collect();
    client
        .put_object()
        .bucket(store.bucket())
        .key("streamed")
        .content_length(1_000_000)
        .checksum_algorithm(aws_sdk_s3::types::ChecksumAlgorithm::Sha256)
        .body(stream(pieces.into_iter().map(Ok).collect()))
        .send()
        .await
        .unwrap();
    let head = client
        .head_object()
        .bucket(store.bucket())
        .key("streamed")
        .checksum_mode(aws_sdk_s3::types::ChecksumMode::Enabled)
        .send()
        .await
        .unwrap();
    assert_eq!(head.checksum_sha256(), Some(sha256(&bytes(1_000_000)).as_str()));
    assert_eq!(content(&client, "streamed").await, bytes(1_000_000));
}

#[tokio::test]
async fn an_object_whose_checksum_is_wrong_never_appears() {
    let store = TestObjectStore::start().await;
    let client = store.client();
    client.put_object().bucket(store.bucket()).key("k").body(b"first".to_vec().into()).send().await.unwrap();
    let put = || client.put_object().bucket(store.bucket()).key("k").body(b"second".to_vec().into());

    let error = put().checksum_sha256(sha256(b"something else")).send().await.unwrap_err();
    assert_eq!(code(&error), "BadDigest");
    let error = put().content_md5(STANDARD.encode([0; 16])).send().await.unwrap_err();
    assert_eq!(code(&error), "BadDigest");
    assert_eq!(content(&client, "k").await, b"first");
    assert_eq!(store.stored_bytes(), 5);

    put().checksum_sha256(sha256(b"second")).send().await.unwrap();
    assert_eq!(content(&client, "k").await, b"second");
    assert_eq!(store.stored_bytes(), 6, "the bytes of the replaced object are gone");
}

#[tokio::test]
async fn an_upload_that_breaks_off_leaves_nothing() {
    let store = TestObjectStore::start().await;
    let client = without_retries(&store);
    let broken = vec![Ok(Bytes::from(bytes(200_000))), Err(std::io::Error::other("the user went away"))];
    let put = client.put_object().bucket(store.bucket()).key("k").content_length(1_000_000).body(stream(broken));
    put.send().await.unwrap_err();
    eventually("the part that arrived is removed", async || store.stored_bytes() == 0).await;
    assert!(store.keys().await.is_empty());
}

#[tokio::test]
async fn ranges_are_answered_as_http_asks() {
    let store = TestObjectStore::start().await;
    let client = store.client();
    client.put_object().bucket(store.bucket()).key("k").body(b"0123456789".to_vec().into()).send().await.unwrap();
    for (range, expected, content_range) in [
        ("bytes=0-0", "0", "bytes 0-0/10"),
        ("bytes=2-5", "2345", "bytes 2-5/10"),
        ("bytes=7-", "789", "bytes 7-9/10"),
        ("bytes=-3", "789", "bytes 7-9/10"),
        ("bytes=-99", "0123456789", "bytes 0-9/10"),
        ("bytes=8-99", "89", "bytes 8-9/10"),
    ] {
        let got = client.get_object().bucket(store.bucket()).key("k").range(range).send().await.unwrap();
        assert_eq!(got.content_range(), Some(content_range), "{range}");
        assert_eq!(got.body.collect().await.unwrap().to_vec(), expected.as_bytes(), "{range}");
    }
    let error = client.get_object().bucket(store.bucket()).key("k").range("bytes=10-").send().await.unwrap_err();
    assert_eq!(code(&error), "InvalidRange");
    assert_eq!(error.raw_response().unwrap().status().as_u16(), 416);
}

#[tokio::test]
async fn a_conditional_put_and_get_are_honoured() {
    let store = TestObjectStore::start().await;
    let client = store.client();
    let put = || client.put_object().bucket(store.bucket()).key("k").body(b"x".to_vec().into());
    let etag = put().if_none_match("*").send().await.unwrap().e_tag.unwrap();
    assert_eq!(code(&put().if_none_match("*").send().await.unwrap_err()), "PreconditionFailed");
    assert_eq!(code(&put().if_match("\"0\"").send().await.unwrap_err()), "PreconditionFailed");
    put().if_match(&etag).send().await.unwrap();
    let get = || client.get_object().bucket(store.bucket()).key("k");
    let unchanged = get().if_none_match(&etag).send().await.unwrap_err();
    assert_eq!(unchanged.raw_response().unwrap().status().as_u16(), 304);
    assert_eq!(code(&get().if_match("\"0\"").send().await.unwrap_err()), "PreconditionFailed");
}

#[tokio::test]
async fn deleting_is_idempotent_and_frees_the_bytes() {
    let store = TestObjectStore::start().await;
    let client = store.client();
    client.put_object().bucket(store.bucket()).key("k").body(bytes(1000).into()).send().await.unwrap();
    for _ in 0..2 {
        client.delete_object().bucket(store.bucket()).key("k").send().await.unwrap();
    }
    assert_eq!(store.stored_bytes(), 0);
    let error = client.get_object().bucket(store.bucket()).key("k").send().await.unwrap_err();
    assert_eq!(code(&error), "NoSuchKey");
    let error = client.head_object().bucket(store.bucket()).key("k").send().await.unwrap_err();
    assert_eq!(error.raw_response().unwrap().status().as_u16(), 404);
}

#[tokio::test]
async fn an_object_that_is_deleted_while_it_is_read_is_read_to_its_end() {
    let store = TestObjectStore::start().await;
    let client = store.client();
    // More than sockets buffer.
    let body = bytes(16 * 1024 * 1024);
    client.put_object().bucket(store.bucket()).key("k").body(body.clone().into()).send().await.unwrap();
    let mut reading = client.get_object().bucket(store.bucket()).key("k").send().await.unwrap().body;
    let mut read = reading.next().await.unwrap().unwrap().to_vec();
    client.delete_object().bucket(store.bucket()).key("k").send().await.unwrap();
    while let Some(piece) = reading.next().await {
        read.extend(piece.unwrap());
    }
    assert_eq!(read.len(), body.len());
    assert!(read == body, "the bytes are those that were put");
    eventually("the bytes are freed", async || store.stored_bytes() == 0).await;
}

#[tokio::test]
async fn any_key_is_a_key_of_its_own() {
    let store = TestObjectStore::start().await;
    let client = store.client();
    let long = "k".repeat(1024);
    let mut keys = ["a", "a/b", "a/b/", "../a", "a//b", ".", "日本/語", long.as_str()];
    for key in keys {
        client.put_object().bucket(store.bucket()).key(key).body(key.as_bytes().to_vec().into()).send().await.unwrap();
    }
    for key in keys {
        assert_eq!(content(&client, key).await, key.as_bytes());
    }
    keys.sort_unstable();
    assert_eq!(store.keys().await, keys);
}

#[tokio::test]
async fn lists_come_in_pages_and_by_prefix() {
    let store = TestObjectStore::start().await;
    let client = store.client();
    for key in ["a/1", "a/2", "a/3", "b", "c/1"] {
        client.put_object().bucket(store.bucket()).key(key).body(b"x".to_vec().into()).send().await.unwrap();
    }
    let mut pages = client.list_objects_v2().bucket(store.bucket()).prefix("a/").into_paginator().page_size(2).send();
    let mut sizes = Vec::new();
    while let Some(page) = pages.next().await {
        sizes.push(page.unwrap().contents().len());
    }
    assert_eq!(sizes, [2, 1]);
    let grouped = client.list_objects_v2().bucket(store.bucket()).delimiter("/").send().await.unwrap();
    let prefixes: Vec<_> = grouped.common_prefixes().iter().filter_map(|prefix| prefix.prefix()).collect();
    assert_eq!(prefixes, ["a/", "c/"]);
    assert_eq!(grouped.contents().iter().filter_map(|object| object.key()).collect::<Vec<_>>(), ["b"]);
    let error = client.list_objects_v2().bucket(store.bucket()).continuation_token("zz").send().await.unwrap_err();
    assert_eq!(code(&error), "InvalidArgument");
}

#[tokio::test]
async fn objects_survive_a_restart_on_the_same_port() {
    let store = TestObjectStore::start().await;
    let client = store.client();
    client
        .put_object()
        .bucket(store.bucket())
        .key("k")
        .content_type("a/b")
        .body(bytes(1000).into())
        .send()
        .await
        .unwrap();
    store.stop().await;
    let error = without_retries(&store).get_object().bucket(store.bucket()).key("k").send().await.unwrap_err();
    assert!(matches!(error, SdkError::DispatchFailure(_)), "{error:?}");
    store.resume().await;
    let got = client.get_object().bucket(store.bucket()).key("k").send().await.unwrap();
    assert_eq!(got.content_type(), Some("a/b"));
    assert_eq!(got.body.collect().await.unwrap().to_vec(), bytes(1000));
}

#[tokio::test]
async fn only_the_right_key_and_secret_are_accepted() {
    let store = TestObjectStore::start().await;
    for (access_key, secret_key) in [(store.access_key(), "wrong"), ("nobody", store.secret_key())] {
        let credentials = Credentials::new(access_key, secret_key, None, None, "test");
        let config = store.client().config().to_builder().credentials_provider(credentials).build();
        let error = Client::from_conf(config).list_buckets().send().await.unwrap_err();
        assert_eq!(error.raw_response().unwrap().status().as_u16(), 403, "{access_key}");
    }
    let (status, _) = plain_request(&store, "GET /documents?list-type=2 HTTP/1.1\r\n").await;
    assert_eq!(status, 403);
    // The health check needs no signature.
    let (status, _) = plain_request(&store, "GET /-/live HTTP/1.1\r\n").await;
    assert_eq!(status, 200);
}

/// Sends a request without a signature, and gives the status and the rest of what comes until the server closes.
async fn plain_request(store: &TestObjectStore, line: &str) -> (u16, String) {
    let mut stream = tokio::net::TcpStream::connect(store.endpoint().trim_start_matches("http://")).await.unwrap();
    stream.write_all(format!("{line}host: x\r\nconnection: close\r\n\r\n").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer)
}

#[tokio::test]
async fn injected_failures_happen_once_each_and_nothing_is_stored() {
    let store = TestObjectStore::start().await;
    let client = without_retries(&store);
    let put = || client.put_object().bucket(store.bucket()).key("k").body(b"x".to_vec().into());
    store.fail_next(1);
    let error = put().send().await.unwrap_err();
    assert_eq!((code(&error).as_str(), error.raw_response().unwrap().status().as_u16()), ("InternalError", 500));
    assert!(store.keys().await.is_empty());

    store.inject(Fault { mischief: Mischief::Disconnect, method: Some(http::Method::PUT), times: 1 });
    let error = put().send().await.unwrap_err();
    assert!(matches!(error, SdkError::DispatchFailure(_)), "{error:?}");

    put().send().await.unwrap();
    // The SDK's own retries get over two failures.
    store.fail_next(2);
    assert_eq!(content(&store.client(), "k").await, b"x");
    assert_eq!(store.faults().remaining(), 0);
}

#[tokio::test]
async fn an_idle_connection_is_closed() {
    let store = TestObjectStore::start_with_idle_timeout(Duration::from_millis(50)).await;
    let mut stream = tokio::net::TcpStream::connect(store.endpoint().trim_start_matches("http://")).await.unwrap();
    stream.write_all(b"GET /-/live HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    // Ends only because the server closes: the request asked to keep the connection.
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test]
async fn a_missing_bucket_is_said_to_be_missing() {
    let store = TestObjectStore::start().await;
    let client = store.client();
    client.head_bucket().bucket(store.bucket()).send().await.unwrap();
    let error = client.put_object().bucket("no-such").key("k").body(b"x".to_vec().into()).send().await.unwrap_err();
    assert_eq!(code(&error), "NoSuchBucket");
    client.create_bucket().bucket("no-such").send().await.unwrap();
    client.put_object().bucket("no-such").key("k").body(b"x".to_vec().into()).send().await.unwrap();
}
