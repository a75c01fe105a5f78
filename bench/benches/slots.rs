//! Program of the bench `slots`: `cargo bench --bench slots` measures.

fn main() -> std::process::ExitCode {
    holdfast_bench::run(holdfast_bench::cases::slots::bench)
}
