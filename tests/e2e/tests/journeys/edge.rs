//! What the balancer answers itself, what it lets through, and to whom.

use e2e::Person;
use http::Method;
use test_support::{Caller, Reply, exchange_raw};

use crate::SYSTEM;

#[tokio::test]
async fn the_balancer_says_that_it_lives() {
    let system = SYSTEM.get();
    let reply = system.anyone().get("/live").await;
    assert!(reply.assert_status(200).is_balancers_own());
    system.anyone().head("/live").await.assert_status(200);
}

#[tokio::test]
async fn paths_of_tasks_and_paths_of_nobody_are_not_found() {
    let system = SYSTEM.get();
    for path in
        ["/ready", "/metrics", "/", "/v1", "/v1/", "/v1/users", "/v2/actors/me", "/nowhere", "/%00", "/v1actors"]
    {
        let reply = system.anyone().get(path).await;
        reply.assert_problem(404, "not_found");
        assert!(reply.is_balancers_own(), "{path} reached a task");
    }
}

#[tokio::test]
async fn both_forms_of_a_prefix_reach_the_service() {
    let system = SYSTEM.get();
    for (path, status, code) in [
        ("/v1/auth", 404, "not_found"),
        ("/v1/auth/nowhere", 404, "not_found"),
        ("/v1/actors", 404, "not_found"),
        ("/v1/actors/me", 401, "token_missing"),
        ("/v1/documents", 401, "token_missing"),
        ("/v1/documents/", 404, "not_found"),
        ("/v1/documents/00000000-0000-0000-0000-000000000001", 401, "token_missing"),
    ] {
        let reply = system.anyone().get(path).await;
        reply.assert_problem(status, code);
        assert!(!reply.is_balancers_own(), "{path} reached no task");
    }
    let keys = system.anyone().get("/.well-known/jwks.json").await;
    assert_eq!(keys.assert_status(200).json()["keys"][0]["alg"], "ES256");
}

#[tokio::test]
async fn the_whole_api_is_described_in_one_document_with_a_page_to_try_it() {
    let system = SYSTEM.get();
    let anyone = system.anyone();
    let description = anyone.get("/openapi.json").await;
    let description = description.assert_status(200).json();
    assert_eq!(description["openapi"], "3.1.0");
    for (path, method) in [
        ("/v1/auth/register", "post"),
        ("/v1/auth/login", "post"),
        ("/v1/auth/refresh", "post"),
        ("/v1/auth/logout", "post"),
        ("/v1/auth/password", "post"),
        ("/.well-known/jwks.json", "get"),
        ("/v1/actors/me", "get"),
        ("/v1/actors/me", "patch"),
        ("/v1/actors/{id}", "get"),
        ("/v1/documents", "post"),
        ("/v1/documents", "get"),
        ("/v1/documents/{id}", "get"),
        ("/v1/documents/{id}", "delete"),
        ("/v1/documents/{id}/content", "get"),
    ] {
        assert!(description["paths"][path][method].is_object(), "{method} {path} is not described");
    }
    let page = anyone.get("/docs/").await;
    assert!(page.assert_status(200).header("content-type").unwrap().starts_with("text/html"));
    for script in ["/docs/swagger-ui-bundle.js", "/docs/swagger-ui.css"] {
        assert!(anyone.get(script).await.assert_status(200).body.len() > 1_000, "{script}");
    }
    assert!(!page.text().contains("https://"), "the page needs the internet: {}", page.text());
}

/// How many requests for `route` a task has answered.
async fn answered(port: u16, route: &str) -> f64 {
    let metrics = Caller::at(format!("http://127.0.0.1:{port}")).get("/metrics").await;
    let route = format!("route=\"{route}\"");
    let counts = metrics.assert_status(200).text().lines().filter(|line| {
        !line.starts_with('#') && line.contains("_count{") && line.contains(&route) && line.contains("status=")
    });
    counts.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

#[tokio::test]
async fn every_task_gets_its_share() {
    let system = SYSTEM.get();
    let ada = Person::new(&system.anyone(), "share").await;
    for (service, path, route) in
        [("actor", "/v1/actors/me", "/v1/actors/me"), ("document", "/v1/documents", "/v1/documents")]
    {
        let tasks = system.tasks(service);
        assert_eq!(tasks.len(), 2);
        let mut before = Vec::new();
        for task in &tasks {
            before.push(answered(task.port, route).await);
        }
        for _ in 0..20 {
            ada.caller.get(path).await.assert_status(200);
        }
        for (task, before) in tasks.iter().zip(before) {
            assert!(answered(task.port, route).await > before, "{service}-{} got no request", task.number);
        }
    }
}

#[tokio::test]
async fn a_request_id_goes_through_and_comes_back() {
    let system = SYSTEM.get();
    let anyone = system.anyone();
    for path in ["/v1/actors/me", "/live", "/nowhere"] {
        let reply = anyone.request(anyone.build(Method::GET, path).header("x-request-id", "journey-1.a_B")).await;
        assert_eq!(reply.header("x-request-id"), Some("journey-1.a_B"), "{path}");
        let first = anyone.get(path).await.header("x-request-id").map(str::to_owned);
        assert_ne!(first.as_deref(), anyone.get(path).await.header("x-request-id"), "{path}");
    }
}

#[tokio::test]
async fn bytes_that_are_no_request_end_at_the_balancer() {
    let system = SYSTEM.get();
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n"[..],
        b"GET /v1/actors/me\xff HTTP/1.1\r\nhost: a\r\n\r\n",
        b"GET /v1/actors/me HTTP/1.1\r\nhost: a\r\nno colon\r\n\r\n",
        b"POST /v1/auth/login HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nabcdef",
    ] {
        let reply = Reply::from_bytes(&exchange_raw(system.address(), bytes).await);
        assert_eq!(reply.status, 400, "{}", bytes.escape_ascii());
    }
    system.anyone().get("/live").await.assert_status(200);
}
