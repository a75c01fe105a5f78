//! Program of the bench `hunt`: `cargo bench --bench hunt` measures.

fn main() -> std::process::ExitCode {
    holdfast_bench::run(holdfast_bench::cases::hunt::bench)
}
