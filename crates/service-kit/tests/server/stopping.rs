//! The four steps of stopping.

use service_kit::server::Outcome;

use crate::harness::{Harness, patiently};

const HELD: &str = "GET /held HTTP/1.1\r\nhost: x\r\n\r\n";

#[tokio::test]
async fn readiness_fails_first_while_the_listener_stays_open() {
    let harness = Harness::start(&[("SHUTDOWN_DELAY_MS", "60000")]).await;
    let ask = "GET /ready HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    assert_eq!(harness.exchange(ask).await.status(), 200);
    harness.shutdown.begin();
    patiently(harness.shutdown.requested()).await;
    // The flag is raised by the server's own task.
    while harness.exchange(ask).await.status() == 200 {
        tokio::task::yield_now().await;
    }
    harness.exchange(ask).await.assert_problem(503, "not_ready");
    let alive = harness.exchange("GET /live HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert_eq!(alive.status(), 200);
    assert_eq!(alive.header("connection").as_deref(), Some("close"));
    harness.shutdown.begin();
    // Whether the last exchange's connection is already gone by now is a race that does not matter.
    harness.outcome().await;
}

#[tokio::test]
async fn requests_in_flight_finish_with_connection_close() {
    let harness = Harness::start(&[]).await;
    let mut arrivals = harness.gate.subscribe();
    let mut connection = harness.connect().await;
    connection.send(HELD).await;
    harness.held(&mut arrivals).await;
    harness.shutdown.begin();
    // The listener is closed once connecting fails.
    while tokio::net::TcpStream::connect(harness.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    harness.gate.send_replace(true);
    let answer = connection.read_to_end().await;
    assert_eq!((answer.status(), answer.body()), (200, &b"released"[..]));
    assert_eq!(answer.header("connection").as_deref(), Some("close"));
    drop(connection);
    assert_eq!(harness.outcome().await, Outcome::Drained);
}

#[tokio::test]
async fn idle_connections_do_not_hold_up_the_stop() {
    let harness = Harness::start(&[]).await;
    let mut connection = harness.connect().await;
    connection.send("GET /live HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert_eq!(connection.read_answer().await.status(), 200);
    harness.shutdown.begin();
    assert_eq!(connection.read_to_end().await.0, b"");
    drop(connection);
    assert_eq!(harness.outcome().await, Outcome::Drained);
}

#[tokio::test]
async fn the_deadline_cuts_what_does_not_finish() {
    let harness = Harness::start(&[("SHUTDOWN_DEADLINE_MS", "100")]).await;
    let mut arrivals = harness.gate.subscribe();
    let mut connection = harness.connect().await;
    connection.send(HELD).await;
    harness.held(&mut arrivals).await;
    harness.shutdown.begin();
    assert_eq!(connection.read_to_end().await.0, b"");
    assert_eq!(harness.outcome().await, Outcome::Cut { connections: 1 });
}

#[tokio::test]
async fn a_second_request_to_stop_ends_at_once() {
    let harness = Harness::start(&[("SHUTDOWN_DELAY_MS", "60000"), ("SHUTDOWN_DEADLINE_MS", "60000")]).await;
    let mut arrivals = harness.gate.subscribe();
    let mut connection = harness.connect().await;
    connection.send(HELD).await;
    harness.held(&mut arrivals).await;
    harness.shutdown.begin();
    harness.shutdown.begin();
    assert_eq!(harness.outcome().await, Outcome::Cut { connections: 1 });
}
