//! A small service without a database, and raw sockets to talk to it.

use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::routing::{get, post};
use http_body_util::BodyExt;
use service_kit::config::{self, Environment};
use service_kit::context::ClientAddress;
use service_kit::database::{DatabaseConfig, Pool};
use service_kit::extract::{Json, Path, Query};
use service_kit::fields::{Fields, FromFields, Invalid};
use service_kit::health::Readiness;
use service_kit::middleware::HttpConfig;
use service_kit::problem::Problem;
use service_kit::server::{self, Outcome, ServerConfig, Shutdown};
use service_kit::service::{self, Service};
use service_kit::stages::{self, Stage};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Longer than anything takes; whoever waits for it has hung.
const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) struct Echo {
    pub(crate) text: String,
}

impl FromFields for Echo {
    fn from_fields(fields: &mut Fields) -> Option<Self> {
        let text = fields.required("text", |text| {
            if text.is_empty() { Err(Invalid::new("empty", "The text is empty.")) } else { Ok(text) }
        });
        Some(Self { text: text? })
    }
}

/// Opened by a test, so that handlers can be held without sleeping.
pub(crate) type Gate = watch::Sender<bool>;

fn routes(gate: &Gate) -> Router {
    let (held, arrived) = (gate.subscribe(), gate.clone());
    Router::new()
        .route("/echo", post(async |Json(echo): Json<Echo>| echo.text))
        .route("/query", get(async |Query(echo): Query<Echo>| echo.text))
        .route("/path/{number}", get(async |Path(number): Path<u32>| number.to_string()))
        .route("/client", get(async |ClientAddress(address): ClientAddress| address.to_string()))
        .route("/panic", get(panicking))
        .route("/staged", get(async || stages::record(Stage::Db, Duration::from_millis(7))))
        .route("/every-stage", get(every_stage))
        .route("/ignore-body", post(async || Problem::unauthorized("token_missing", "Not read.")))
        .route(
            "/drain-body",
            post(async |request: Request| -> service_kit::Result<String> {
                let body = request.into_body().collect().await;
                let body = body.map_err(|error| service_kit::extract::broken_body(&error))?;
                Ok(body.to_bytes().len().to_string())
            }),
        )
        .route("/large", get(async || "x".repeat(64 * 1024 * 1024)))
        .route(
            "/held",
            get(move || {
                let (mut held, arrived) = (held.clone(), arrived.clone());
                async move {
                    arrived.send_modify(|_| ());
                    let _ = held.wait_for(|open| *open).await;
                    "released"
                }
            }),
        )
}

async fn every_stage() {
    for stage in Stage::ALL {
        stages::timed(stage, std::future::ready(())).await;
    }
}

async fn panicking() -> &'static str {
    panic!("on purpose: SELECT secret FROM users")
}

pub(crate) struct Harness {
    pub(crate) address: std::net::SocketAddr,
    pub(crate) shutdown: Shutdown,
    pub(crate) gate: Gate,
    server: JoinHandle<Outcome>,
}

impl Harness {
    pub(crate) async fn start(variables: &[(&str, &str)]) -> Self {
        let gate = watch::Sender::new(false);
        let always = [("DATABASE_URL", "postgres://nobody@127.0.0.1:1/none"), ("SHUTDOWN_DELAY_MS", "0")];
        let environment = Environment::from_pairs(always.iter().chain(variables).copied());
        let (http, server_config, database) = config::load(&environment, |settings| {
            (HttpConfig::read(settings), ServerConfig::read(settings), DatabaseConfig::read(settings))
        })
        .expect("a valid configuration");
        let service = Service {
            name: "example",
            router: routes(&gate),
            openapi: utoipa::openapi::OpenApiBuilder::new().build(),
            readiness: Readiness::new(),
            pool: Some(Pool::new(database).expect("a pool that opens nothing")),
            background: Vec::new(),
            longest_request: None,
            finish: None,
        };
        let router = service::assemble(&service, &http);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let shutdown = Shutdown::new(service.readiness.draining());
        let signal = shutdown.clone();
        let server = tokio::spawn(async move { server::serve(listener, router, &server_config, signal).await });
        Self { address, shutdown, gate, server }
    }

    pub(crate) async fn connect(&self) -> Connection {
        Connection(TcpStream::connect(self.address).await.expect("connected"))
    }

    /// One request on a connection of its own; the answer up to the server's close.
    pub(crate) async fn exchange(&self, request: impl AsRef<[u8]>) -> Answer {
        let mut connection = self.connect().await;
        connection.send(request).await;
        connection.read_to_end().await
    }

    /// Waits until `count` requests to `/held` have arrived.
    pub(crate) async fn held(&self, arrivals: &mut watch::Receiver<bool>) {
        patiently(arrivals.changed()).await.expect("the gate lives");
    }

    pub(crate) async fn outcome(self) -> Outcome {
        patiently(self.server).await.expect("the server does not panic")
    }
}

pub(crate) async fn patiently<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("it hangs")
}

pub(crate) struct Connection(TcpStream);

impl Connection {
    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).await.expect("written");
    }

    /// Writes as much as the server takes; a refusal may come first.
    pub(crate) async fn try_send(&mut self, bytes: &[u8]) {
        let _ = patiently(self.0.write_all(bytes)).await;
    }

    pub(crate) async fn read_to_end(&mut self) -> Answer {
        let mut bytes = Vec::new();
        patiently(self.0.read_to_end(&mut bytes)).await.expect("closed, not reset");
        Answer(bytes)
    }

    /// Reads one answer with a `content-length`, leaving the connection open.
    pub(crate) async fn read_answer(&mut self) -> Answer {
        let mut bytes = Vec::new();
        loop {
            let answer = Answer(bytes);
            if answer.is_whole() {
                return answer;
            }
            bytes = answer.0;
            let read = patiently(self.0.read_buf(&mut bytes)).await.expect("not reset");
            assert!(read > 0, "closed within an answer: {}", String::from_utf8_lossy(&bytes));
        }
    }
}

pub(crate) struct Answer(pub(crate) Vec<u8>);

impl Answer {
    fn split(&self) -> (String, &[u8]) {
        let end = self.0.windows(4).position(|window| window == b"\r\n\r\n").unwrap_or(self.0.len());
        (String::from_utf8_lossy(&self.0[..end]).to_lowercase(), self.0.get(end + 4..).unwrap_or_default())
    }

    fn is_whole(&self) -> bool {
        let (_, body) = self.split();
        self.0.windows(4).any(|window| window == b"\r\n\r\n")
            && self.header("content-length").is_some_and(|length| length.parse() == Ok(body.len()))
    }

    pub(crate) fn status(&self) -> u16 {
        self.split().0.get(9..12).and_then(|status| status.parse().ok()).unwrap_or(0)
    }

    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let (head, _) = self.split();
        head.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim().to_owned()))
    }

    pub(crate) fn body(&self) -> &[u8] {
        self.split().1
    }

    /// Asserts that this is a problem of the one shape.
    pub(crate) fn assert_problem(&self, status: u16, code: &str) {
        let shown = String::from_utf8_lossy(&self.0);
        assert_eq!(self.status(), status, "{shown}");
        assert_eq!(self.header("content-type").as_deref(), Some("application/problem+json"), "{shown}");
        let body: serde_json::Value = serde_json::from_slice(self.body()).expect("a JSON body");
        assert_eq!((&body["status"], &body["code"]), (&status.into(), &code.into()), "{shown}");
        assert_eq!(body["request_id"].as_str().map(str::to_owned), self.header("x-request-id"), "{shown}");
        assert!(body["request_id"].is_string(), "{shown}");
        assert!(self.header("server-timing").is_some_and(|timing| timing.contains("total;dur=")), "{shown}");
    }
}
