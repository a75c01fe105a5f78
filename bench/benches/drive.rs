//! Program of the bench `drive`: `cargo bench --bench drive` measures.

fn main() -> std::process::ExitCode {
    holdfast_bench::run(holdfast_bench::cases::drive::bench)
}
