//! Any command of `datum`, while it runs.

use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::time::Instant;

use nix::sys::signal::Signal;

use crate::datum::{Ended, Output, PATIENCE, collect, command, end_within};
use crate::processes::Process;

/// A command that runs. Dropping it kills it.
#[derive(Debug)]
pub struct Running {
    child: Child,
    process: Process,
    output: Output,
    lines: mpsc::Receiver<String>,
}

impl Running {
    /// Starts `program` with these arguments in a folder.
    #[must_use]
    pub fn start(program: &str, arguments: &[&str], folder: &Path) -> Self {
        let mut child = command(program, arguments, folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program runs");
        let process = Process::of(child.id()).expect("a process that was just started");
        let ((sender, lines), (alive, readers)) = (mpsc::channel(), mpsc::channel());
        let output = Output::new(readers);
        let printed = output.clone();
        collect(child.stdout.take().expect("piped"), alive.clone(), move |line| {
            printed.push(line);
            // Nobody may be waiting any more.
            let _ = sender.send(line.to_owned());
        });
        let printed = output.clone();
        collect(child.stderr.take().expect("piped"), alive, move |line| printed.push(line));
        Self { child, process, output, lines }
    }

    /// Waits for a line on standard output that is like this.
    ///
    /// # Panics
    /// With everything that it printed, when it ends or is too slow.
    pub fn wait_for_line(&self, mut is_it: impl FnMut(&str) -> bool) {
        let began = Instant::now();
        loop {
            match self.lines.recv_timeout(PATIENCE.saturating_sub(began.elapsed())) {
                Ok(line) if is_it(&line) => return,
                Ok(_) => {}
                Err(reason) => panic!("the line never came ({reason}):\n{}", self.output.text()),
            }
        }
    }

    /// The process that was started.
    #[must_use]
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When it does not end.
    #[must_use]
    pub fn wait(mut self) -> Ended {
        match end_within(&mut self.child, PATIENCE) {
            Some(status) => Ended { status, output: self.output.whole() },
            None => panic!("it does not end:\n{}", self.output.text()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
