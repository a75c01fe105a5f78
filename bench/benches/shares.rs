//! Program of the bench `shares`: `cargo bench --bench shares` measures.

fn main() -> std::process::ExitCode {
    holdfast_bench::run(holdfast_bench::cases::shares::bench)
}
