//! What the driver itself uses (getrusage(2)).

use std::time::Duration;

use nix::sys::resource::{Resource, Usage, UsageWho, getrlimit, getrusage, setrlimit};
use nix::sys::time::TimeValLike;

/// Whose use.
#[derive(Debug, Clone, Copy)]
pub(super) enum Of {
    /// The calling thread's; the process's where the system does not tell threads apart.
    Thread,
    /// All threads' of this process, without its children.
    Process,
}

impl Of {
    fn usage(self) -> Option<Usage> {
        let who = match self {
            #[cfg(any(target_os = "linux", target_os = "freebsd"))]
            Self::Thread => UsageWho::RUSAGE_THREAD,
            #[cfg(not(any(target_os = "linux", target_os = "freebsd")))]
            Self::Thread => UsageWho::RUSAGE_SELF,
            Self::Process => UsageWho::RUSAGE_SELF,
        };
        getrusage(who).ok()
    }

    fn cpu(self) -> Duration {
        let micros = self
            .usage()
            .map_or(0, |usage| usage.user_time().num_microseconds() + usage.system_time().num_microseconds());
        Duration::from_micros(u64::try_from(micros).unwrap_or(0))
    }
}

/// CPU time, user and system, from one look to the next.
#[derive(Debug)]
pub(super) struct CpuMeter {
    of: Of,
    before: Duration,
}

impl CpuMeter {
    pub(super) fn start(of: Of) -> Self {
        Self { of, before: of.cpu() }
    }

    /// Since the last look.
    pub(super) fn lap(&mut self) -> Duration {
        let now = self.of.cpu();
        let used = now.saturating_sub(self.before);
        self.before = now;
        used
    }
}

/// The most memory that the process has had resident, in bytes.
pub(super) fn peak_memory_bytes() -> Option<u64> {
    // KiB everywhere but on macOS, where it is bytes.
    let unit = if cfg!(target_vendor = "apple") { 1 } else { 1024 };
    u64::try_from(Of::Process.usage()?.max_rss()).ok().map(|rss| rss * unit)
}

/// Sees to it that the process may open as many files; a virtual user's connection is one. What is missing, or `None`.
pub(super) fn raise_open_files(needed: u64) -> Option<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    if soft >= needed {
        return None;
    }
    let wanted = needed.min(hard);
    let _ = setrlimit(Resource::RLIMIT_NOFILE, wanted, hard);
    let (now, _) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    (now < needed).then_some(now)
}
