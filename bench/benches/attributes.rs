//! Program of the bench `attributes`: `cargo bench --bench attributes` measures.

fn main() -> std::process::ExitCode {
    holdfast_bench::run(holdfast_bench::cases::attributes::bench)
}
