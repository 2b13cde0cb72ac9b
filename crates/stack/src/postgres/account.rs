//! As whom PostgreSQL runs, and where that account can keep data.
//!
//! PostgreSQL refuses to run as root. Where Datum runs as root (containers, CI), the server runs as `postgres` or
//! `nobody`; such an account often cannot enter the folder that was asked for (`/root/…`), so its data then lives aside.

use std::{
    io::Write,
    os::unix::{fs::chown, process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use nix::unistd::{Uid, User};

use super::error::{Doing, PostgresError};

/// Where a cluster goes that cannot stay in the folder asked for. Not `/var/tmp`, which systemd cleans by age.
const ASIDE: &str = "/var/lib/datum";

/// The account that runs PostgreSQL.
#[derive(Debug, Clone)]
pub(super) enum Account {
    /// Whoever runs this process.
    Own,
    /// An unprivileged account, because this process is root.
    Other { name: String, uid: u32, gid: u32 },
}

impl Account {
    pub(super) fn choose() -> Result<Self, PostgresError> {
        if !Uid::effective().is_root() {
            return Ok(Self::Own);
        }
        ["postgres", "nobody"]
            .into_iter()
            .find_map(|name| User::from_name(name).ok().flatten())
            .map(|user| Self::Other { name: user.name, uid: user.uid.as_raw(), gid: user.gid.as_raw() })
            .ok_or(PostgresError::NoAccount)
    }

    /// A command that will run as this account, in `/`, with nothing of our environment but PATH.
    ///
    /// The standard library drops supplementary groups when it changes the user id of a root process.
    pub(super) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into()))
            .env("LC_ALL", "C")
            .env("TZ", "UTC")
            .current_dir("/");
        if let Self::Other { uid, gid, .. } = self {
            command.uid(*uid).gid(*gid);
        }
        command
    }

    /// Gives a file or folder to the account.
    pub(super) fn give(&self, path: &Path) -> Result<(), PostgresError> {
        match self {
            Self::Own => Ok(()),
            Self::Other { uid, gid, .. } => chown(path, Some(*uid), Some(*gid))
                .doing(|| format!("giving {} to PostgreSQL's account", path.display())),
        }
    }

    /// Asks the kernel, as the account: only that knows all of permissions, ACLs and mount options.
    pub(super) fn can_enter(&self, folder: &Path) -> bool {
        let mut command = self.command("/bin/sh");
        command.args(["-c", "cd -- \"$1\"", "sh"]).arg(folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }

    pub(super) fn must_reach(&self, path: &Path) -> Result<(), PostgresError> {
        let Self::Other { name, .. } = self else { return Ok(()) };
        if self.can_enter(path) {
            return Ok(());
        }
        Err(PostgresError::Unreachable { account: name.clone(), path: path.to_owned() })
    }

    /// The folder that will hold the cluster of `data_dir`: that folder, or one aside that the account can enter.
    ///
    /// The choice is written into `data_dir/location` and kept, so that a restart finds the same data. Its name is
    /// random, not made from the path: whoever removes or renames `data_dir` must not meet somebody else's data again.
    pub(super) fn place(&self, data_dir: &Path) -> Result<PathBuf, PostgresError> {
        let pointer = data_dir.join("location");
        match std::fs::read_to_string(&pointer) {
            Ok(text) => {
                let place = PathBuf::from(text.trim_end_matches('\n'));
                make_folder(&place)?;
                return Ok(place);
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(source) => return Err(PostgresError::Io { doing: format!("reading {}", pointer.display()), source }),
        }
        if self.can_enter(data_dir) {
            return Ok(data_dir.to_owned());
        }
        if data_dir.join("cluster").exists() {
            // It could be entered once. A new cluster elsewhere would look like the loss of all data.
            self.must_reach(data_dir)?;
        }
        let place = Path::new(ASIDE).join(format!("postgres-{:016x}", rand::random::<u64>()));
        make_folder(&place)?;
        self.must_reach(&place)?;
        write_pointer(&pointer, &place).doing(|| format!("writing {}", pointer.display()))?;
        tracing::info!(
            wanted = %data_dir.display(),
            "PostgreSQL's account cannot enter the state folder: the database is kept in {}", place.display()
        );
        Ok(place)
    }
}

fn make_folder(folder: &Path) -> Result<(), PostgresError> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(folder)
        .doing(|| format!("creating {}", folder.display()))
}

fn write_pointer(pointer: &Path, place: &Path) -> std::io::Result<()> {
    let mut file = std::fs::File::create(pointer)?;
    writeln!(file, "{}", place.display())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_folder_that_the_account_can_enter_is_used_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let account = Account::choose().unwrap();
        assert_eq!(account.place(folder.path()).unwrap(), folder.path());
        assert!(!folder.path().join("location").exists());
    }

    #[test]
    fn a_cluster_that_can_no_longer_be_entered_is_not_replaced_by_an_empty_one() {
        let account = Account::choose().unwrap();
        if matches!(account, Account::Own) {
            // Only root runs PostgreSQL as somebody else, whom permissions can keep out.
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("cluster")).unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        let refusal = account.place(folder.path()).unwrap_err();
        assert!(matches!(refusal, PostgresError::Unreachable { .. }), "{refusal:?}");
        assert!(!folder.path().join("location").exists());
    }

    #[test]
    fn the_place_aside_is_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let aside = tempfile::tempdir().unwrap();
        write_pointer(&folder.path().join("location"), aside.path()).unwrap();
        assert_eq!(Account::Own.place(folder.path()).unwrap(), aside.path());
    }

    #[test]
    fn root_does_not_run_postgresql_as_itself() {
        let account = Account::choose().unwrap();
        let output = account.command("/bin/sh").args(["-c", "id -u; id -G"]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let mut lines = text.lines();
        assert_ne!(lines.next(), Some("0"), "{text}");
        assert!(!lines.next().unwrap().split(' ').any(|group| group == "0"), "{text}");
    }
}
