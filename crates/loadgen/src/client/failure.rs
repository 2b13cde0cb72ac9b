//! What went wrong, in the words of the result format.

use std::error::Error;
use std::io;

use envelope::result::{Answerer, Failure};
use http::StatusCode;
use serde::Deserialize;

use super::Answer;

/// A problem's `code` is a word in lower case with underscores; anything else is not counted apart, or a hostile server could fill the memory.
const MAX_CODE_BYTES: usize = 64;

/// No answer came.
pub(super) fn nobody(code: &str) -> Failure {
    Failure { status: None, code: code.to_owned(), answerer: Answerer::Nobody }
}

/// The driver gave up because the run ended.
pub(crate) fn interrupted() -> Failure {
    nobody("interrupted")
}

/// The answer came, and was not the right one.
pub(crate) fn check_failed(answer: &Answer, check: &str) -> Failure {
    Failure { status: Some(answer.status.as_u16()), code: format!("check:{check}"), answerer: answer.answerer }
}

/// The answer has another status than it should; the problem in its body says why. A service that is asked for too much must say
/// when to come back (a balancer's own answers need not): without that its refusal is wrong itself.
pub(crate) fn refused(answer: &Answer, body: &[u8]) -> Failure {
    #[derive(Deserialize)]
    struct Problem {
        code: String,
    }
    let word = |code: &str| {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        !code.is_empty() && code.len() <= MAX_CODE_BYTES && code.bytes().all(plain)
    };
    let sheds = matches!(answer.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
    if sheds && answer.answerer == Answerer::Task && answer.retry_after.is_none() {
        return check_failed(answer, "retry-after");
    }
    let problem = answer.is_problem.then(|| serde_json::from_slice::<Problem>(body).ok()).flatten();
    match problem.map(|problem| problem.code).filter(|code| word(code)) {
        Some(code) => Failure { status: Some(answer.status.as_u16()), code, answerer: answer.answerer },
        None => check_failed(answer, "status"),
    }
}

/// How a connection broke: `protocol` when what came is no HTTP, `reset` when it ended before the answer did.
pub(super) fn broken(error: &hyper::Error) -> Failure {
    let by_io = || {
        let mut source = error.source();
        while let Some(inner) = source {
            if let Some(inner) = inner.downcast_ref::<io::Error>() {
                return inner.kind() != io::ErrorKind::InvalidData;
            }
            source = inner.source();
        }
        false
    };
    let ended =
        error.is_incomplete_message() || error.is_canceled() || error.is_closed() || error.is_body_write_aborted();
    if !error.is_parse() && (ended || by_io()) { nobody("reset") } else { nobody("protocol") }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;
    use crate::client::ServerTiming;

    fn answer(status: u16, is_problem: bool) -> Answer {
        Answer {
            status: StatusCode::from_u16(status).unwrap(),
            is_problem,
            answerer: Answerer::Task,
            timing: ServerTiming::default(),
            retry_after: Some(std::time::Duration::from_secs(1)),
        }
    }

    #[test]
    fn a_service_that_sheds_must_say_when_to_come_back() {
        let code = |status, answerer| {
            let silent = Answer { retry_after: None, answerer, ..answer(status, true) };
            refused(&silent, br#"{"code":"busy"}"#).code
        };
        assert_eq!(code(503, Answerer::Task), "check:retry-after");
        assert_eq!(code(429, Answerer::Task), "check:retry-after");
        assert_eq!(code(401, Answerer::Task), "busy");
        assert_eq!(code(503, Answerer::Balancer), "busy", "an ALB has no such header");
    }

    #[test]
    fn the_code_of_a_problem_is_the_cause() {
        let failure = refused(&answer(503, true), br#"{"type":"x","code":"pool_timeout","detail":"y"}"#);
        assert_eq!(failure, Failure { status: Some(503), code: "pool_timeout".into(), answerer: Answerer::Task });
    }

    #[test]
    fn what_is_no_problem_with_a_code_is_a_wrong_status() {
        let code = |body: &[u8], is_problem| refused(&answer(502, is_problem), body).code;
        assert_eq!(code(b"<html>bad gateway</html>", false), "check:status");
        assert_eq!(code(br#"{"code":"looks_like_one"}"#, false), "check:status");
        assert_eq!(code(b"{", true), "check:status");
        assert_eq!(code(br#"{"code":"With spaces"}"#, true), "check:status");
        assert_eq!(code(format!(r#"{{"code":"{}"}}"#, "a".repeat(65)).as_bytes(), true), "check:status");
    }
}
