//! The tests' stub in a process of its own.

#[path = "../../tests/it/stub.rs"]
#[allow(dead_code, reason = "tests use more of it")]
mod stub;

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use url::Url;

/// Ends when dropped.
pub(crate) struct Target {
    process: Child,
    pub(crate) url: Url,
}

impl Target {
    pub(crate) fn start() -> Self {
        let mut process = Command::new(std::env::current_exe().expect("own path"))
            .arg("serve")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the stub starts");
        let mut line = String::new();
        BufReader::new(process.stdout.take().expect("a pipe")).read_line(&mut line).expect("the stub's address");
        Self { process, url: Url::parse(line.trim()).expect("a URL") }
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// Whether this process is the stub's; it was, when this returns true.
pub(crate) fn serves(arguments: &[String]) -> bool {
    if arguments.first().is_none_or(|first| first != "serve") {
        return false;
    }
    let stub = stub::Stub::start();
    stub.forget_requests();
    println!("{}", stub.url());
    // Until the other end of the pipe is gone.
    let _ = std::io::stdin().read(&mut [0]);
    true
}
