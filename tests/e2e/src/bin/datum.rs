//! `datum`, as its own crate builds it.

use std::process::ExitCode;

/// As in the program that users run: memory is part of what is tested.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    datum::main()
}
