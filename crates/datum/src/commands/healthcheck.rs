//! `datum healthcheck`: a container's health command, for images without curl and without a shell.

use std::process::ExitCode;
use std::time::Duration;

use service_kit::config::EXIT_USAGE;
use stack::probe;
use url::Url;

use super::{failed, small_runtime};
use crate::cli::HealthcheckArgs;
use crate::terminal::{complain, say};

pub(super) fn run(args: &HealthcheckArgs) -> ExitCode {
    let port = std::env::var("PORT").ok();
    let target = match Target::parse(args.url.as_deref(), port.as_deref()) {
        Ok(target) => target,
        Err(error) => {
            complain(error, None);
            return ExitCode::from(EXIT_USAGE);
        }
    };
    let runtime = match small_runtime() {
        Ok(runtime) => runtime,
        Err(exit) => return exit,
    };
    let answer = probe::get(&target.authority, &target.path, Duration::from_millis(args.timeout_ms));
    match runtime.block_on(answer) {
        Ok(answer) if answer.status.is_success() => {
            say(answer.status);
            ExitCode::SUCCESS
        }
        Ok(answer) => {
            failed(format_args!("{}{} says {} {}", target.authority, target.path, answer.status, answer.body.trim()))
        }
        Err(error) => failed(format_args!("{}{}: {error}", target.authority, target.path)),
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Target {
    authority: String,
    path: String,
}

impl Target {
    fn parse(url: Option<&str>, port: Option<&str>) -> Result<Self, String> {
        let Some(url) = url else {
            let port = port.filter(|port| !port.is_empty()).unwrap_or("8080");
            return Ok(Self { authority: format!("127.0.0.1:{port}"), path: "/live".to_owned() });
        };
        let parsed = Url::parse(url).map_err(|error| format!("`{url}` is not a URL: {error}"))?;
        match (parsed.scheme(), parsed.host_str()) {
            ("http", Some(host)) => {
                let query = parsed.query().map(|query| format!("?{query}")).unwrap_or_default();
                let port = parsed.port_or_known_default().unwrap_or(80);
                Ok(Self { authority: format!("{host}:{port}"), path: format!("{}{query}", parsed.path()) })
            }
            _ => Err(format!("`{url}` is not an http:// URL")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: Option<&str>, port: Option<&str>) -> Result<String, String> {
        Target::parse(url, port).map(|target| format!("{} {}", target.authority, target.path))
    }

    #[test]
    fn the_own_liveness_is_asked_unless_something_else_is_named() {
        assert_eq!(target(None, None), Ok("127.0.0.1:8080 /live".into()));
        assert_eq!(target(None, Some("9000")), Ok("127.0.0.1:9000 /live".into()));
        assert_eq!(target(None, Some("")), Ok("127.0.0.1:8080 /live".into()));
        assert_eq!(target(Some("http://auth:81/ready?x=1"), Some("9000")), Ok("auth:81 /ready?x=1".into()));
        assert_eq!(target(Some("http://auth"), None), Ok("auth:80 /".into()));
        assert_eq!(target(Some("http://[::1]:81/live"), None), Ok("[::1]:81 /live".into()));
    }

    #[test]
    fn what_cannot_be_asked_is_refused() {
        for url in ["https://auth/live", "auth:8080", "/live", "", "http://"] {
            assert!(target(Some(url), None).is_err(), "{url} was accepted");
        }
    }
}
