//! Program of the bench `scan`: `cargo bench --bench scan` measures.

fn main() -> std::process::ExitCode {
    holdfast_bench::run(holdfast_bench::cases::scan::bench)
}
