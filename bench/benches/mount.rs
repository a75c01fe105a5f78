//! Program of the bench `mount`: `cargo bench --bench mount` measures.

fn main() -> std::process::ExitCode {
    holdfast_bench::run(holdfast_bench::cases::mount::bench)
}
