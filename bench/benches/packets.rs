//! Program of the bench `packets`: `cargo bench --bench packets` measures.

fn main() -> std::process::ExitCode {
    holdfast_bench::run(holdfast_bench::cases::packets::bench)
}
