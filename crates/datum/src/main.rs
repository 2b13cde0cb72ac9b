//! `datum`: see the library for what it does.

use std::process::ExitCode;

/// glibc keeps an arena per thread at its high-water mark; a task that was busy once would stay large.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    datum::main()
}
