//! Program of the bench `sites`: `cargo bench --bench sites` measures.

fn main() -> std::process::ExitCode {
    holdfast_bench::run(holdfast_bench::cases::sites::bench)
}
