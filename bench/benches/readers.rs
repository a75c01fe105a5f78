//! Program of the bench `readers`: `cargo bench --bench readers` measures.

fn main() -> std::process::ExitCode {
    holdfast_bench::run(holdfast_bench::cases::readers::bench)
}
