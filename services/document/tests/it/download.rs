//! `GET` and `HEAD /v1/documents/{id}/content`

use http::{HeaderName, Method, header};
use serde_json::Value;
use test_support::{Caller, Reply};

use crate::served::{Documents, content_path, document_path, form, noise, post_form, sha256, stored};

async fn ask(caller: &Caller, method: Method, body: &Value, headers: &[(HeaderName, &str)]) -> Reply {
    let builder = caller.build(method, &content_path(body));
    let builder = headers.iter().fold(builder, |builder, (name, value)| builder.header(name.clone(), *value));
    caller.request(builder).await
}

async fn get(caller: &Caller, body: &Value, headers: &[(HeaderName, &str)]) -> Reply {
    ask(caller, Method::GET, body, headers).await
}

#[tokio::test]
async fn content_is_always_an_attachment_that_nothing_can_run() {
    let documents = Documents::start().await;
    let caller = documents.caller();
    let body = stored(&caller, "naïve \"résumé\".txt", "text/plain; charset=utf-8", "hello").await;
    let reply = get(&caller, &body, &[]).await;
    reply.assert_status(200);
    for (name, value) in [
        ("content-type", "text/plain; charset=utf-8"),
        ("content-length", "5"),
        ("accept-ranges", "bytes"),
        ("etag", &format!("\"{}\"", sha256(b"hello"))),
        ("cache-control", "private, no-cache"),
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", "default-src 'none'; sandbox"),
        (
            "content-disposition",
            "attachment; filename=\"na_ve _r_sum__.txt\"; filename*=UTF-8''na%C3%AFve%20%22r%C3%A9sum%C3%A9%22.txt",
        ),
    ] {
        assert_eq!(reply.header(name), Some(value), "{name}");
    }
    assert!(reply.header("last-modified").unwrap().ends_with(" GMT"));
}

#[tokio::test]
async fn types_that_a_browser_could_run_are_served_as_bytes_and_kept_in_the_metadata() {
    let documents = Documents::start().await;
    let caller = documents.caller();
    let script = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>";
    for (declared, served) in [
        ("image/svg+xml", "application/octet-stream"),
        ("text/html", "application/octet-stream"),
        ("application/xhtml+xml", "application/octet-stream"),
        ("text/javascript", "application/octet-stream"),
        ("image/png", "image/png"),
    ] {
        let reply = post_form(&caller, form("name=file; filename=\"x.html\"", declared, script)).await;
        let body = reply.assert_status(201).json();
        assert_eq!(caller.get(&document_path(&body)).await.json()["content_type"], declared);
        let content = get(&caller, &body, &[]).await;
        assert_eq!(content.assert_status(200).body, &script[..]);
        assert_eq!(content.header("content-type"), Some(served), "{declared}");
        assert_eq!(content.header("x-content-type-options"), Some("nosniff"));
        assert!(content.header("content-disposition").unwrap().starts_with("attachment; "));
    }
}

#[tokio::test]
async fn ranges_give_their_part() {
    let documents = Documents::start().await;
    let caller = documents.caller();
    let content = noise(1_000_000);
    let body = stored(&caller, "x", "text/plain", content.clone()).await;
    for (range, first, last) in [
        ("bytes=0-0", 0, 0),
        ("bytes=0-", 0, 999_999),
        ("bytes=-1", 999_999, 999_999),
        ("bytes=-999999999", 0, 999_999),
        ("bytes=10-19", 10, 19),
        ("bytes=999999-", 999_999, 999_999),
        ("bytes=999990-99999999999999999999", 999_990, 999_999),
        ("bytes=65535-65536", 65_535, 65_536),
    ] {
        let reply = get(&caller, &body, &[(header::RANGE, range)]).await;
        assert!(reply.assert_status(206).body == content[first..=last], "{range}");
        assert_eq!(reply.header("content-range"), Some(format!("bytes {first}-{last}/1000000").as_str()));
        assert_eq!(reply.header("content-length"), Some((last - first + 1).to_string().as_str()));
        assert_eq!(reply.header("etag"), Some(format!("\"{}\"", sha256(&content)).as_str()));
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
    }
}

#[tokio::test]
async fn ranges_that_are_malformed_or_several_are_ignored() {
    let documents = Documents::start().await;
    let caller = documents.caller();
    let body = stored(&caller, "x", "text/plain", "0123456789").await;
    for range in ["bytes=5-2", "bytes=a-b", "bytes=0-0,2-2", "bytes=", "bytes=-", "items=0-1", "0-1", "", "bytes=--1"] {
        let reply = get(&caller, &body, &[(header::RANGE, range)]).await;
        assert_eq!(reply.assert_status(200).body, "0123456789", "{range:?}");
        assert_eq!(reply.header("content-range"), None, "{range:?}");
    }
    let twice = get(&caller, &body, &[(header::RANGE, "bytes=0-0"), (header::RANGE, "bytes=1-1")]).await;
    assert_eq!(twice.assert_status(200).body, "0123456789");
}

#[tokio::test]
async fn ranges_without_a_byte_in_them_are_416_and_say_how_long_the_file_is() {
    let documents = Documents::start().await;
    let caller = documents.caller();
    let body = stored(&caller, "x", "text/plain", "0123456789").await;
    for range in ["bytes=10-", "bytes=999999-", "bytes=-0", "bytes=10-20"] {
        let reply = get(&caller, &body, &[(header::RANGE, range)]).await;
        reply.assert_problem(416, "range_not_satisfiable");
        assert_eq!(reply.header("content-range"), Some("bytes */10"), "{range}");
    }
}

#[tokio::test]
async fn an_empty_file_has_no_first_byte_but_an_end() {
    let documents = Documents::start().await;
    let caller = documents.caller();
    let body = stored(&caller, "x", "text/plain", "").await;
    for range in ["bytes=0-0", "bytes=0-", "bytes=-0"] {
        let reply = get(&caller, &body, &[(header::RANGE, range)]).await;
        reply.assert_problem(416, "range_not_satisfiable");
        assert_eq!(reply.header("content-range"), Some("bytes */0"), "{range}");
    }
    for range in ["bytes=-1", "bytes=5-2"] {
        let reply = get(&caller, &body, &[(header::RANGE, range)]).await;
        assert!(reply.assert_status(200).body.is_empty(), "{range}");
    }
}

#[tokio::test]
async fn a_copy_at_hand_is_not_sent_again() {
    let documents = Documents::start().await;
    let caller = documents.caller();
    let body = stored(&caller, "x", "text/plain", "hello").await;
    let first = get(&caller, &body, &[]).await;
    let (etag, modified) = (first.header("etag").unwrap(), first.header("last-modified").unwrap());
    for known in [etag, "*", &format!("W/{etag}"), &format!("\"other\", {etag}")] {
        for method in [Method::GET, Method::HEAD] {
            let reply = ask(&caller, method, &body, &[(header::IF_NONE_MATCH, known)]).await;
            assert!(reply.assert_status(304).body.is_empty());
            assert_eq!(reply.header("etag"), Some(etag));
            assert_eq!(reply.header("cache-control"), Some("private, no-cache"));
        }
    }
    get(&caller, &body, &[(header::IF_MODIFIED_SINCE, modified)]).await.assert_status(304);
    // A condition goes before a range.
    get(&caller, &body, &[(header::IF_NONE_MATCH, etag), (header::RANGE, "bytes=0-0")]).await.assert_status(304);
    for other in ["\"other\"", "nonsense", ""] {
        assert_eq!(get(&caller, &body, &[(header::IF_NONE_MATCH, other)]).await.assert_status(200).body, "hello");
    }
}

#[tokio::test]
async fn a_range_is_given_only_of_the_content_that_it_was_begun_with() {
    let documents = Documents::start().await;
    let caller = documents.caller();
    let body = stored(&caller, "x", "text/plain", "hello").await;
    let first = get(&caller, &body, &[]).await;
    let (etag, modified) = (first.header("etag").unwrap(), first.header("last-modified").unwrap());
    for same in [etag, modified] {
        let reply = get(&caller, &body, &[(header::RANGE, "bytes=1-2"), (header::IF_RANGE, same)]).await;
        assert_eq!(reply.assert_status(206).body, "el", "{same}");
    }
    for other in ["\"other\"", &format!("W/{etag}"), "Thu, 01 Jan 1970 00:00:00 GMT", "nonsense"] {
        let reply = get(&caller, &body, &[(header::RANGE, "bytes=1-2"), (header::IF_RANGE, other)]).await;
        assert_eq!(reply.assert_status(200).body, "hello", "{other}");
        // Without this content there is nothing unsatisfiable about it either.
        let reply = get(&caller, &body, &[(header::RANGE, "bytes=99-"), (header::IF_RANGE, other)]).await;
        reply.assert_status(200);
    }
}

#[tokio::test]
async fn content_that_is_not_the_wanted_one_is_412() {
    let documents = Documents::start().await;
    let caller = documents.caller();
    let body = stored(&caller, "x", "text/plain", "hello").await;
    let etag = get(&caller, &body, &[]).await.header("etag").unwrap().to_owned();
    get(&caller, &body, &[(header::IF_MATCH, &etag)]).await.assert_status(200);
    get(&caller, &body, &[(header::IF_MATCH, "\"other\"")]).await.assert_problem(412, "precondition_failed");
    let long_ago = "Thu, 01 Jan 1970 00:00:00 GMT";
    get(&caller, &body, &[(header::IF_UNMODIFIED_SINCE, long_ago)]).await.assert_problem(412, "precondition_failed");
    get(&caller, &body, &[(header::IF_MATCH, "nonsense")]).await.assert_problem(400, "invalid_if_match");
}

#[tokio::test]
async fn head_says_what_get_would_and_does_not_ask_the_store() {
    let documents = Documents::start().await;
    let caller = documents.caller();
    for content in ["", "hello"] {
        let body = stored(&caller, "x", "text/plain", content).await;
        let full = get(&caller, &body, &[]).await;
        documents.store.stop().await;
        let head = caller.head(&content_path(&body)).await;
        let ranged = ask(&caller, Method::HEAD, &body, &[(header::RANGE, "bytes=0-0")]).await;
        documents.store.resume().await;
        for reply in [head, ranged] {
            assert_eq!(reply.assert_status(200).header("content-length"), Some(content.len().to_string().as_str()));
            for (name, value) in &full.headers {
                if !["x-request-id", "server-timing", "date"].contains(&name.as_str()) {
                    assert_eq!(reply.headers.get(name), Some(value), "{name}");
                }
            }
        }
    }
}

#[tokio::test]
async fn nobody_else_gets_the_content() {
    let documents = Documents::start().await;
    let (ada, bob) = (documents.caller(), documents.app.as_user(&documents.user("bob@example.com")));
    let body = stored(&ada, "mine.txt", "text/plain", "secret").await;
    let etag = format!("\"{}\"", sha256(b"secret"));
    get(&bob, &body, &[]).await.assert_problem(404, "not_found");
    bob.head(&content_path(&body)).await.assert_status(404);
    // Not even whether a copy is right.
    get(&bob, &body, &[(header::IF_NONE_MATCH, &etag)]).await.assert_problem(404, "not_found");
    get(&documents.app.anonymous(), &body, &[]).await.assert_problem(401, "token_missing");
}
