//! Emulators of Amazon Cognito that others wrote, where they are installed.
//!
//! `tests/cognito/requirements.txt` pins them. They live in a virtual environment: `.venv-emulators` at the root of the workspace, or the
//! one that `DATUM_EMULATORS` names. A test that needs one is left out where there is none, and says so; with
//! `DATUM_REQUIRE_EMULATORS=1`, as in CI, it fails instead.

use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::{env, fmt, fs};

use serde_json::{Value, json};

use crate::eventually;

/// Names the virtual environment.
const FOLDER: &str = "DATUM_EMULATORS";
/// Set where they must be there.
const REQUIRED: &str = "DATUM_REQUIRE_EMULATORS";
/// The emulators look at the form of credentials and not at their signature.
const CREDENTIALS: &str = "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/cognito-idp/aws4_request, \
                           SignedHeaders=host, Signature=00";

/// Which one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Emulator {
    /// moto's server.
    Moto,
    /// ministack.
    Ministack,
}

impl Emulator {
    const fn name(self) -> &'static str {
        match self {
            Self::Moto => "moto",
            Self::Ministack => "ministack",
        }
    }
}

impl fmt::Display for Emulator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A running emulator with a user pool whose users log in with their email. Dropping it ends it, and so does the end of this process.
#[derive(Debug)]
pub struct TestEmulator {
    child: Child,
    /// `http://127.0.0.1:port`.
    pub endpoint: String,
    /// The pool.
    pub pool_id: String,
    /// An app client without a secret.
    pub client_id: String,
    /// An app client with a secret, and that.
    pub secret_client: (String, String),
}

impl TestEmulator {
    /// Starts one. `None` where it is not installed; says so with the test's name.
    ///
    /// # Panics
    /// When it must be there and is not, or does not start.
    pub async fn start(emulator: Emulator, test: &str) -> Option<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let folder = env::var_os(FOLDER).map_or_else(|| root.join(".venv-emulators"), PathBuf::from);
        let python = folder.join("bin/python");
        if !is_installed(&folder, emulator) {
            let advice = format!(
                "{emulator} is not installed in {}; install tests/cognito/requirements.txt there, or name another place with {FOLDER}",
                folder.display()
            );
            assert!(env::var_os(REQUIRED).is_none_or(|value| value.is_empty()), "{advice}");
            // Past the capture of a test's output, which is shown of failures only.
            let _ = writeln!(std::io::stderr(), "skipped: {test}: {advice}");
            return None;
        }
        let port = free_port();
        let mut child = Command::new(python)
            .arg(root.join("tests/cognito/emulator.py"))
            .args([emulator.name(), &port.to_string()])
            .env_remove("PYTHONPATH")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{emulator}: {error}"));
        let endpoint = format!("http://127.0.0.1:{port}");
        let http = reqwest::Client::new();
        eventually(&format!("{emulator} answers"), async || {
            if let Ok(Some(status)) = child.try_wait() {
                panic!("{emulator} ended by itself: {status}");
            }
            http.get(&endpoint).send().await.is_ok()
        })
        .await;

        let call = Call { http, endpoint: &endpoint };
        let pool = call
            .make(
                "CreateUserPool",
                json!({
                    "PoolName": "datum",
                    "UsernameAttributes": ["email"],
                    "AutoVerifiedAttributes": ["email"],
                    "Policies": {"PasswordPolicy": {
                        "MinimumLength": 8, "RequireUppercase": false, "RequireLowercase": false,
                        "RequireNumbers": false, "RequireSymbols": false,
                    }},
                }),
            )
            .await;
        let pool_id = text(&pool["UserPool"]["Id"]);
        let client = async |secret: bool| {
            let made = call
                .make(
                    "CreateUserPoolClient",
                    json!({
                        "UserPoolId": pool_id,
                        "ClientName": if secret { "with a secret" } else { "without a secret" },
                        "GenerateSecret": secret,
                        "ExplicitAuthFlows": ["ALLOW_USER_PASSWORD_AUTH", "ALLOW_REFRESH_TOKEN_AUTH"],
                        "PreventUserExistenceErrors": "ENABLED",
                        "EnableTokenRevocation": true,
                    }),
                )
                .await;
            let client = &made["UserPoolClient"];
            (text(&client["ClientId"]), client["ClientSecret"].as_str().unwrap_or_default().to_owned())
        };
        let (client_id, _) = client(false).await;
        let secret_client = client(true).await;
        Some(Self { child, endpoint, pool_id, client_id, secret_client })
    }

    /// Where its keys are.
    #[must_use]
    pub fn jwks_url(&self) -> String {
        format!("{}/{}/.well-known/jwks.json", self.endpoint, self.pool_id)
    }
}

impl Drop for TestEmulator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Call<'a> {
    http: reqwest::Client,
    endpoint: &'a str,
}

impl Call<'_> {
    async fn make(&self, operation: &str, input: Value) -> Value {
        let sent = self
            .http
            .post(self.endpoint)
            .header("x-amz-target", format!("AWSCognitoIdentityProviderService.{operation}"))
            .header("content-type", "application/x-amz-json-1.1")
            .header("authorization", CREDENTIALS)
            .body(input.to_string())
            .send()
            .await;
        let response = sent.unwrap_or_else(|error| panic!("{operation}: {error}"));
        let (status, body) = (response.status(), response.text().await.unwrap_or_default());
        assert!(status.is_success(), "{operation}: {status} {body}");
        serde_json::from_str(&body).unwrap_or_else(|error| panic!("{operation}: {error}: {body}"))
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

/// Whether the virtual environment has the package.
fn is_installed(folder: &Path, emulator: Emulator) -> bool {
    let versions = fs::read_dir(folder.join("lib")).into_iter().flatten().flatten();
    versions.map(|version| version.path().join("site-packages").join(emulator.name())).any(|package| package.is_dir())
}

/// Free a moment ago. The emulators take no socket that somebody else has bound.
fn free_port() -> u16 {
    let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    bound.expect("a free port").port()
}
