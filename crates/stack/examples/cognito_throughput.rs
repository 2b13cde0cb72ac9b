//! How many logins a second the Cognito double carries on one core, and what each costs: it must be no bottleneck of what is
//! measured through it.
//!
//! ```sh
//! cargo run --release -p stack --example cognito_throughput -- [seconds] [connections]
//! ```

use std::time::{Duration, Instant};

use anyhow::Context;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::json;
use stack::cognito::{CognitoDouble, ControlClient, ImportedUser, Options};
use tokio::net::TcpStream;

/// Users who log in in turn.
const USERS: usize = 1_000;
/// The unit of /proc's CPU times on Linux (`USER_HZ`).
const TICKS_PER_SECOND: f64 = 100.0;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let seconds = numbers.next().transpose()?.unwrap_or(10);
    let connections = numbers.next().transpose()?.unwrap_or(16);
    let double = CognitoDouble::start(Options { threads: 1, ..Options::default() }).await?;
    let users: Vec<ImportedUser> = (0..USERS).map(user).collect();
    ControlClient::new(double.endpoint()).import(&users).await?;

    let (began, cpu) = (Instant::now(), cpu_seconds()?);
    let until = began + Duration::from_secs(seconds);
    let mut loads = tokio::task::JoinSet::new();
    for connection in 0..usize::try_from(connections)? {
        let (endpoint, client_id) = (double.endpoint(), double.access().client_id);
        loads.spawn(load(endpoint, client_id, connection, until));
    }
    let mut logins = 0;
    while let Some(done) = loads.join_next().await {
        logins += done??;
    }
    let (took, cpu) = (began.elapsed().as_secs_f64(), cpu_seconds()? - cpu);
    let logins = f64::from(logins);
    println!("{logins} logins in {took:.1} s over {connections} connections: {:.0} a second", logins / took);
    println!("{:.2} ms of the double's CPU time each: {:.0} a second and core", cpu / logins * 1e3, logins / cpu);
    Ok(())
}

fn user(n: usize) -> ImportedUser {
    ImportedUser { email: format!("user-{n}@example.com"), password: "correct horse battery staple".into(), sub: None }
}

/// Logs in, one login after the other on one connection; how many there were.
async fn load(endpoint: String, client_id: String, connection: usize, until: Instant) -> anyhow::Result<u32> {
    let address = endpoint.trim_start_matches("http://");
    let (mut sender, driver) = http1::handshake(TokioIo::new(TcpStream::connect(address).await?)).await?;
    tokio::spawn(driver);
    let mut logins = 0;
    while Instant::now() < until {
        let user = user((connection * 31 + logins as usize) % USERS);
        let input = json!({
            "ClientId": client_id,
            "AuthFlow": "USER_PASSWORD_AUTH",
            "AuthParameters": {"USERNAME": user.email, "PASSWORD": user.password},
        });
        let request = Request::post("/")
            .header("host", address)
            .header("x-amz-target", "AWSCognitoIdentityProviderService.InitiateAuth")
            .body(Full::new(Bytes::from(input.to_string())))?;
        let response = sender.send_request(request).await?;
        anyhow::ensure!(response.status().is_success(), "a login was answered {}", response.status());
        response.into_body().collect().await?;
        logins += 1;
    }
    Ok(logins)
}

/// CPU time of the double's threads so far, from proc(5).
fn cpu_seconds() -> anyhow::Result<f64> {
    let mut ticks = 0;
    for task in std::fs::read_dir("/proc/self/task").context("this needs Linux")? {
        let stat = std::fs::read_to_string(task?.path().join("stat"))?;
        if !stat.contains("(cognito-double") {
            continue;
        }
        // Fields 14 and 15, counted from the state, which follows the name in brackets and is field 3.
        let fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
        ticks += fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum::<u64>();
    }
    #[expect(clippy::cast_precision_loss, reason = "some thousands")]
    let seconds = ticks as f64 / TICKS_PER_SECOND;
    Ok(seconds)
}
