//! Program of the bench `ship`: `cargo bench --bench ship` measures.

fn main() -> std::process::ExitCode {
    holdfast_bench::run(holdfast_bench::cases::ship::bench)
}
