//! What can go wrong with a request, and what it is called.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use loadgen::run::{Event, LoadError};
use url::Url;

use crate::driving::{closed, drive, drive_watched, get_user, plan, register};
use crate::stub::{Act, Stub, TIMING};

const PROBLEM: (&str, &str) = ("content-type", "application/problem+json");

/// Answers get-user so, and everything else rightly.
fn answering(act: Act) -> Stub {
    Stub::start_with(move |_, path| if path == "/v1/actors/me" { act.clone() } else { Act::Answer })
}

async fn failures_of(act: Act) -> Vec<String> {
    let stub = answering(act);
    let ran = drive(plan(closed(2, 0.05, 1, &get_user()), stub.url())).await;
    let seen = ran.endpoint("get-user");
    assert!(seen.latency.is_empty() && seen.stages.is_empty(), "a failure improves nothing");
    assert_eq!(seen.failed_latency.count(), ran.work().completed);
    assert_eq!(ran.failures("get-user").values().sum::<u64>(), seen.failed_latency.count());
    ran.failures("get-user").into_keys().collect()
}

#[tokio::test]
async fn answers_that_are_not_the_expected_are_named_by_code_and_answerer() {
    let shed =
        Act::Other(503, &[PROBLEM, ("server-timing", TIMING), ("retry-after", "1")], r#"{"code":"pool_timeout"}"#);
    assert_eq!(failures_of(shed).await, ["503 pool_timeout Task"]);
    let bad_gateway = Act::Other(502, &[("server", "awselb/2.0"), ("content-type", "text/html")], "<html>");
    assert_eq!(failures_of(bad_gateway).await, ["502 check:status Balancer"]);
    let own = Act::Other(504, &[PROBLEM, ("server", "datum-balancer")], r#"{"code":"gateway_timeout"}"#);
    assert_eq!(failures_of(own).await, ["504 gateway_timeout Balancer"]);
    let nobody_knows = Act::Other(500, &[], "");
    assert_eq!(failures_of(nobody_knows).await, ["500 check:status Unknown"]);
}

#[tokio::test]
async fn a_right_status_with_a_wrong_body_is_a_failure() {
    let somebody_else = r#"{"id":"1","email":"eve@example.com"}"#;
    let fast = Act::Other(200, &[("server-timing", TIMING)], somebody_else);
    assert_eq!(failures_of(fast).await, ["200 check:email Task"]);
    assert_eq!(failures_of(Act::Other(200, &[], "not json")).await, ["200 check:body Unknown"]);
}

#[tokio::test]
async fn a_connection_that_breaks_under_a_request_is_reset() {
    assert_eq!(failures_of(Act::Hang).await, ["- reset Nobody"]);
}

#[tokio::test]
async fn no_answer_in_time_is_a_timeout_and_the_late_answer_is_nobody_elses() {
    let stub = answering(Act::WhenOpen);
    stub.gate(false);
    let mut plan = plan(closed(2, 0.0, 2, &get_user()), stub.url());
    plan.timeouts.request = Duration::from_millis(100);
    let ran = drive_watched(plan, |event, _| {
        if matches!(event, Event::Interval(interval) if interval.second == 0) {
            stub.gate(true);
        }
    });
    let ran = ran.await.unwrap();
    assert!(ran.failures("get-user").keys().eq(["- timeout Nobody"]), "{:?}", ran.failures("get-user"));
    let seen = ran.endpoint("get-user");
    assert!(seen.failed_latency.min_ms().unwrap() >= 99.9);
    assert!(seen.latency.count() > 0, "afterwards answers are right again");
}

#[tokio::test]
async fn a_target_that_is_gone_refuses_connections() {
    let stub = Mutex::new(Some(Stub::start()));
    let url = stub.lock().unwrap().as_ref().unwrap().url();
    let ran = drive_watched(plan(closed(2, 0.05, 3, &get_user()), url), |event, _| {
        if matches!(event, Event::Interval(interval) if interval.second == 0) {
            drop(stub.lock().unwrap().take());
        }
    });
    let failures = ran.await.unwrap().failures("get-user");
    assert!(failures["- connect Nobody"] > 0, "{failures:?}");
}

#[tokio::test]
async fn what_is_no_http_is_a_protocol_error() {
    let url = raw(|_| b"what is this?\r\n\r\n".to_vec());
    let ran = drive(plan(closed(1, 0.05, 1, &register()), url)).await;
    assert!(ran.failures("register").keys().eq(["- protocol Nobody"]), "{:?}", ran.failures("register"));
}

#[tokio::test]
async fn a_connection_closed_between_two_requests_is_dialled_anew_without_an_error() {
    // It says that it keeps the connection, and closes it once the answer is written.
    let url = raw(|request| {
        let email = request.split("\"email\":\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
        let body = format!(r#"{{"id":"1","email":"{email}"}}"#);
        format!("HTTP/1.1 201 Created\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
    });
    let ran = drive(plan(closed(2, 0.05, 1, &register()), url)).await;
    assert!(ran.endpoint("register").latency.count() >= 4);
    assert_eq!(ran.all_failures(), 0, "{:?}", ran.failures("register"));

    let stub = answering(Act::AnswerAndClose);
    let ran = drive(plan(closed(2, 0.02, 1, &get_user()), stub.url())).await;
    assert_eq!(ran.all_failures(), 0, "{:?}", ran.failures("get-user"));
    assert!(stub.connections() > 4);
}

#[tokio::test]
async fn garbage_in_server_timing_is_no_failure_and_no_stage() {
    let stub = answering(Act::AnswerTimed("total;dur=NaN, db;dur=-5, ;;,,=, db;dur=1.5, mystery;dur=3"));
    let ran = drive(plan(closed(2, 0.05, 1, &get_user()), stub.url())).await;
    let seen = ran.endpoint("get-user");
    assert_eq!(ran.all_failures(), 0);
    assert!(seen.unattributed.is_empty(), "there is no total to subtract");
    assert!(seen.stages.keys().eq(["db"]), "{:?}", seen.stages.keys());
}

#[tokio::test]
async fn a_user_who_cannot_be_set_up_ends_the_run_before_the_load() {
    let stub = Stub::start_with(|_, path| match path {
        "/v1/auth/login" => Act::Other(401, &[PROBLEM], r#"{"code":"invalid_credentials"}"#),
        _ => Act::Answer,
    });
    let refused = drive_watched(plan(closed(2, 0.0, 5, &get_user()), stub.url()), |_, _| {}).await;
    let Err(LoadError::SetUp { reason, .. }) = refused else { panic!("it began") };
    assert_eq!(reason, "login: 401 invalid_credentials");
}

#[tokio::test]
async fn accounts_that_an_earlier_run_made_are_used_and_a_busy_target_is_asked_again() {
    let stub = Stub::start_with(|number, path| match path {
        "/v1/auth/register" => Act::Other(409, &[PROBLEM], r#"{"code":"email_taken"}"#),
        "/v1/auth/login" if number < 2 => Act::Other(503, &[PROBLEM, ("retry-after", "0")], r#"{"code":"busy"}"#),
        _ => Act::Answer,
    });
    let ran = drive(plan(closed(1, 0.05, 1, &get_user()), stub.url())).await;
    assert_eq!(ran.all_failures(), 0);
    assert!(ran.endpoint("get-user").latency.count() > 0);
}

/// A server that answers each connection's first request with what `answer` makes of it, and closes.
fn raw(answer: impl Fn(&str) -> Vec<u8> + Send + 'static) -> Url {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = Url::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    thread::spawn(move || {
        let answer = std::sync::Arc::new(Mutex::new(answer));
        for stream in listener.incoming() {
            let (mut stream, answer) = (stream.unwrap(), std::sync::Arc::clone(&answer));
            thread::spawn(move || {
                let mut request = Vec::new();
                let mut part = [0; 4096];
                // Every request here has a body that ends with a brace.
                while !request.ends_with(b"}") {
                    match stream.read(&mut part) {
                        Ok(0) | Err(_) => return,
                        Ok(read) => request.extend_from_slice(&part[..read]),
                    }
                }
                let reply = answer.lock().unwrap()(&String::from_utf8_lossy(&request));
                let _ = stream.write_all(&reply);
            });
        }
    });
    url
}
