//! Program of the bench `packing`: `cargo bench --bench packing` measures.

fn main() -> std::process::ExitCode {
    holdfast_bench::run(holdfast_bench::cases::packing::bench)
}
