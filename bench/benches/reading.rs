//! Program of the bench `reading`: `cargo bench --bench reading` measures.

fn main() -> std::process::ExitCode {
    holdfast_bench::run(holdfast_bench::cases::reading::bench)
}
