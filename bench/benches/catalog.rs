//! Program of the bench `catalog`: `cargo bench --bench catalog` measures.

fn main() -> std::process::ExitCode {
    holdfast_bench::run(holdfast_bench::cases::catalog::bench)
}
