//! `sqlx::migrate!` embeds the files; without this, cargo would not notice a new one.

fn main() {
    println!("cargo:rerun-if-changed=../../migrations");
}
