//! Links the program to a fixed place: with the SQL engine in it, 300,000 addresses would have to be put right at each start, which
//! takes longer than many a command. The recorder, which is what others reach, is loaded anywhere.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|env| env == "gnu") {
        println!("cargo:rustc-link-arg-bin=holdfast=-no-pie");
    }
}
