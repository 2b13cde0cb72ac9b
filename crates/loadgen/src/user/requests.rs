//! The requests of the API. What does not change from one to the next is made once.

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderValue, Method, Request, Uri};
use http_body_util::Full;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::client::{Prepared, Target};
use crate::dataset::Identity;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const BYTES: HeaderValue = HeaderValue::from_static("application/octet-stream");
const AGENT: HeaderValue = HeaderValue::from_static(concat!("datum-loadgen/", env!("CARGO_PKG_VERSION")));

/// Addresses of the API on one target.
pub(crate) struct Requests {
    host: HeaderValue,
    register: Uri,
    login: Uri,
    refresh: Uri,
    me: Uri,
}

impl Requests {
    pub(crate) fn new(target: &Target) -> Self {
        Self {
            host: target.authority().clone(),
            register: target.path("/v1/auth/register"),
            login: target.path("/v1/auth/login"),
            refresh: target.path("/v1/auth/refresh"),
            me: target.path("/v1/actors/me"),
        }
    }

    pub(crate) fn register(&self, who: &Identity) -> Prepared {
        self.post_json(self.register.clone(), credentials(who))
    }

    pub(crate) fn login(&self, who: &Identity) -> Prepared {
        self.post_json(self.login.clone(), credentials(who))
    }

    pub(crate) fn refresh(&self, refresh_token: &str) -> Prepared {
        self.post_json(self.refresh.clone(), json!({ "refresh_token": refresh_token }).to_string().into())
    }

    pub(crate) fn get_user(&self, authorization: Option<&HeaderValue>) -> Prepared {
        self.request(Method::GET, self.me.clone(), authorization, Bytes::new())
    }

    pub(crate) fn upload(
        &self,
        target: &Target,
        authorization: Option<&HeaderValue>,
        name: &str,
        payload: &Payload,
    ) -> Prepared {
        let uri = target.path(&format!("/v1/documents?name={name}"));
        let mut request = self.request(Method::POST, uri, authorization, payload.bytes.clone());
        request.headers_mut().insert(CONTENT_TYPE, BYTES);
        request
    }

    pub(crate) fn get(&self, target: &Target, path: &str, authorization: Option<&HeaderValue>) -> Prepared {
        self.request(Method::GET, target.path(path), authorization, Bytes::new())
    }

    fn post_json(&self, uri: Uri, body: Bytes) -> Prepared {
        let mut request = self.request(Method::POST, uri, None, body);
        request.headers_mut().insert(CONTENT_TYPE, JSON);
        request
    }

    fn request(&self, method: Method, uri: Uri, authorization: Option<&HeaderValue>, body: Bytes) -> Prepared {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        let headers = request.headers_mut();
        headers.insert(HOST, self.host.clone());
        headers.insert(USER_AGENT, AGENT);
        if let Some(authorization) = authorization {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        request
    }
}

fn credentials(who: &Identity) -> Bytes {
    json!({ "email": who.email, "password": who.password }).to_string().into()
}

/// A file to upload.
pub(crate) struct Payload {
    pub(crate) bytes: Bytes,
    /// SHA-256 in lower-case hexadecimal.
    pub(crate) sha256: String,
}

/// Files that uploads take turns with: hashing each anew would cost the driver as much as the target.
pub(crate) struct Payloads(Vec<Payload>);

/// Most files, and most memory for all of them together.
const MAX_PAYLOADS: usize = 16;
const MAX_PAYLOAD_MEMORY: usize = 64 * 1024 * 1024;

impl Payloads {
    /// Random files of `size` bytes, which no storage can compress or share.
    pub(crate) fn new(size: usize, seed: u64) -> Self {
        let count = (MAX_PAYLOAD_MEMORY / size.max(1)).clamp(1, MAX_PAYLOADS);
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let payload = |_| {
            let mut bytes = vec![0; size];
            random.fill_bytes(&mut bytes);
            let sha256 = hex::encode(Sha256::digest(&bytes));
            Payload { bytes: bytes.into(), sha256 }
        };
        Self((0..count).map(payload).collect())
    }

    #[expect(clippy::cast_possible_truncation, reason = "the remainder is below the length")]
    pub(crate) fn get(&self, iteration: u64) -> &Payload {
        &self.0[(iteration % self.0.len() as u64) as usize]
    }
}
