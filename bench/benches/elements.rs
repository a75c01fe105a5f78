//! Program of the bench `elements`: `cargo bench --bench elements` measures.

fn main() -> std::process::ExitCode {
    holdfast_bench::run(holdfast_bench::cases::elements::bench)
}
