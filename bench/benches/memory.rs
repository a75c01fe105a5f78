//! Program of the bench `memory`: `cargo bench --bench memory` measures.

fn main() -> std::process::ExitCode {
    holdfast_bench::run(holdfast_bench::cases::memory::bench)
}
