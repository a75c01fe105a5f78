//! Program of the bench `producers`: `cargo bench --bench producers` measures.

fn main() -> std::process::ExitCode {
    holdfast_bench::run(holdfast_bench::cases::producers::bench)
}
