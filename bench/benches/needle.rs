//! Program of the bench `needle`: `cargo bench --bench needle` measures.

fn main() -> std::process::ExitCode {
    holdfast_bench::run(holdfast_bench::cases::needle::bench)
}
