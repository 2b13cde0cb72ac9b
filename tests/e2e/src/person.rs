//! Somebody who uses the system.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use test_support::{Caller, Reply};

/// A password that nobody minds being read.
pub const PASSWORD: &str = "correct horse battery staple";

/// An email that no other test of this process uses.
#[must_use]
pub fn new_email(name: &str) -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    format!("{name}-{}@example.com", COUNTER.fetch_add(1, Ordering::Relaxed))
}

/// A registered person who is logged in.
#[derive(Debug, Clone)]
pub struct Person {
    /// The user's id.
    pub id: String,
    /// In canonical form.
    pub email: String,
    /// The access token.
    pub access_token: String,
    /// Presents the access token.
    pub caller: Caller,
    /// For the next pair of tokens.
    pub refresh_token: String,
}

impl Person {
    /// Registers somebody new with [`PASSWORD`] and logs them in.
    pub async fn new(anyone: &Caller, name: &str) -> Self {
        let email = new_email(name);
        Self::register(anyone, &email).await.assert_status(201);
        Self::log_in(anyone, &email).await
    }

    /// Sends a registration.
    pub async fn register(anyone: &Caller, email: &str) -> Reply {
        anyone.post_json("/v1/auth/register", json!({"email": email, "password": PASSWORD})).await
    }

    /// Logs in somebody who is registered with [`PASSWORD`].
    pub async fn log_in(anyone: &Caller, email: &str) -> Self {
        let reply = anyone.post_json("/v1/auth/login", json!({"email": email, "password": PASSWORD})).await;
        let tokens = reply.assert_status(200).json();
        let access_token = text(&tokens, "access_token");
        let caller = anyone.bearing(&access_token);
        let me = caller.get("/v1/actors/me").await;
        let me = me.assert_status(200).json();
        let (id, email, refresh_token) = (text(&me, "id"), text(&me, "email"), text(&tokens, "refresh_token"));
        Self { id, email, access_token, caller, refresh_token }
    }

    /// Uploads a document as a raw body and gives its metadata.
    pub async fn upload(&self, name: &str, content: impl Into<reqwest::Body>) -> Value {
        let reply = self.caller.post_raw(&format!("/v1/documents?name={name}"), "text/plain", content).await;
        reply.assert_status(201).json()
    }

    /// The names of all documents, newest first, over as many pages as it takes.
    pub async fn document_names(&self) -> Vec<String> {
        let mut names = Vec::new();
        let mut path = "/v1/documents?limit=100".to_owned();
        loop {
            let page = self.caller.get(&path).await;
            let page = page.assert_status(200).json();
            names.extend(page["items"].as_array().expect("items").iter().map(|item| text(item, "name")));
            match page["next_cursor"].as_str() {
                Some(cursor) => path = format!("/v1/documents?limit=100&cursor={cursor}"),
                None => return names,
            }
        }
    }
}

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_else(|| panic!("no `{name}` in {value}")).to_owned()
}
