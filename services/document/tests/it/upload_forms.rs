//! Forms that are not exactly one file, or not properly framed.

use bytes::Bytes;

use crate::served::{Documents, FORM, chunked, form, noise, post_form};

const HEAD: &str = "--BOUNDARY\r\nContent-Disposition: form-data; name=file; filename=a.txt\r\n\r\n";

#[tokio::test]
async fn broken_framing_is_400_at_once() {
    let documents = Documents::start().await;
    let caller = documents.caller();
    for body in [
        String::new(),
        "no form at all".to_owned(),
        "--OTHER\r\nContent-Disposition: form-data; name=file; filename=a\r\n\r\nx\r\n--OTHER--\r\n".to_owned(),
        "--BOUNDARY--\r\n".to_owned(),
        format!("{HEAD}content"),
        format!("{HEAD}content\r\n--BOUNDARY"),
        format!("{HEAD}content\r\n--BOUNDARY\r\n"),
        format!("{HEAD}content\r\n--BOUNDARY--trailing"),
        "--BOUNDARY\r\nContent-Disposition: form-data; name=file; filename=a; filename=b\r\n\r\nx\r\n--BOUNDARY--"
            .to_owned(),
        "--BOUNDARY\r\n\r\nx\r\n--BOUNDARY--\r\n".to_owned(),
    ] {
        post_form(&caller, body.clone()).await.assert_problem(400, "malformed_multipart");
        post_form(&caller, chunked(Bytes::from(body))).await.assert_problem(400, "malformed_multipart");
    }
    let proper = form("name=file; filename=a", "text/plain", b"x");
    for content_type in [
        "multipart/form-data",
        "multipart/form-data; boundary=",
        "multipart/form-data; boundary=\"\"",
        "multipart/form-data; boundary=BOUNDARY; boundary=BOUNDARY",
        "multipart/form-data; boundary=BOUNDARY; boundary=OTHER",
    ] {
        let reply = caller.post_raw("/v1/documents", content_type, proper.clone()).await;
        reply.assert_problem(400, "malformed_multipart");
    }
    documents.assert_nothing_is_left().await;
}

#[tokio::test]
async fn other_and_second_parts_are_refused_by_name() {
    let documents = Documents::start().await;
    let caller = documents.caller();
    let part = |disposition: &str| format!("--BOUNDARY\r\nContent-Disposition: form-data; {disposition}\r\n\r\nx\r\n");
    let file = part("name=file; filename=a");
    for (parts, pointer, code) in [
        (part("name=other; filename=a"), "/other", "unknown_field"),
        (part("name=name") + &file, "/name", "unknown_field"),
        (file.clone() + &file, "/file", "duplicate_field"),
        (file.clone() + &part("name=file"), "/file", "duplicate_field"),
        (file.clone() + &part("name=\"a/b~c\""), "/a~1b~0c", "unknown_field"),
        (part("name=file"), "/file", "missing"),
        (part("name=file; filename*=UTF-8''evil.html"), "/file", "missing"),
    ] {
        post_form(&caller, format!("{parts}--BOUNDARY--\r\n")).await.assert_invalid(&[(pointer, code)]);
    }
    let with_query =
        caller.post_raw("/v1/documents?name=b.txt", FORM, form("name=file; filename=a", "text/plain", b"x")).await;
    with_query.assert_invalid(&[("/name", "ambiguous")]);
    documents.assert_nothing_is_left().await;
}

#[tokio::test]
async fn all_that_is_wrong_with_a_part_is_said_at_once() {
    let documents = Documents::start().await;
    let head = "Content-Disposition: form-data; name=file; filename=\"..\"\r\nContent-Type: nonsense\r\nContent-Transfer-Encoding: base64";
    let reply = post_form(&documents.caller(), format!("--BOUNDARY\r\n{head}\r\n\r\nx\r\n--BOUNDARY--\r\n")).await;
    reply.assert_invalid(&[
        ("/file", "invalid_name"),
        ("/file", "invalid_content_type"),
        ("/file", "content_transfer_encoding"),
    ]);
}

#[tokio::test]
async fn the_plain_name_counts_whatever_the_extended_one_says() {
    let documents = Documents::start().await;
    let disposition = r#"name="file"; filename="safe.txt"; filename*=UTF-8''evil.html"#;
    let reply = post_form(&documents.caller(), form(disposition, "text/plain", b"x")).await;
    assert_eq!(reply.assert_status(201).json()["name"], "safe.txt");
}

#[tokio::test]
async fn a_form_that_breaks_after_parts_were_sent_leaves_nothing() {
    let documents = Documents::start().await;
    let caller = documents.caller();
    // Longer than one part, so that a multipart upload has begun before the form turns out to be wrong.
    let content = noise(11 * 1024 * 1024);
    let start = [HEAD.as_bytes(), &content].concat();
    post_form(&caller, start.clone()).await.assert_problem(400, "malformed_multipart");
    let second =
        b"\r\n--BOUNDARY\r\nContent-Disposition: form-data; name=file; filename=b\r\n\r\ny\r\n--BOUNDARY--\r\n";
    post_form(&caller, [&start[..], second].concat()).await.assert_invalid(&[("/file", "duplicate_field")]);
    documents.assert_nothing_is_left().await;
}
