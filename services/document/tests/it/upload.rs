//! `POST /v1/documents`: what is stored, and how it comes back.

use bytes::Bytes;
use http::{Method, header};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::served::{
    Documents, FORM, MIB, chunked, content_path, document_path, form, noise, percent_encode, post, post_form, sha256,
    stored,
};

#[tokio::test]
async fn a_form_with_one_file_is_stored_and_comes_back() {
    let documents = Documents::start().await;
    let caller = documents.caller();
    let reply = post_form(&caller, form(r#"name="file"; filename="report.pdf""#, "application/pdf", b"%PDF-1.7")).await;
    let body = reply.assert_status(201).json();

    assert_eq!(reply.header("location"), Some(document_path(&body).as_str()));
    let members: Vec<_> = body.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(members, ["id", "name", "content_type", "size_bytes", "sha256", "created_at"]);
    assert_eq!(body["name"], "report.pdf");
    assert_eq!(body["content_type"], "application/pdf");
    assert_eq!(body["size_bytes"], 8);
    assert_eq!(body["sha256"], sha256(b"%PDF-1.7"));
    let created_at = OffsetDateTime::parse(body["created_at"].as_str().unwrap(), &Rfc3339).unwrap();
    assert_eq!(created_at, documents.now().truncate_to_millisecond());

    assert_eq!(caller.get(&document_path(&body)).await.assert_status(200).json(), body);
    assert_eq!(caller.get(&content_path(&body)).await.assert_status(200).body, &b"%PDF-1.7"[..]);
    documents.assert_rows_and_objects_agree().await;
}

#[tokio::test]
async fn a_raw_body_is_stored_under_the_name_in_the_query() {
    let documents = Documents::start().await;
    let caller = documents.caller();
    let body = stored(&caller, "naïve résumé.txt", "text/plain; charset=utf-8", "hello").await;
    assert_eq!(body["name"], "naïve résumé.txt");
    assert_eq!(body["content_type"], "text/plain; charset=utf-8");
    assert_eq!(caller.get(&content_path(&body)).await.assert_status(200).body, "hello");

    let untyped = caller.build(Method::POST, "/v1/documents?name=x").body("bytes");
    let untyped = caller.request(untyped).await;
    assert_eq!(untyped.assert_status(201).json()["content_type"], "application/octet-stream");
}

#[tokio::test]
async fn an_empty_file_is_a_file() {
    let documents = Documents::start().await;
    let caller = documents.caller();
    let raw = stored(&caller, "empty", "text/plain", "").await;
    let chunked_raw = caller.post_raw("/v1/documents?name=empty", "text/plain", chunked(Bytes::new())).await;
    let in_form = post_form(&caller, form("name=file; filename=empty", "text/plain", b"")).await;
    for body in [raw, chunked_raw.assert_status(201).json(), in_form.assert_status(201).json()] {
        assert_eq!(body["size_bytes"], 0);
        assert_eq!(body["sha256"], sha256(b""));
        let content = caller.get(&content_path(&body)).await;
        assert!(content.assert_status(200).body.is_empty());
        assert_eq!(content.header("content-length"), Some("0"));
    }
    documents.assert_rows_and_objects_agree().await;
}

#[tokio::test]
async fn files_around_the_sizes_where_something_changes_come_back_whole() {
    let documents = Documents::start().await;
    let caller = documents.caller();
    let part = 5 * MIB;
    for size in [1, 64 * 1024 - 1, 64 * 1024, 64 * 1024 + 1, part - 1, part, part + 1, 2 * part, 2 * part + 1] {
        let content = noise(size);
        let raw = stored(&caller, "noise", "application/x-noise", content.clone()).await;
        assert_eq!(raw["sha256"], sha256(&content), "{size}");
        assert_eq!(raw["size_bytes"], size);
        let received = caller.get(&content_path(&raw)).await;
        assert!(received.assert_status(200).body == content, "{size} bytes came back as others");
    }
    documents.assert_rows_and_objects_agree().await;
}

#[tokio::test]
async fn a_body_without_an_announced_length_is_stored() {
    let documents = Documents::start().await;
    let caller = documents.caller();
    let content = noise(6 * MIB);
    let raw = caller.post_raw("/v1/documents?name=chunked", "text/plain", chunked(content.clone())).await;
    let whole_form: Bytes = form("name=file; filename=chunked", "text/plain", &content).into();
    let in_form = caller.post_raw("/v1/documents", FORM, chunked(whole_form)).await;
    for reply in [raw, in_form] {
        assert_eq!(reply.assert_status(201).json()["sha256"], sha256(&content));
    }
    documents.assert_rows_and_objects_agree().await;
}

#[tokio::test]
async fn names_keep_nothing_of_a_path_and_objects_nothing_of_a_name() {
    let documents = Documents::start().await;
    let caller = documents.caller();
    for (sent, kept) in [
        ("../../etc/passwd", "passwd"),
        (r"..\..\x", "x"),
        ("/abs", "abs"),
        (r"C:\x", "x"),
        ("%2e%2e%2fx", "%2e%2e%2fx"),
        ("a.txt/../../x", "x"),
        ("documents/../../x", "x"),
        ("e\u{301}", "é"),
        (&"a".repeat(255), &"a".repeat(255)),
    ] {
        let raw = stored(&caller, sent, "text/plain", "x").await;
        assert_eq!(raw["name"], kept, "{sent}");
        let disposition = format!(r#"name="file"; filename="{sent}""#);
        let in_form = post_form(&caller, form(&disposition, "text/plain", b"x")).await;
        assert_eq!(in_form.assert_status(201).json()["name"], kept, "{sent}");
    }
    documents.assert_rows_and_objects_agree().await;
}

#[tokio::test]
async fn what_is_no_name_is_refused_before_anything_is_stored() {
    let documents = Documents::start().await;
    let caller = documents.caller();
    for (name, code) in [
        ("", "empty"),
        (".", "invalid_name"),
        ("..", "invalid_name"),
        ("a/..", "invalid_name"),
        ("dir/", "invalid_name"),
        ("a\0b", "control_character"),
        ("a\nb", "control_character"),
        ("\u{202e}gpj.exe", "bidi_character"),
        (&"a".repeat(256), "too_long"),
        (&"語".repeat(300), "too_long"),
        (&"a".repeat(10_000), "too_long"),
    ] {
        post(&caller, name, "text/plain", "x").await.assert_invalid(&[("/name", code)]);
        // A line break cannot stand in a form's header: the framing is broken, which is another refusal.
        if !name.contains('\n') {
            let disposition = format!(r#"name="file"; filename="{name}""#);
            let reply = post_form(&caller, form(&disposition, "text/plain", b"x")).await;
            reply.assert_invalid(&[("/file", code)]);
        }
    }
    caller.post_raw("/v1/documents", "text/plain", "x").await.assert_invalid(&[("/name", "missing")]);
    let twice = caller.post_raw("/v1/documents?name=a&name=b", "text/plain", "x").await;
    twice.assert_invalid(&[("/name", "duplicate_field")]);
    let broken = caller.post_raw("/v1/documents?name=%ff", "text/plain", "x").await;
    broken.assert_problem(400, "malformed_query");
    documents.assert_nothing_is_left().await;
}

#[tokio::test]
async fn a_media_type_that_is_none_is_refused() {
    let documents = Documents::start().await;
    let caller = documents.caller();
    for content_type in
        ["nonsense", "text/", "*/*", "multipart/mixed; boundary=x", &format!("text/{}", "x".repeat(300))]
    {
        let reply = post(&caller, "x", content_type, "x").await;
        reply.assert_problem(415, "unsupported_media_type");
    }
    let encoded = caller.build(Method::POST, "/v1/documents?name=x").header(header::CONTENT_ENCODING, "gzip").body("x");
    caller.request(encoded).await.assert_problem(415, "unsupported_media_type");
    documents.assert_nothing_is_left().await;
}

#[tokio::test]
async fn two_people_have_documents_of_the_same_name() {
    let documents = Documents::start().await;
    let (ada, bob) = (documents.caller(), documents.app.as_user(&documents.user("bob@example.com")));
    let mine = stored(&ada, "same.txt", "text/plain", "ada's").await;
    let theirs = stored(&bob, "same.txt", "text/plain", "bob's").await;
    assert_ne!(mine["id"], theirs["id"]);
    assert_eq!(ada.get(&content_path(&mine)).await.assert_status(200).body, "ada's");
    assert_eq!(bob.get(&content_path(&theirs)).await.assert_status(200).body, "bob's");
}

#[tokio::test]
async fn the_time_in_the_object_store_is_told() {
    let documents = Documents::start().await;
    let reply = post(&documents.caller(), "x", "text/plain", "x").await;
    let timing = reply.assert_status(201).header("server-timing").unwrap();
    for stage in ["verify;", "pool;", "db;", "s3;", "app;", "total;"] {
        assert!(timing.contains(stage), "no {stage} in {timing}");
    }
    let larger = post(&documents.caller(), &percent_encode("x"), "text/plain", noise(65 * 1024)).await;
    assert!(larger.header("server-timing").unwrap().contains("admission;"), "a buffer was waited for");
}
