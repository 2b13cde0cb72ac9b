//! Removes a data folder that nobody needs any more, with what is kept aside for it.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::cluster::running_process;

/// Removes a data folder and, where PostgreSQL's account could not enter it, the place that was used instead. There may be
/// none.
///
/// # Errors
///
/// A server still runs on it, or something cannot be removed.
pub fn remove_data(data_dir: &Path) -> io::Result<()> {
    let pointer = data_dir.join("location");
    let place = match fs::read_to_string(&pointer) {
        Ok(text) => PathBuf::from(text.trim_end_matches('\n')),
        Err(error) if error.kind() == io::ErrorKind::NotFound => data_dir.to_owned(),
        Err(error) => return Err(error),
    };
    if let Some(pid) = running_process(&place.join("cluster/postmaster.pid")) {
        let message = format!("PostgreSQL (process {pid}) still runs on {}", place.display());
        return Err(io::Error::new(io::ErrorKind::ResourceBusy, message));
    }
    // The place aside first: without the pointer nobody would find it again.
    for folder in [&*place, data_dir] {
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_and_the_place_aside_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let (data, aside) = (parent.path().join("data"), parent.path().join("aside"));
        for folder in [&data, &aside] {
            fs::create_dir_all(folder.join("cluster")).unwrap();
        }
        fs::write(data.join("location"), format!("{}\n", aside.display())).unwrap();
        remove_data(&data).unwrap();
        assert!(!data.exists() && !aside.exists());
        remove_data(&data).unwrap();
    }

    #[test]
    fn nothing_is_removed_while_a_server_runs_on_it() {
        let data = tempfile::tempdir().unwrap();
        fs::create_dir(data.path().join("cluster")).unwrap();
        let pid_file = data.path().join("cluster/postmaster.pid");
        fs::write(&pid_file, format!("{}\n", std::process::id())).unwrap();
        let error = remove_data(data.path()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ResourceBusy);
        assert!(pid_file.exists());
    }
}
