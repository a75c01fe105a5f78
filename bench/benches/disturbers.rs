//! Program of the bench `disturbers`: `cargo bench --bench disturbers` measures.

fn main() -> std::process::ExitCode {
    holdfast_bench::run(holdfast_bench::cases::disturbers::bench)
}
