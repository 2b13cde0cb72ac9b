//! `DATABASE_URL`: libpq's two forms, read here as far as `tokio-postgres` does not know them.
//!
//! `tokio-postgres` knows neither `sslrootcert` nor the verifying values of `sslmode`; both are taken out before the rest
//! is handed on. No error repeats a part of the text: a password that was not quoted can end up in any part.

use std::error::Error as _;
use std::fmt::Write as _;

use percent_encoding::percent_decode_str;
use tokio_postgres::config::Host;

use super::tls::SslMode;

const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

/// What `tokio-postgres` understands.
const PASSED_ON: [&str; 18] = [
    "application_name",
    "channel_binding",
    "connect_timeout",
    "dbname",
    "host",
    "hostaddr",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_retries",
    "load_balance_hosts",
    "options",
    "password",
    "port",
    "sslnegotiation",
    "target_session_attrs",
    "tcp_user_timeout",
    "user",
];

/// libpq's options that people do use, and that mean nothing here.
const REFUSED: [&str; 10] = [
    "client_encoding",
    "gssencmode",
    "krbsrvname",
    "passfile",
    "service",
    "sslcert",
    "sslcrl",
    "sslkey",
    "sslpassword",
    "ssl_min_protocol_version",
];

/// A connection string, taken apart.
#[derive(Debug)]
pub(super) struct ConnectionString {
    pub(super) postgres: tokio_postgres::Config,
    pub(super) ssl_mode: Option<SslMode>,
    /// `sslrootcert`: a PEM file, or `system`.
    pub(super) ssl_root_cert: Option<String>,
}

impl ConnectionString {
    /// Parses a `postgres://` URL or `key=value` pairs.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut ssl = Ssl::default();
        let rest = if SCHEMES.iter().any(|scheme| text.starts_with(scheme)) {
            without_ssl_in_url(text, &mut ssl)?
        } else if text.contains("://") || !text.contains('=') {
            return Err("must be a postgres:// URL, or key=value pairs as libpq reads them".to_owned());
        } else {
            without_ssl_in_pairs(text, &mut ssl)?
        };
        let mut postgres: tokio_postgres::Config = rest.parse().map_err(|error| explain(&error))?;
        if on_sockets_only(&postgres)? {
            // As libpq does: a Unix socket is never encrypted, whatever the mode.
            ssl = Ssl { mode: Some(SslMode::Disable), root_cert: None };
        }
        if postgres.get_application_name().is_none() {
            postgres.application_name("datum");
        }
        Ok(Self { postgres, ssl_mode: ssl.mode, ssl_root_cert: ssl.root_cert })
    }
}

#[derive(Default)]
struct Ssl {
    mode: Option<SslMode>,
    root_cert: Option<String>,
}

impl Ssl {
    /// Keeps what is ours; true when the option has to be passed on.
    fn sort(&mut self, key: &str, value: &str) -> Result<bool, String> {
        match key {
            "sslmode" => self.mode = Some(SslMode::parse(value)?),
            "sslrootcert" => self.root_cert = Some(value.to_owned()).filter(|path| !path.is_empty()),
            _ if PASSED_ON.contains(&key) => return Ok(true),
            _ if REFUSED.contains(&key) => return Err(format!("has the option {key}, which is not supported")),
            _ => {
                return Err(
                    "has an option that is not known; a password must be percent-encoded in a URL, and quoted in \
                            key=value pairs"
                        .to_owned(),
                );
            }
        }
        Ok(false)
    }
}

fn without_ssl_in_url(url: &str, ssl: &mut Ssl) -> Result<String, String> {
    // A `?` before the `@` belongs to the password.
    let after_credentials = url.find('@').map_or(0, |at| at + 1);
    let Some(mark) = url[after_credentials..].find('?').map(|mark| mark + after_credentials) else {
        return Ok(url.to_owned());
    };
    let mut kept = Vec::new();
    for parameter in url[mark + 1..].split('&').filter(|parameter| !parameter.is_empty()) {
        let (key, value) =
            parameter.split_once('=').ok_or_else(|| "has an option without a value after the ?".to_owned())?;
        let decode = |text| percent_decode_str(text).decode_utf8().map_err(|_| "is not UTF-8 when decoded".to_owned());
        if ssl.sort(&decode(key)?, &decode(value)?)? {
            kept.push(parameter);
        }
    }
    Ok(format!("{}?{}", &url[..mark], kept.join("&")))
}

fn without_ssl_in_pairs(text: &str, ssl: &mut Ssl) -> Result<String, String> {
    let mut kept = String::new();
    for (key, value) in pairs(text)? {
        if ssl.sort(&key, &value)? {
            let quoted = value.replace('\\', "\\\\").replace('\'', "\\'");
            let _ = write!(kept, "{key}='{quoted}' ");
        }
    }
    Ok(kept)
}

/// `key = value` and `key='quoted value'`, backslash escapes in both, as in libpq's manual §34.1.1.1.
fn pairs(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut pairs = Vec::new();
    let mut chars = text.chars().peekable();
    loop {
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        if chars.peek().is_none() {
            return Ok(pairs);
        }
        let mut key = String::new();
        while let Some(c) = chars.next_if(|c| *c != '=' && !c.is_whitespace()) {
            key.push(c);
        }
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        if chars.next() != Some('=') {
            return Err(format!(
                "has no = after its option number {}; values with spaces need quotes",
                pairs.len() + 1
            ));
        }
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        let quoted = chars.next_if_eq(&'\'').is_some();
        let mut value = String::new();
        let mut closed = !quoted;
        while let Some(c) = chars.next_if(|c| quoted || !c.is_whitespace()) {
            match c {
                '\'' if quoted => {
                    closed = true;
                    break;
                }
                '\\' => value.extend(chars.next()),
                c => value.push(c),
            }
        }
        if !closed {
            return Err(format!("has a quote that is not closed in its option number {}", pairs.len() + 1));
        }
        pairs.push((key, value));
    }
}

/// Whether all hosts are Unix sockets; an error where the hosts cannot work.
fn on_sockets_only(postgres: &tokio_postgres::Config) -> Result<bool, String> {
    let hosts = postgres.get_hosts();
    if hosts.is_empty() {
        return Err("names no host".to_owned());
    }
    if hosts.iter().any(|host| matches!(host, Host::Tcp(name) if name.is_empty() || name.contains('@'))) {
        return Err("has a host that cannot be one; a password must be percent-encoded".to_owned());
    }
    let sockets = hosts.iter().filter(|host| matches!(host, Host::Unix(_))).count();
    if sockets > 0 && sockets < hosts.len() {
        return Err("mixes Unix sockets and network hosts, which cannot share one sslmode".to_owned());
    }
    Ok(sockets > 0)
}

fn explain(error: &tokio_postgres::Error) -> String {
    // The sources name the option, never its value.
    match error.source() {
        Some(source) => format!("cannot be used: {source}"),
        None => "cannot be used as a connection string".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        ConnectionString::parse(text).expect_err(text)
    }

    #[test]
    fn the_url_form_is_read() {
        let url = "postgresql://u%40x:p%3Aw@db.internal:6432/datum?sslmode=verify-full&sslrootcert=%2Fetc%2Fca.pem&\
                   target_session_attrs=read-write";
        let parsed = ConnectionString::parse(url).expect("valid");
        assert_eq!(parsed.ssl_mode, Some(SslMode::VerifyFull));
        assert_eq!(parsed.ssl_root_cert.as_deref(), Some("/etc/ca.pem"));
        assert_eq!(parsed.postgres.get_user(), Some("u@x"));
        assert_eq!(parsed.postgres.get_password(), Some(&b"p:w"[..]));
        assert_eq!(parsed.postgres.get_hosts(), [Host::Tcp("db.internal".to_owned())]);
        assert_eq!(parsed.postgres.get_ports(), [6432]);
        assert_eq!(parsed.postgres.get_application_name(), Some("datum"));
    }

    #[test]
    fn the_pair_form_is_read() {
        let text =
            r"host = db.internal user=u password='it\'s \\ secret' sslmode=verify-ca sslrootcert='/a b.pem' port=1";
        let parsed = ConnectionString::parse(text).expect("valid");
        assert_eq!(parsed.postgres.get_password(), Some(&br"it's \ secret"[..]));
        assert_eq!(parsed.ssl_mode, Some(SslMode::VerifyCa));
        assert_eq!(parsed.ssl_root_cert.as_deref(), Some("/a b.pem"));
        assert_eq!(parsed.postgres.get_ports(), [1]);
    }

    #[test]
    fn a_question_mark_in_the_password_starts_no_options() {
        let parsed = ConnectionString::parse("postgres://u:p?sslmode=x@h/d?sslmode=require").expect("valid");
        assert_eq!(parsed.postgres.get_password(), Some(&b"p?sslmode=x"[..]));
        assert_eq!(parsed.ssl_mode, Some(SslMode::Require));
    }

    #[test]
    fn an_application_name_of_the_url_is_kept() {
        let parsed = ConnectionString::parse("postgres://h/d?application_name=mine").expect("valid");
        assert_eq!(parsed.postgres.get_application_name(), Some("mine"));
    }

    #[test]
    fn a_unix_socket_is_never_encrypted() {
        let parsed = ConnectionString::parse("postgres://u@%2Frun%2Fpg/d?sslmode=verify-full").expect("valid");
        assert_eq!(parsed.ssl_mode, Some(SslMode::Disable));
    }

    #[test]
    fn errors_say_what_is_wrong() {
        for (text, part) in [
            ("mysql://h/d", "postgres:// URL"),
            ("localhost", "postgres:// URL"),
            ("postgres:///d", "names no host"),
            ("hostaddr=127.0.0.1", "names no host"),
            ("postgres://h:x/d", "port"),
            ("postgres://h/d?sslmode=allow", "sslmode"),
            ("postgres://h/d?sslmode=verify", "sslmode"),
            ("postgres://h/d?sslcert=x", "sslcert"),
            ("postgres://h/d?connect_timeout=x", "connect_timeout"),
            ("postgres://h/d?sslmode", "without a value"),
            ("host=h user", "no = after its option number 2"),
            ("host=h password='x", "quote"),
            ("postgres://%2Frun%2Fpg,h/d", "mixes"),
        ] {
            let error = refused(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn no_error_repeats_a_part_of_the_password() {
        for text in [
            "postgres://u:hunter2@hunter2@h/d",
            "postgres://u:hunter2@h/d?hunter2=x",
            "postgres://u:hunter2@h:hunter2/d",
            "postgres://u:hunter2@h/d?port=hunter2",
            "host=h password=a hunter2=b",
            "host=h password=a hunter2",
            "host=h password='hunter2",
            "host=h port=hunter2",
            "postgres://u:hunter2@/d",
        ] {
            let error = refused(text);
            assert!(!error.contains("hunter2"), "{text}: {error}");
        }
    }
}
