//! Embeds the files of `migrations/`, so that the program needs no checkout.
//!
//! sqlx's own `migrate!` would do the same, but its macros bring PostgreSQL's driver and a TLS library into the build a
//! second time, for the compiler's own use: two minutes of CPU in a first build.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let root = Path::new(&env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo")).join("../../migrations");
    // A folder: its newest file's time counts, so that cargo notices a new migration too.
    println!("cargo:rerun-if-changed={}", root.display());
    let mut code = String::new();
    for schema in ["auth", "actor", "document"] {
        let _ = writeln!(code, "pub(crate) const {}: &[(&str, &str)] = &[", schema.to_uppercase());
        for file in sql_files(&root.join(schema)) {
            let name = file.file_name().and_then(|name| name.to_str()).expect("a migration's name is UTF-8");
            let path = file.to_str().expect("the checkout's path is UTF-8");
            let _ = writeln!(code, "    ({name:?}, include_str!({path:?})),");
        }
        code.push_str("];\n");
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo")).join("migrations.rs");
    fs::write(out, code).expect("OUT_DIR can be written");
}

/// The SQL files of a folder by name, which begins with the version.
fn sql_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "sql"));
    files.sort();
    files
}
