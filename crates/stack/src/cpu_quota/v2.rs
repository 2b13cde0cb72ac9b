//! Quotas in cgroups version 2, where only groups without processes of their own may have limited children
//! (`Documentation/admin-guide/cgroup-v2.rst`, "No Internal Process Constraint").

use std::fs;
use std::path::{Path, PathBuf};

use super::{PERIOD_US, PREFIX, QuotaError, TaskCpu, write};

/// The group that those of tasks are made in.
#[derive(Debug)]
pub(super) struct Parent {
    path: PathBuf,
    /// Our own processes, where they had to make room; they move back at the end.
    moved_into: Option<PathBuf>,
}

impl Parent {
    /// Chooses the nearest group above `own` that may have limited children. Where there is none, `own` becomes one: its
    /// processes move into a child of it, which a delegated scope or a container permits.
    pub(super) fn choose(mount: &Path, own: &Path) -> Result<Self, QuotaError> {
        let above = own.ancestors().skip(1).take_while(|group| group.starts_with(mount));
        // The root of all groups is exempt from the constraint; it alone has no `cgroup.type`.
        let root = (own == mount && !own.join("cgroup.type").exists()).then_some(own);
        for group in root.into_iter().chain(above) {
            if is_limiting(group) && may_make_groups(group) {
                return Ok(Self { path: group.to_owned(), moved_into: None });
            }
        }
        make_room(own)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Parent {
    fn drop(&mut self) {
        let Some(child) = &self.moved_into else { return };
        // In this order: processes may only come back when no child is limited any more.
        let _ = write(&self.path.join("cgroup.subtree_control"), "-cpu");
        let _ = move_processes(child, &self.path);
        let _ = fs::remove_dir(child);
    }
}

pub(super) fn limit(group: &Path, cpu: TaskCpu) -> Result<(), QuotaError> {
    write(&group.join("cpu.max"), &format!("{} {PERIOD_US}", cpu.quota_us()))
}

/// Whether the children of a group can have CPU limits already.
fn is_limiting(group: &Path) -> bool {
    lists_cpu(&group.join("cgroup.subtree_control"))
}

fn lists_cpu(controllers: &Path) -> bool {
    fs::read_to_string(controllers).is_ok_and(|text| text.split_whitespace().any(|controller| controller == "cpu"))
}

/// Tried, not guessed from permissions: read-only mounts and namespaces decide too. Moving a process into a child needs
/// `cgroup.procs` of the common ancestor as well.
fn may_make_groups(group: &Path) -> bool {
    let trial = group.join(format!("{PREFIX}{}-permission", std::process::id()));
    let made = fs::create_dir(&trial).is_ok();
    let _ = fs::remove_dir(&trial);
    made && fs::OpenOptions::new().write(true).open(group.join("cgroup.procs")).is_ok()
}

fn make_room(own: &Path) -> Result<Parent, QuotaError> {
    if !lists_cpu(&own.join("cgroup.controllers")) {
        return Err(QuotaError::NotPermitted {
            path: own.to_owned(),
            source: std::io::Error::new(
                std::io::ErrorKind::PermissionDenied,
                "the CPU controller is not delegated to it",
            ),
        });
    }
    let child = own.join(format!("{PREFIX}{}-stack", std::process::id()));
    fs::create_dir(&child).map_err(|source| QuotaError::not_permitted(&child, source))?;
    // From here on its drop undoes what was done.
    let parent = Parent { path: own.to_owned(), moved_into: Some(child.clone()) };
    move_processes(own, &child)?;
    write(&own.join("cgroup.subtree_control"), "+cpu")?;
    Ok(parent)
}

/// Moves every process of one group into another. Children that are started meanwhile are found by the next round.
fn move_processes(from: &Path, to: &Path) -> Result<(), QuotaError> {
    const ROUNDS: usize = 5;
    let source = from.join("cgroup.procs");
    for _ in 0..ROUNDS {
        let processes = fs::read_to_string(&source).map_err(|error| QuotaError::not_permitted(&source, error))?;
        if processes.trim().is_empty() {
            break;
        }
        for pid in processes.split_whitespace() {
            match write(&to.join("cgroup.procs"), pid) {
                // It ended meanwhile.
                Err(QuotaError::NotPermitted { source, .. }) if source.raw_os_error() == Some(nix::libc::ESRCH) => {}
                moved => moved?,
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with the files of a group. The kernel's rules are not in it; what is read and written is.
    fn group(path: &Path, controllers: &str, subtree: &str, processes: &str) {
        fs::create_dir_all(path).expect("a folder");
        for (file, text) in [
            ("cgroup.controllers", controllers),
            ("cgroup.subtree_control", subtree),
            ("cgroup.procs", processes),
            ("cgroup.type", "domain"),
        ] {
            fs::write(path.join(file), text).expect("written");
        }
    }

    #[test]
    fn the_nearest_group_above_that_limits_its_children_is_taken() {
        let mount = tempfile::tempdir().expect("a folder");
        let own = mount.path().join("app.slice/run-1.scope");
        group(mount.path(), "cpu memory", "cpu memory", "");
        group(&mount.path().join("app.slice"), "cpu memory", "cpu", "");
        group(&own, "cpu", "", "42\n");
        let parent = Parent::choose(mount.path(), &own).expect("chosen");
        assert_eq!(parent.path(), mount.path().join("app.slice"));
        assert!(parent.moved_into.is_none());
    }

    #[test]
    fn without_the_controller_it_is_refused() {
        let mount = tempfile::tempdir().expect("a folder");
        let own = mount.path().join("session.scope");
        group(mount.path(), "memory", "memory", "");
        group(&own, "memory", "", "42\n");
        let error = Parent::choose(mount.path(), &own).expect_err("refused");
        assert!(error.to_string().contains("not delegated"), "{error}");
    }

    #[test]
    fn the_limit_is_time_and_period() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("cpu.max"), "max 100000").expect("written");
        limit(folder.path(), "512".parse().expect("a size")).expect("written");
        assert!(fs::read_to_string(folder.path().join("cpu.max")).expect("text").starts_with("50000 100000"));
    }
}
