//! What is counted.

use metrics_exporter_prometheus::PrometheusBuilder;

use crate::support::{RawStub, Running, Stub, eventually};

#[tokio::test]
async fn requests_errors_and_connections_are_counted_by_group_and_target() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let rendered = recorder.handle();
    // The test's runtime has one thread, and so everything of it is recorded here.
    let _recording = metrics::set_default_local_recorder(&recorder);

    let stub = Stub::saying("hello").await;
    let running = Running::before(&[&stub]).await;
    let mut wire = running.wire().await;
    for _ in 0..3 {
        assert_eq!(wire.get("/v1/auth").await.status, 200);
    }
    assert_eq!(wire.get("/nowhere").await.status, 404);
    assert_eq!(wire.get("/v1/actors/me").await.status, 503);
    stub.kill();
    assert_eq!(running.get("/v1/auth").await.status, 502);

    let silent = RawStub::after_head(|stream, _| async move {
        let _stream = stream;
        std::future::pending::<()>().await;
    })
    .await;
    running.balancer.register("document", silent.address).unwrap();
    running.until(silent.address, |target| target.reason.is_none()).await;
    let mut leaving = running.wire().await;
    leaving.request("GET", "/v1/documents", "").await;
    running.until(silent.address, |target| target.outstanding == 1).await;
    drop(leaving);
    eventually(|| rendered.render().contains("balancer_client_disconnects_total 1\n")).await;

    let text = rendered.render();
    let target = stub.address;
    for line in [
        format!(r#"balancer_requests_total{{group="auth",target="{target}",status="200"}} 3"#),
        r#"balancer_requests_total{group="",target="",status="404"} 1"#.to_owned(),
        r#"balancer_requests_total{group="actor",target="",status="503"} 1"#.to_owned(),
        r#"balancer_requests_total{group="auth",target="",status="502"} 1"#.to_owned(),
        format!(r#"balancer_target_response_seconds_count{{group="auth",target="{target}"}} 3"#),
        format!(r#"balancer_target_connections_total{{group="auth",target="{target}"}} 1"#),
        format!(r#"balancer_target_connection_errors_total{{group="auth",target="{target}",kind="refused"}} 1"#),
        r#"balancer_targets{group="auth",state="healthy"} 1"#.to_owned(),
        "balancer_client_connections 1".to_owned(),
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
    }
}
