//! Where requests go.

use std::sync::Arc;

use http::uri::PathAndQuery;
use http::{HeaderValue, Uri};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use rustls_platform_verifier::ConfigVerifierExt;
use tokio_rustls::TlsConnector;
use url::{Host, Url};

/// Why an address is no target.
#[derive(Debug, thiserror::Error)]
#[error("{url}: {reason}")]
pub(crate) struct TargetError {
    url: String,
    reason: String,
}

/// A base URL, taken apart once. Clones share it.
#[derive(Clone)]
pub(crate) struct Target(Arc<Parts>);

struct Parts {
    host: String,
    port: u16,
    /// The `Host` header.
    authority: HeaderValue,
    /// What stands before the API's paths; without a slash at the end.
    prefix: String,
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

impl Target {
    pub(crate) fn new(url: &Url) -> Result<Self, TargetError> {
        let refuse = |reason: &str| TargetError { url: url.to_string(), reason: reason.to_owned() };
        let is_tls = match url.scheme() {
            "http" => false,
            "https" => true,
            _ => return Err(refuse("the scheme must be http or https")),
        };
        let host = match url.host().ok_or_else(|| refuse("it has no host"))? {
            Host::Domain(name) => name.to_owned(),
            Host::Ipv4(address) => address.to_string(),
            Host::Ipv6(address) => address.to_string(),
        };
        if !url.username().is_empty() || url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
            return Err(refuse("it must have no credentials, query or fragment"));
        }
        let port = url.port_or_known_default().ok_or_else(|| refuse("it has no port"))?;
        let named = url.host_str().unwrap_or_default();
        let authority = url.port().map_or_else(|| named.to_owned(), |port| format!("{named}:{port}"));
        let authority = HeaderValue::from_str(&authority).map_err(|_| refuse("its host is no header value"))?;
        let tls = is_tls.then(|| secure(&host)).transpose().map_err(|reason| refuse(&reason))?;
        let prefix = url.path().trim_end_matches('/').to_owned();
        Ok(Self(Arc::new(Parts { host, port, authority, prefix, tls })))
    }

    pub(super) fn host(&self) -> &str {
        &self.0.host
    }

    pub(super) fn port(&self) -> u16 {
        self.0.port
    }

    pub(super) fn tls(&self) -> Option<&(TlsConnector, ServerName<'static>)> {
        self.0.tls.as_ref()
    }

    /// The value of `Host`.
    pub(crate) fn authority(&self) -> &HeaderValue {
        &self.0.authority
    }

    /// The request target of one of the API's paths, in origin form.
    pub(crate) fn path(&self, path: &str) -> Uri {
        let whole = format!("{}{path}", self.0.prefix);
        // Prefix and path come from a parsed URL and from constants; both are ASCII without spaces.
        PathAndQuery::try_from(whole).map(Uri::from).unwrap_or_default()
    }
}

fn secure(host: &str) -> Result<(TlsConnector, ServerName<'static>), String> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    // Two providers can be compiled in; then rustls needs to be told. Somebody else may have told it already.
    let _ = rustls::crypto::CryptoProvider::install_default((*provider).clone());
    let config = ClientConfig::with_platform_verifier().map_err(|error| format!("TLS cannot be used: {error}"))?;
    let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
    Ok((TlsConnector::from(Arc::new(config)), name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: &str) -> Result<Target, TargetError> {
        Target::new(&Url::parse(url).unwrap())
    }

    #[test]
    fn an_address_is_taken_apart() {
        let plain = target("http://127.0.0.1:8080").unwrap();
        assert_eq!(
            (plain.host(), plain.port(), plain.authority()),
            ("127.0.0.1", 8080, &"127.0.0.1:8080".parse().unwrap())
        );
        assert_eq!(plain.path("/v1/actors/me"), "/v1/actors/me");
        let prefixed = target("https://load.example/stage/").unwrap();
        assert_eq!((prefixed.port(), prefixed.authority()), (443, &"load.example".parse().unwrap()));
        assert_eq!(prefixed.path("/v1/documents?name=a"), "/stage/v1/documents?name=a");
        assert!(prefixed.tls().is_some() && plain.tls().is_none());
        let six = target("http://[::1]:81").unwrap();
        assert_eq!((six.host(), six.authority()), ("::1", &"[::1]:81".parse().unwrap()));
    }

    #[test]
    fn what_is_no_base_address_is_refused() {
        for url in ["ftp://host/", "http://user@host/", "http://host/?a=b", "http://host/#x", "data:text"] {
            assert!(target(url).is_err(), "{url}");
        }
    }
}
