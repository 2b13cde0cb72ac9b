//! Finds out which revision is built, so that results can say what wrote them.

use std::path::Path;
use std::process::Command;

fn main() {
    let root = Path::new("../..");
    // `logs/HEAD` grows with every commit, `index` changes with what is staged. Folders count with everything in them.
    for path in
        [".git/HEAD", ".git/logs/HEAD", ".git/index", "Cargo.lock", "crates", "services", "migrations", "tests/load"]
    {
        if root.join(path).exists() {
            println!("cargo:rerun-if-changed=../../{path}");
        }
    }
    println!("cargo:rerun-if-changed=build.rs");
    // Without a repository, or without git, there is no revision, and that is no error.
    if let Some(revision) = revision(root) {
        println!("cargo:rustc-env=DATUM_REVISION={revision}");
    }
}

fn revision(root: &Path) -> Option<String> {
    // A copy inside another project's repository must not take that one's revision.
    if !root.join(".git").exists() {
        return None;
    }
    let head = git(root, &["rev-parse", "--short=12", "HEAD"])?;
    let changed = git(root, &["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changed.is_empty() { head } else { format!("{head}, changed") })
}

fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(root).arg("--no-optional-locks").args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
