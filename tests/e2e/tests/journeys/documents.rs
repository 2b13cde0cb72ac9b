//! Keeping documents.

use std::collections::BTreeMap;

use bytes::Bytes;
use e2e::{Datum, Person};
use futures_util::StreamExt;
use http::Method;
use reqwest::multipart::{Form, Part};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use test_support::{Caller, Reply};

use crate::SYSTEM;

const MIB: u64 = 1024 * 1024;

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_else(|| panic!("no `{name}` in {value}")).to_owned()
}

async fn get_with(caller: &Caller, path: &str, name: &str, value: &str) -> Reply {
    caller.request(caller.build(Method::GET, path).header(name, value)).await
}

#[tokio::test]
async fn from_upload_to_deletion() {
    let system = SYSTEM.get();
    let ada = Person::new(&system.anyone(), "documents").await;
    let content = b"Notes on the Analytical Engine".as_slice();

    let part = Part::bytes(content).file_name("notes.txt").mime_str("text/plain").unwrap();
    let upload = ada.caller.build(Method::POST, "/v1/documents").multipart(Form::new().part("file", part));
    let uploaded = ada.caller.request(upload).await;
    let document = uploaded.assert_status(201).json();
    let path = format!("/v1/documents/{}", text(&document, "id"));
    assert_eq!(uploaded.header("location"), Some(path.as_str()));
    let sha256 = hex::encode(Sha256::digest(content));
    assert_eq!(
        (text(&document, "name"), document["size_bytes"].as_u64(), text(&document, "sha256")),
        ("notes.txt".to_owned(), Some(30), sha256.clone())
    );

    let raw = ada.upload("second.txt", "more").await;
    assert_eq!(ada.document_names().await, ["second.txt", "notes.txt"], "newest first");
    assert_eq!(ada.caller.get(&path).await.assert_status(200).json(), document);

    let content_path = format!("{path}/content");
    let whole = ada.caller.get(&content_path).await;
    assert_eq!(whole.assert_status(200).body, content);
    let etag = format!("\"{sha256}\"");
    assert_eq!(whole.header("etag"), Some(etag.as_str()));
    assert_eq!(whole.header("x-content-type-options"), Some("nosniff"));
    assert!(whole.header("content-disposition").unwrap().starts_with("attachment"));
    let head = ada.caller.head(&content_path).await;
    assert_eq!(head.assert_status(200).header("content-length"), Some("30"));

    let part = get_with(&ada.caller, &content_path, "range", "bytes=9-").await;
    assert_eq!(part.assert_status(206).body, content[9..]);
    assert_eq!(part.header("content-range"), Some("bytes 9-29/30"));
    get_with(&ada.caller, &content_path, "range", "bytes=30-").await.assert_problem(416, "range_not_satisfiable");
    get_with(&ada.caller, &content_path, "if-none-match", &etag).await.assert_status(304);

    ada.caller.delete(&path).await.assert_status(204);
    for gone in [&path, &content_path] {
        ada.caller.get(gone).await.assert_problem(404, "not_found");
    }
    ada.caller.delete(&path).await.assert_problem(404, "not_found");
    assert_eq!(ada.document_names().await, ["second.txt"]);
    ada.caller.delete(&format!("/v1/documents/{}", text(&raw, "id"))).await.assert_status(204);
    assert_eq!(ada.caller.get("/v1/documents").await.json(), json!({"items": [], "next_cursor": null}));
}

#[tokio::test]
async fn a_list_is_read_page_by_page_over_both_tasks() {
    let system = SYSTEM.get();
    let ada = Person::new(&system.anyone(), "pages").await;
    for number in 0..7 {
        ada.upload(&format!("{number}.txt"), "x").await;
    }
    let (mut names, mut path) = (Vec::new(), "/v1/documents?limit=3".to_owned());
    for expected in [3, 3, 1] {
        let page = ada.caller.get(&path).await.assert_status(200).json();
        let items = page["items"].as_array().unwrap();
        assert_eq!(items.len(), expected);
        names.extend(items.iter().map(|item| text(item, "name")));
        path = format!("/v1/documents?limit=3&cursor={}", page["next_cursor"].as_str().unwrap_or_default());
    }
    assert_eq!(names, ["6.txt", "5.txt", "4.txt", "3.txt", "2.txt", "1.txt", "0.txt"]);
}

#[tokio::test]
async fn an_upload_needs_no_length_and_may_be_empty() {
    let system = SYSTEM.get();
    let ada = Person::new(&system.anyone(), "chunked").await;
    let chunks = ["one ", "two ", "three"].map(|chunk| Ok::<_, std::io::Error>(Bytes::from(chunk)));
    let body = reqwest::Body::wrap_stream(futures_util::stream::iter(chunks));
    let document = ada.upload("chunked.txt", body).await;
    assert_eq!(document["size_bytes"], 13);
    let content = ada.caller.get(&format!("/v1/documents/{}/content", text(&document, "id"))).await;
    assert_eq!(content.assert_status(200).text(), "one two three");

    let empty = ada.upload("empty.txt", "").await;
    assert_eq!(empty["size_bytes"], 0);
    let content = ada.caller.get(&format!("/v1/documents/{}/content", text(&empty, "id"))).await;
    assert_eq!(content.assert_status(200).body.len(), 0);
}

/// `count` bytes that compress badly and repeat nowhere near, without holding them all.
fn large(count: u64) -> (reqwest::Body, String) {
    let chunk = |index: u64| {
        let seed = Sha256::digest(index.to_le_bytes());
        Bytes::from(seed.repeat(usize::try_from(MIB / 32).unwrap()))
    };
    let mut hash = Sha256::new();
    (0..count / MIB).for_each(|index| hash.update(chunk(index)));
    let chunks = futures_util::stream::iter(0..count / MIB).map(move |index| Ok::<_, std::io::Error>(chunk(index)));
    (reqwest::Body::wrap_stream(chunks), hex::encode(hash.finalize()))
}

fn peak_memory(system: &Datum) -> BTreeMap<u32, u64> {
    let processes = system.tasks("document").into_iter().filter_map(|task| task.process);
    processes.filter_map(|process| Some((process.pid, process.peak_resident_bytes()?))).collect()
}

#[tokio::test]
async fn sixty_four_mebibytes_pass_through_without_being_held() {
    let system = SYSTEM.get();
    let ada = Person::new(&system.anyone(), "large").await;
    // Both tasks have everything loaded that an upload and a download need.
    for number in 0..4 {
        let id = text(&ada.upload(&format!("{number}"), large(2 * MIB).0).await, "id");
        ada.caller.get(&format!("/v1/documents/{id}/content")).await.assert_status(200);
    }
    let before = peak_memory(&system);

    let (body, sha256) = large(64 * MIB);
    let document = ada.upload("large.bin", body).await;
    assert_eq!((document["size_bytes"].as_u64(), text(&document, "sha256")), (Some(64 * MIB), sha256.clone()));
    let content = ada.caller.get(&format!("/v1/documents/{}/content", text(&document, "id"))).await;
    assert_eq!(hex::encode(Sha256::digest(&content.assert_status(200).body)), sha256);

    for (pid, after) in peak_memory(&system) {
        // The kernel counts a little behind: the peak can even seem to shrink.
        let grown = after.saturating_sub(before.get(&pid).copied().expect("no task was restarted"));
        assert!(grown < 16 * MIB, "a document task has grown by {} KiB", grown / 1024);
    }
}

#[tokio::test]
async fn one_byte_more_than_sixty_four_mebibytes_is_refused() {
    let system = SYSTEM.get();
    let ada = Person::new(&system.anyone(), "too-large").await;
    let announced = ada.caller.build(Method::POST, "/v1/documents?name=large.bin");
    let announced = announced.header("content-type", "application/octet-stream").header("content-length", 64 * MIB + 1);
    ada.caller.request(announced.body(large(64 * MIB).0)).await.assert_problem(413, "body_too_large");

    let (body, _) = large(65 * MIB);
    let chunked = ada.caller.post_raw("/v1/documents?name=large.bin", "application/octet-stream", body).await;
    chunked.assert_problem(413, "body_too_large");
    assert!(ada.document_names().await.is_empty());
}
