//! The files of one PostgreSQL cluster: made once by `initdb`, configured anew at each start.

use std::{
    fmt::Write as _,
    fs,
    io::Write as _,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use nix::{sys::signal::kill, unistd::Pid};

use super::{
    Options,
    account::Account,
    binaries::Binaries,
    error::{Doing, PostgresError},
};

/// How long the server of an earlier process may take to end: it has just lost its parent, and is shutting down.
const PREDECESSOR_PATIENCE: Duration = Duration::from_secs(20);

/// A cluster that is there and can be started.
#[derive(Debug)]
pub(super) struct Cluster {
    /// `PGDATA`.
    pub(super) folder: PathBuf,
    /// The superuser's password.
    pub(super) password: String,
}

impl Cluster {
    /// Opens the cluster in `place`, making it when there is none.
    ///
    /// A crash leaves either no cluster or a whole one: it is made under another name and renamed when it is done.
    pub(super) fn open(place: &Path, account: &Account, binaries: &Binaries) -> Result<Self, PostgresError> {
        let folder = place.join("cluster");
        let password_file = place.join("superuser.password");
        if !folder.join("PG_VERSION").exists() {
            make(place, &folder, &password_file, account, binaries)?;
        }
        let version = folder.join("PG_VERSION");
        let data = fs::read_to_string(&version).doing(|| format!("reading {}", version.display()))?;
        if data.trim() != binaries.major.to_string() {
            return Err(PostgresError::VersionMismatch {
                folder,
                data: data.trim().to_owned(),
                binaries: binaries.major,
                binaries_folder: binaries.folder.clone(),
            });
        }
        let password = fs::read_to_string(&password_file)
            .doing(|| format!("reading {}", password_file.display()))?
            .trim()
            .to_owned();
        Ok(Self { folder, password })
    }

    /// Writes `datum.conf`, which `postgresql.conf` includes last: every start has the settings of this start.
    pub(super) fn configure(&self, options: &Options, port: u16, account: &Account) -> Result<(), PostgresError> {
        if let Some(tls) = &options.tls {
            // PostgreSQL refuses a key that others may read, and one that its own account does not own.
            for (name, content) in [("server.crt", &tls.certificate_pem), ("server.key", &tls.key_pem)] {
                self.write(name, content, account)?;
            }
        }
        self.write("datum.conf", &configuration(options, port), account)
    }

    fn write(&self, name: &str, content: &str, account: &Account) -> Result<(), PostgresError> {
        let path = self.folder.join(name);
        private_file(&path, content).doing(|| format!("writing {}", path.display()))?;
        account.give(&path)
    }

    /// Waits until no postmaster of an earlier run is left on the data; one that does not end is an error.
    pub(super) fn await_predecessor(&self) -> Result<(), PostgresError> {
        let pid_file = self.folder.join("postmaster.pid");
        let deadline = Instant::now() + PREDECESSOR_PATIENCE;
        loop {
            let Some(pid) = running_process(&pid_file) else { return Ok(()) };
            if sits_elsewhere(pid, &self.folder) {
                // The machine or container restarted, and the number now belongs to another program. PostgreSQL
                // cannot tell and would refuse to start for ever.
                return fs::remove_file(&pid_file).doing(|| format!("removing {}", pid_file.display()));
            }
            if Instant::now() > deadline {
                return Err(PostgresError::StillRunning { pid: pid.as_raw(), folder: self.folder.clone() });
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// The process named in `postmaster.pid`, when there is such a process.
pub(super) fn running_process(pid_file: &Path) -> Option<Pid> {
    let text = fs::read_to_string(pid_file).ok()?;
    let pid = Pid::from_raw(text.lines().next()?.trim().parse().ok().filter(|pid| *pid > 0)?);
    match kill(pid, None) {
        Err(nix::errno::Errno::ESRCH) => None,
        Ok(()) | Err(_) => Some(pid),
    }
}

/// Whether the process certainly is no postmaster of this cluster: a postmaster's working directory is its data folder.
fn sits_elsewhere(pid: Pid, folder: &Path) -> bool {
    let Ok(working_directory) = fs::read_link(format!("/proc/{pid}/cwd")) else { return false };
    folder.canonicalize().is_ok_and(|folder| folder != working_directory)
}

fn make(
    place: &Path,
    folder: &Path,
    password_file: &Path,
    account: &Account,
    binaries: &Binaries,
) -> Result<(), PostgresError> {
    let unfinished = place.join("cluster.unfinished");
    match fs::remove_dir_all(&unfinished) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(PostgresError::Io { doing: format!("removing {}", unfinished.display()), source: error });
        }
        _ => {}
    }
    fs::DirBuilder::new().mode(0o700).create(&unfinished).doing(|| format!("creating {}", unfinished.display()))?;
    account.give(&unfinished)?;
    account.must_reach(&unfinished)?;

    let password = random_password();
    private_file(password_file, &format!("{password}\n")).doing(|| format!("writing {}", password_file.display()))?;
    // initdb reads the password as the account; afterwards only we need it.
    account.give(password_file)?;
    let output = account
        .command(binaries.program("initdb"))
        .args(["--username=postgres", "--auth=scram-sha-256", "--encoding=UTF8", "--no-sync", "--no-instructions"])
        .args(locale(binaries))
        .arg(format!("--pwfile={}", password_file.display()))
        .arg("--pgdata")
        .arg(&unfinished)
        .stdin(Stdio::null())
        .output()
        .doing(|| "running initdb".to_owned())?;
    if !output.status.success() {
        let output = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        return Err(PostgresError::Initdb { output: output.trim().to_owned() });
    }
    let configuration = unfinished.join("postgresql.conf");
    fs::OpenOptions::new()
        .append(true)
        .open(&configuration)
        .and_then(|mut file| file.write_all(b"\ninclude 'datum.conf'\n"))
        .doing(|| format!("writing {}", configuration.display()))?;
    fs::rename(&unfinished, folder).doing(|| format!("renaming {}", unfinished.display()))
}

/// Byte order, the same on every machine. Version 17 has it built in with Unicode's character classes.
fn locale(binaries: &Binaries) -> &'static [&'static str] {
    let all = &["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"];
    if binaries.major >= 17 { all } else { &all[..1] }
}

fn random_password() -> String {
    hex::encode(rand::random::<[u8; 24]>())
}

fn private_file(path: &Path, content: &str) -> std::io::Result<()> {
    // Removed first: the file may belong to the account, and must not keep wider permissions.
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    file.write_all(content.as_bytes())
}

fn configuration(options: &Options, port: u16) -> String {
    let mut text = String::from("# Written at each start; changes are lost.\n");
    let mut set = |name: &str, value: &str| {
        // Quotes inside a value are doubled in this file's syntax.
        let _ = writeln!(text, "{name} = '{}'", value.replace('\'', "''"));
    };
    set("listen_addresses", "127.0.0.1");
    set("port", &port.to_string());
    // TCP is enough, and a socket's path would have to be short and private.
    set("unix_socket_directories", "");
    set("max_connections", &options.max_connections.to_string());
    set("password_encryption", "scram-sha-256");
    set("timezone", "UTC");
    set("log_timezone", "UTC");
    set("log_destination", "stderr");
    set("logging_collector", "off");
    set("log_line_prefix", "%m [%p] %q%u@%d ");
    if options.ephemeral {
        // Nothing has to survive a crash of the machine: no waiting for a disk.
        for name in ["fsync", "synchronous_commit", "full_page_writes"] {
            set(name, "off");
        }
        set("wal_level", "minimal");
        set("max_wal_senders", "0");
    }
    if options.tls.is_some() {
        set("ssl", "on");
        set("ssl_cert_file", "server.crt");
        set("ssl_key_file", "server.key");
    }
    for line in &options.extra_config {
        text.push_str(line);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_setting_is_the_callers() {
        let options = Options { extra_config: vec!["max_connections = 7".to_owned()], ..Options::new("/nowhere") };
        let text = configuration(&options, 5433);
        assert!(text.contains("port = '5433'"), "{text}");
        assert!(text.trim_end().ends_with("max_connections = 7"), "{text}");
        assert!(!text.contains("fsync"), "durable unless asked otherwise: {text}");
    }

    #[test]
    fn a_recorded_process_that_does_something_else_does_not_block_the_start() {
        let place = tempfile::tempdir().unwrap();
        let cluster = Cluster { folder: place.path().to_owned(), password: String::new() };
        // This test's own process: alive, and not in that folder.
        let pid_file = place.path().join("postmaster.pid");
        fs::write(&pid_file, format!("{}\n", std::process::id())).unwrap();
        cluster.await_predecessor().unwrap();
        assert!(!pid_file.exists());
    }
}
