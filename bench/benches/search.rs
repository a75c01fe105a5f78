//! Program of the bench `search`: `cargo bench --bench search` measures.

fn main() -> std::process::ExitCode {
    holdfast_bench::run(holdfast_bench::cases::search::bench)
}
