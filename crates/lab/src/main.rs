#![forbid(unsafe_code)]
//! The `onefold-lab` command; all it does is in the library beside it.

fn main() -> std::process::ExitCode {
    lab::main()
}
