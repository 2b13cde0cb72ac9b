//! `GET /v1/documents`

use std::time::Duration;

use serde_json::{Value, json};
use test_support::Caller;

use crate::served::{Documents, document_path, percent_encode, stored};

/// Uploads documents named `0`, `1`, … a millisecond apart.
async fn upload(documents: &Documents, caller: &Caller, names: std::ops::Range<usize>) {
    for name in names {
        documents.clock.advance(Duration::from_millis(1));
        stored(caller, &name.to_string(), "text/plain", name.to_string()).await;
    }
}

async fn page(caller: &Caller, query: &str) -> (Vec<String>, Option<String>) {
    let page = caller.get(&format!("/v1/documents?{query}")).await.assert_status(200).json();
    let names =
        page["items"].as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect();
    assert!(page["next_cursor"].is_string() || page["next_cursor"].is_null(), "{page}");
    (names, page["next_cursor"].as_str().map(percent_encode))
}

fn names(numbers: impl IntoIterator<Item = usize>) -> Vec<String> {
    numbers.into_iter().map(|number| number.to_string()).collect()
}

#[tokio::test]
async fn somebody_without_documents_has_an_empty_page() {
    let documents = Documents::start().await;
    let reply = documents.caller().get("/v1/documents").await;
    assert_eq!(reply.assert_status(200).json(), json!({"items": [], "next_cursor": null}));
    documents.caller().head("/v1/documents").await.assert_status(200);
    documents.app.anonymous().get("/v1/documents").await.assert_problem(401, "token_missing");
}

#[tokio::test]
async fn the_newest_come_first_and_only_the_callers_own() {
    let documents = Documents::start().await;
    let (ada, bob) = (documents.caller(), documents.app.as_user(&documents.user("bob@example.com")));
    upload(&documents, &ada, 0..3).await;
    upload(&documents, &bob, 7..8).await;
    assert_eq!(page(&ada, "").await, (names([2, 1, 0]), None));
    assert_eq!(page(&bob, "").await, (names([7]), None));
    let first = ada.get("/v1/documents?limit=1").await.json()["items"][0].clone();
    assert_eq!(ada.get(&document_path(&first)).await.assert_status(200).json(), first);
}

#[tokio::test]
async fn pages_follow_one_another_whatever_happens_in_between() {
    let documents = Documents::start().await;
    let caller = documents.caller();
    upload(&documents, &caller, 0..7).await;
    let (first, cursor) = page(&caller, "limit=3").await;
    assert_eq!(first, names([6, 5, 4]));

    // New ones come before the first page, and the last one seen goes.
    upload(&documents, &caller, 7..9).await;
    let seen: Value = caller.get("/v1/documents").await.json()["items"][4].clone();
    assert_eq!(seen["name"], "4");
    caller.delete(&document_path(&seen)).await.assert_status(204);

    let (second, cursor) = page(&caller, &format!("limit=3&cursor={}", cursor.unwrap())).await;
    assert_eq!(second, names([3, 2, 1]));
    let (third, end) = page(&caller, &format!("limit=3&cursor={}", cursor.unwrap())).await;
    assert_eq!((third, end), (names([0]), None));
}

#[tokio::test]
async fn a_page_that_ends_with_the_last_document_is_the_last_page() {
    let documents = Documents::start().await;
    let caller = documents.caller();
    upload(&documents, &caller, 0..4).await;
    let (_, cursor) = page(&caller, "limit=2").await;
    assert_eq!(page(&caller, &format!("limit=2&cursor={}", cursor.unwrap())).await, (names([1, 0]), None));
    assert_eq!(page(&caller, "limit=4").await.1, None);
}

#[tokio::test]
async fn twenty_documents_are_a_page_unless_another_limit_is_given() {
    let documents = Documents::start().await;
    let user = documents.user("ada@example.com");
    let caller = documents.app.as_user(&user);
    let admin = documents.database.admin().await;
    admin
        .execute(
            "INSERT INTO document.documents
             SELECT $1, uuidv7, 'stored', n::text, 'text/plain', 1, decode(repeat('00', 32), 'hex'), now(), now()
             FROM (SELECT n, ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid AS uuidv7 FROM generate_series(0, 149) AS n) AS made",
            &[&user.id],
        )
        .await
        .unwrap();
    assert_eq!(page(&caller, "").await.0, names((130..150).rev()));
    assert_eq!(page(&caller, "limit=1").await.0, names([149]));
    let (hundred, cursor) = page(&caller, "limit=100").await;
    assert_eq!(hundred, names((50..150).rev()));
    assert_eq!(page(&caller, &format!("limit=100&cursor={}", cursor.unwrap())).await, (names((0..50).rev()), None));
}

#[tokio::test]
async fn a_limit_out_of_range_is_422() {
    let documents = Documents::start().await;
    let caller = documents.caller();
    for limit in ["0", "101", "-1", "9223372036854775808", "1e3", "", "%00", "x", "1.5", "%2B1"] {
        let reply = caller.get(&format!("/v1/documents?limit={limit}")).await;
        reply.assert_invalid(&[("/limit", "out_of_range")]);
    }
    caller.get("/v1/documents?limit=1&limit=2").await.assert_invalid(&[("/limit", "duplicate_field")]);
    caller.get("/v1/documents?limit=%zz").await.assert_problem(400, "malformed_query");
}

#[tokio::test]
async fn a_cursor_that_this_list_has_not_given_is_400() {
    let documents = Documents::start().await;
    let (ada, bob) = (documents.caller(), documents.app.as_user(&documents.user("bob@example.com")));
    upload(&documents, &ada, 0..2).await;
    let (_, cursor) = page(&ada, "limit=1").await;
    let cursor = cursor.unwrap();
    for other in ["", "x", "%00", "AAAAAAAA", &cursor[1..], &"A".repeat(5_000), "' OR 1=1 --"] {
        let reply = ada.get(&format!("/v1/documents?cursor={}", percent_encode(other))).await;
        reply.assert_problem(400, "invalid_cursor");
    }
    bob.get(&format!("/v1/documents?cursor={cursor}")).await.assert_problem(400, "invalid_cursor");
}
