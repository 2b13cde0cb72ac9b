//! Which processes there are, from `/proc`: what a system leaves behind is found there and nowhere else.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// One process. Ids are used again; together with its start time, a process is unique.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// The process id.
    pub pid: u32,
    start_ticks: u64,
    /// What it was started as.
    pub name: String,
}

impl Process {
    /// The living process with this id.
    #[must_use]
    pub fn of(pid: u32) -> Option<Self> {
        Stat::read(pid).map(|stat| stat.process)
    }

    /// Whether it still runs. One that has ended and waits to be collected by its parent does not.
    #[must_use]
    pub fn is_running(&self) -> bool {
        Self::of(self.pid).as_ref() == Some(self)
    }

    /// Sends it a signal; a process that has ended takes none.
    pub fn signal(&self, signal: Signal) {
        if self.is_running() {
            let _ = kill(Pid::from_raw(i32::try_from(self.pid).expect("a process id")), signal);
        }
    }

    /// Everything that this process started, and what that started.
    #[must_use]
    pub fn descendants(&self) -> Vec<Self> {
        let all: Vec<Stat> = all_pids().into_iter().filter_map(Stat::read).collect();
        let mut found: Vec<Self> = Vec::new();
        let mut parents = vec![self.pid];
        while let Some(parent) = parents.pop() {
            for child in all.iter().filter(|stat| stat.parent == parent) {
                parents.push(child.process.pid);
                found.push(child.process.clone());
            }
        }
        found
    }

    /// The most memory that was ever resident, in bytes (`VmHWM` of proc(5)).
    #[must_use]
    pub fn peak_resident_bytes(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
    }
}

fn all_pids() -> Vec<u32> {
    let entries = fs::read_dir("/proc").expect("these tests need /proc");
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

struct Stat {
    process: Process,
    parent: u32,
}

impl Stat {
    /// None when there is no such process, or only its remains.
    fn read(pid: u32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name stands in parentheses and may hold anything, parentheses included.
        let (name, fields) = (text.get(text.find('(')? + 1..text.rfind(')')?)?, text.get(text.rfind(')')? + 2..)?);
        let fields: Vec<_> = fields.split(' ').collect();
        if matches!(*fields.first()?, "Z" | "X") {
            return None;
        }
        let process = Process { pid, start_ticks: fields.get(19)?.parse().ok()?, name: name.to_owned() };
        Some(Self { process, parent: fields.get(1)?.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_child_is_found_and_is_gone_when_it_has_ended() {
        let mut child = Command::new("sleep").arg("60").spawn().expect("a child");
        let this = Process::of(std::process::id()).expect("this process");
        let found = this.descendants().into_iter().find(|process| process.pid == child.id()).expect("found");
        assert!(found.is_running());
        found.signal(Signal::SIGKILL);
        while found.is_running() {
            std::thread::yield_now();
        }
        assert_eq!(Process::of(child.id()), None, "what is left of it counts as a process");
        child.wait().expect("collected");
    }

    #[test]
    fn memory_is_read() {
        let this = Process::of(std::process::id()).expect("this process");
        assert!(this.peak_resident_bytes().is_some_and(|bytes| bytes > 1024 * 1024));
    }
}
