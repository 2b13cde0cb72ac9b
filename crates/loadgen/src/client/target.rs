//! Where requests go.

use std::sync::Arc;

use http::uri::PathAndQuery;
use http::{HeaderValue, Uri};
use rustls::pki_types::ServerName;
use tokio_rustls::TlsConnector;
use url::{Host, Url};

use super::Trust;

/// Why an address is no target. Without the address: there may be a password in it.
#[derive(Debug, thiserror::Error)]
#[error("the target's address: {0}")]
pub(crate) struct TargetError(String);

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
    pub(crate) fn new(url: &Url, trust: &Trust) -> Result<Self, TargetError> {
        let Address { is_tls, host, port } = address(url).map_err(|reason| TargetError(reason.to_owned()))?;
        let named = url.host_str().unwrap_or_default();
        let authority = url.port().map_or_else(|| named.to_owned(), |port| format!("{named}:{port}"));
        let authority = HeaderValue::from_str(&authority)
            .map_err(|_| TargetError("its host cannot be sent as a header's value".to_owned()))?;
        let tls = is_tls.then(|| secure(&host, trust)).transpose().map_err(TargetError)?;
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

/// What a base URL says of where to dial.
struct Address {
    is_tls: bool,
    host: String,
    port: u16,
}

fn address(url: &Url) -> Result<Address, &'static str> {
    let is_tls = match url.scheme() {
        "http" => false,
        "https" => true,
        _ => return Err("the scheme must be http or https"),
    };
    let host = match url.host().ok_or("it has no host")? {
        Host::Domain(name) => name.to_owned(),
        Host::Ipv4(address) => address.to_string(),
        Host::Ipv6(address) => address.to_string(),
    };
    if !url.username().is_empty() || url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
        return Err("it must have no credentials, query or fragment");
    }
    let port = url.port_or_known_default().ok_or("it has no port")?;
    Ok(Address { is_tls, host, port })
}

/// Whether requests can be sent there at all; the reason if not, which never repeats the address.
pub fn check_target(url: &Url) -> Result<(), String> {
    address(url).map(drop).map_err(str::to_owned)
}

fn secure(host: &str, trust: &Trust) -> Result<(TlsConnector, ServerName<'static>), String> {
    let config = trust.client_config().map_err(|error| format!("TLS cannot be used: {error}"))?;
    let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
    Ok((TlsConnector::from(Arc::new(config)), name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: &str) -> Result<Target, TargetError> {
        Target::new(&Url::parse(url).unwrap(), &Trust::Machine)
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
        let refusal = target("http://me:hunter2@host/").err().unwrap().to_string();
        assert!(refusal.contains("no credentials") && !refusal.contains("hunter2"), "{refusal}");
    }
}
