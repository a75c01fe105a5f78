//! Program of the bench `mount_peers`: `cargo bench --bench mount_peers` measures.

fn main() -> std::process::ExitCode {
    holdfast_bench::run(holdfast_bench::cases::mount_peers::bench)
}
