//! Finds the group this process is in, in the hierarchy that limits CPU time: version 1 or version 2.

use std::fs;
use std::path::{Path, PathBuf};

use super::QuotaError;

/// The hierarchy with the CPU controller, and this process's group in it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// cgroups version 1, the controller `cpu` in a hierarchy of its own (or with `cpuacct`).
    V1 {
        /// The group's folder.
        group: PathBuf,
    },
    /// cgroups version 2.
    V2 {
        /// The folder of the hierarchy's root, as far as this process sees it.
        mount: PathBuf,
        /// The group's folder.
        group: PathBuf,
    },
}

pub(super) fn find() -> Result<Found, QuotaError> {
    let unreadable = |_| QuotaError::NoController("this system has no cgroups".to_owned());
    let mounts = fs::read_to_string("/proc/self/mountinfo").map_err(unreadable)?;
    let groups = fs::read_to_string("/proc/self/cgroup").map_err(unreadable)?;
    locate(&mounts, &groups)
        .ok_or_else(|| QuotaError::NoController("no cgroup hierarchy with a CPU controller is mounted".to_owned()))
}

/// The group of a process, in the hierarchy that limits CPU time.
pub(super) fn group_of(pid: u32) -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    match locate(&mounts, &groups)? {
        Found::V1 { group } | Found::V2 { group, .. } => Some(group),
    }
}

/// `mountinfo` and `cgroup` of proc(5) and cgroups(7).
fn locate(mountinfo: &str, groups: &str) -> Option<Found> {
    let mounts: Vec<Mount> = mountinfo.lines().filter_map(Mount::parse).collect();
    let group_of = |wanted: &dyn Fn(&str) -> bool| {
        groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            wanted(controllers).then_some(path)
        })
    };
    if let Some(mount) =
        mounts.iter().find(|mount| mount.kind == "cgroup" && mount.options.split(',').any(|it| it == "cpu"))
    {
        let path = group_of(&|controllers| controllers.split(',').any(|it| it == "cpu"))?;
        return Some(Found::V1 { group: mount.folder_of(path) });
    }
    let mount = mounts.iter().find(|mount| mount.kind == "cgroup2")?;
    let path = group_of(&str::is_empty)?;
    Some(Found::V2 { mount: mount.point.clone(), group: mount.folder_of(path) })
}

struct Mount<'a> {
    root: &'a str,
    point: PathBuf,
    kind: &'a str,
    options: &'a str,
}

impl<'a> Mount<'a> {
    /// `31 23 0:28 ROOT POINT rw … - KIND SOURCE OPTIONS`
    fn parse(line: &'a str) -> Option<Self> {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(3);
        let mut after = after.split(' ');
        Some(Self {
            root: before.next()?,
            point: PathBuf::from(before.next()?),
            kind: after.next()?,
            options: after.nth(1)?,
        })
    }

    /// In a container, the mount shows only the part of the hierarchy below `root`, while the path may be the host's.
    fn folder_of(&self, path: &str) -> PathBuf {
        let path = Path::new(path);
        let below = path.strip_prefix(self.root).or_else(|_| path.strip_prefix("/")).unwrap_or(path);
        if below.as_os_str().is_empty() { self.point.clone() } else { self.point.join(below) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_1_is_found_in_a_hybrid_system() {
        let mounts = "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n\
                      41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
        let groups = "4:memory:/a\n1:cpu,cpuacct:/user/x\n0::/user.slice\n";
        let found = locate(mounts, groups).expect("found");
        assert_eq!(found, Found::V1 { group: "/sys/fs/cgroup/cpu,cpuacct/user/x".into() });
    }

    #[test]
    fn version_2_is_found_with_the_scope_of_the_session() {
        let mounts = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
        let groups = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/run-1.scope\n";
        let Some(Found::V2 { mount, group }) = locate(mounts, groups) else { panic!("not found") };
        assert_eq!(mount, Path::new("/sys/fs/cgroup"));
        assert!(group.ends_with("user@1000.service/app.slice/run-1.scope"), "{}", group.display());
    }

    #[test]
    fn in_a_container_the_host_part_of_the_path_is_left_out() {
        let mounts = "30 23 0:26 /docker/abc /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n";
        let found = locate(mounts, "3:cpu:/docker/abc\n").expect("found");
        assert_eq!(found, Found::V1 { group: "/sys/fs/cgroup/cpu".into() });
    }

    #[test]
    fn a_set_of_cpus_is_not_the_cpu_controller() {
        let mounts = "32 31 0:29 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n";
        assert_eq!(locate(mounts, "1:cpuset:/\n"), None);
    }
}
