//! Program of the bench `beside`: `cargo bench --bench beside` measures.

fn main() -> std::process::ExitCode {
    holdfast_bench::run(holdfast_bench::cases::beside::bench)
}
