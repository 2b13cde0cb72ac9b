//! The service under test with what it needs: a database and an object store of its own, an issuer, and a clock that stands still.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use document::{Config, DocumentKey, DocumentState, Swept};
use futures_util::{Stream, StreamExt, stream};
use serde_json::Value;
use service_kit::clock::{Clock, ManualClock, SystemClock};
use service_kit::config::{self, Environment};
use service_kit::database::{Connection, Pool};
use sha2::{Digest, Sha256};
use test_support::{
    App, Caller, JwksAnswer, JwksStub, Reply, TestDatabase, TestIssuer, TestObjectStore, TestUser, eventually,
};
use time::OffsetDateTime;
use uuid::Uuid;

pub(crate) const MIB: usize = 1024 * 1024;

/// A served document service. Its background work is not running: tests sweep when they want to.
pub(crate) struct Documents {
    pub(crate) app: App,
    /// The service's own pool.
    pub(crate) pool: Pool,
    pub(crate) state: DocumentState,
    pub(crate) store: TestObjectStore,
    pub(crate) database: TestDatabase,
    pub(crate) clock: ManualClock,
    issuer: TestIssuer,
    _keys: JwksStub,
}

impl Documents {
    pub(crate) async fn start() -> Self {
        Self::start_with(&[], &[]).await
    }

    /// With variables for the service, and others for its server.
    pub(crate) async fn start_with(service: &[(&str, &str)], server: &[(&str, &str)]) -> Self {
        Self::start_on(TestObjectStore::start().await, service, server).await
    }

    /// On a store that a test has prepared. The clock starts at the time of the machine, which is the store's.
    pub(crate) async fn start_on(store: TestObjectStore, service: &[(&str, &str)], server: &[(&str, &str)]) -> Self {
        let clock = ManualClock::at(SystemClock.now());
        let issuer = TestIssuer::local(Arc::new(clock.clone()));
        let keys = JwksStub::start(JwksAnswer::Keys(issuer.jwks())).await;
        let database = TestDatabase::create().await;
        let (url, jwks_url, endpoint) = (database.url("document"), keys.url(), store.endpoint());
        let policy = issuer.policy();
        let wiring = [
            ("DATABASE_URL", url.as_str()),
            ("AUTH_ISSUER", policy.issuer()),
            ("AUTH_JWKS_URL", jwks_url.as_str()),
            ("S3_BUCKET", store.bucket()),
            ("S3_ENDPOINT", &endpoint),
            ("S3_FORCE_PATH_STYLE", "on"),
            ("AWS_ACCESS_KEY_ID", store.access_key()),
            ("AWS_SECRET_ACCESS_KEY", store.secret_key()),
        ];
        let environment = Environment::from_pairs(wiring.into_iter().chain(service.iter().copied()));
        let config = config::load(&environment, Config::read).expect("a valid configuration");
        let (service, state) = document::build_with_state(config, Arc::new(clock.clone())).await.expect("a service");
        let pool = service.pool.clone().expect("a database");
        let app = App::serve_with(service, server).await;
        Self { app, pool, state, store, database, clock, issuer, _keys: keys }
    }

    /// Somebody with this email.
    pub(crate) fn user(&self, email: &str) -> TestUser {
        self.issuer.user(email)
    }

    /// A caller with a token that is good now.
    pub(crate) fn caller(&self) -> Caller {
        self.app.as_user(&self.user("ada@example.com"))
    }

    /// A caller with another token of the same user, for after the clock was moved.
    pub(crate) fn caller_again(&self, user: &TestUser) -> Caller {
        self.app.as_bearer(self.issuer.token(user.id))
    }

    pub(crate) fn now(&self) -> OffsetDateTime {
        self.clock.now()
    }

    /// Sweeps as if `later` had passed.
    pub(crate) async fn sweep_after(&self, later: Duration) -> Swept {
        self.state.settled().await;
        self.clock.advance(later);
        self.state.sweeper().sweep().await
    }

    /// Takes so many connections out of the pool, however long the machine takes to open them.
    pub(crate) async fn take_connections(&self, count: usize) -> Vec<Connection> {
        let mut taken = Vec::new();
        eventually("the connections are open", async || {
            taken.extend(self.pool.acquire().await);
            taken.len() == count
        })
        .await;
        taken
    }

    /// Every row as (document, state).
    pub(crate) async fn rows(&self) -> Vec<(DocumentKey, String)> {
        let admin = self.database.admin().await;
        let rows = admin.query("SELECT owner_id, id, state FROM document.documents ORDER BY owner_id, id", &[]).await;
        let key = |owner_id: Uuid, id: Uuid| DocumentKey { owner_id, id };
        rows.expect("rows").iter().map(|row| (key(row.get(0), row.get(1)), row.get(2))).collect()
    }

    /// Asserts that nothing is left anywhere: no row, no object, no multipart upload, no byte.
    pub(crate) async fn assert_nothing_is_left(&self) {
        self.state.settled().await;
        assert_eq!(self.rows().await, [], "rows");
        assert_eq!(self.store.keys().await, Vec::<String>::new(), "objects");
        assert_eq!(self.store.unfinished_uploads().await, Vec::<String>::new(), "multipart uploads");
        assert_eq!(self.store.stored_bytes(), 0, "bytes");
    }

    /// The objects are exactly those of the stored rows.
    pub(crate) async fn assert_rows_and_objects_agree(&self) {
        let rows = self.rows().await;
        assert!(rows.iter().all(|(_, state)| state == "stored"), "{rows:?}");
        let mut expected: Vec<_> = rows.iter().map(|(key, _)| key.to_string()).collect();
        expected.sort();
        assert_eq!(self.store.keys().await, expected);
        assert_eq!(self.store.unfinished_uploads().await, Vec::<String>::new());
    }
}

/// Uploads `content` as a raw body and gives the metadata.
pub(crate) async fn stored(caller: &Caller, name: &str, content_type: &str, content: impl Into<Bytes>) -> Value {
    let reply = post(caller, name, content_type, content).await;
    reply.assert_status(201).json()
}

/// Uploads `content` as a raw body.
pub(crate) async fn post(caller: &Caller, name: &str, content_type: &str, content: impl Into<Bytes>) -> Reply {
    let path = format!("/v1/documents?name={}", percent_encode(name));
    caller.post_raw(&path, content_type, content.into()).await
}

/// Uploads a form as it is.
pub(crate) async fn post_form(caller: &Caller, form: impl Into<reqwest::Body>) -> Reply {
    caller.post_raw("/v1/documents", FORM, form).await
}

/// The content type of [`form`].
pub(crate) const FORM: &str = "multipart/form-data; boundary=BOUNDARY";

/// A form with one file.
pub(crate) fn form(disposition: &str, content_type: &str, content: &[u8]) -> Vec<u8> {
    let head =
        format!("--BOUNDARY\r\nContent-Disposition: form-data; {disposition}\r\nContent-Type: {content_type}\r\n\r\n");
    [head.as_bytes(), content, b"\r\n--BOUNDARY--\r\n"].concat()
}

/// Where a document's bytes are.
pub(crate) fn content_path(document: &Value) -> String {
    format!("/v1/documents/{}/content", document["id"].as_str().expect("an id"))
}

/// Where a document's metadata is.
pub(crate) fn document_path(document: &Value) -> String {
    format!("/v1/documents/{}", document["id"].as_str().expect("an id"))
}

/// SHA-256 in hexadecimal.
pub(crate) fn sha256(content: &[u8]) -> String {
    hex::encode(Sha256::digest(content))
}

/// Bytes without a short period, so that parts in the wrong order are noticed.
pub(crate) fn noise(length: usize) -> Bytes {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes.into()
}

/// `content` in chunks, without an announced length.
pub(crate) fn chunked(content: Bytes) -> reqwest::Body {
    reqwest::Body::wrap_stream(chunks(content))
}

/// `content` in chunks of 64 KiB.
pub(crate) fn chunks(content: Bytes) -> impl Stream<Item = std::io::Result<Bytes>> + Send + 'static {
    let starts = (0..content.len()).step_by(64 * 1024);
    stream::iter(starts).map(move |start| Ok(content.slice(start..content.len().min(start + 64 * 1024))))
}

/// For a query string; everything but letters and digits is encoded.
pub(crate) fn percent_encode(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}
