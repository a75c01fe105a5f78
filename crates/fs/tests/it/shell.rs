//! Shell: unmodified programs over the tree, by answered system calls and by FUSE in name spaces.

use crate::world::{World, contents};
use holdfast_fs::{FileSystem, FsOptions, ROOT, ShellWay, start};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

const FOLDER: &str = "/hf";

/// Runs a script in a shell over the tree.
fn run(world: &World, fs: &Arc<FileSystem>, way: ShellWay, script: &str) -> Output {
    let mut command = Command::new("bash");
    command.args(["-c", script]).current_dir(world.folder());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut shell = start(way, fs, Path::new(FOLDER), command, world.runtime.handle()).unwrap();
    let mut out = shell.program.stdout.take().unwrap();
    let errors = std::thread::spawn({
        let mut errors = shell.program.stderr.take().unwrap();
        move || {
            let mut text = Vec::new();
            std::io::copy(&mut errors, &mut text).unwrap();
            text
        }
    });
    let mut stdout = Vec::new();
    std::io::copy(&mut out, &mut stdout).unwrap();
    let status = shell.program.wait().unwrap();
    Output { status, stdout, stderr: errors.join().unwrap() }
}

/// Lines of a script's output; the script must succeed.
fn lines(world: &World, fs: &Arc<FileSystem>, way: ShellWay, script: &str) -> Vec<String> {
    let done = run(world, fs, way, script);
    let errors = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{script}: {errors}");
    assert_eq!(errors, "", "{script}");
    String::from_utf8(done.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Stores a file through the file system.
fn store(world: &World, fs: &Arc<FileSystem>, folder: &str, name: &str, bytes: &[u8]) {
    world.run(async {
        let parent = match fs.lookup(ROOT, folder).await {
            Ok(found) => found.ino,
            Err(_) => fs.make_directory(ROOT, folder).await.unwrap().ino,
        };
        let (_, handle) = fs.create(parent, name).await.unwrap();
        fs.write(handle, 0, bytes).unwrap();
        fs.sync(handle).await.unwrap();
        fs.release(handle);
    });
}

fn ways() -> Vec<ShellWay> {
    vec![ShellWay::Calls, ShellWay::Fuse]
}

#[test]
fn programs_read_and_list() {
    let world = World::new();
    let fs = world.fs(world.options());
    let bytes = contents(7, 3_000_000);
    store(&world, &fs, "lab", "a.bin", &bytes);
    store(&world, &fs, "lab", "text", b"one\ntwo\nthree\n");
    let sum = blake3::hash(&bytes);
    std::fs::write(world.folder().join("a.bin"), &bytes).unwrap();
    for way in ways() {
        let run = |script: &str| lines(&world, &fs, way, script);
        assert_eq!(run("ls /hf/lab"), ["a.bin", "text"]);
        assert_eq!(run("cat /hf/lab/text"), ["one", "two", "three"]);
        assert_eq!(run("cmp /hf/lab/a.bin a.bin && echo same"), ["same"]);
        assert_eq!(run("stat -c '%s %F' /hf/lab/a.bin"), ["3000000 regular file"]);
        assert_eq!(run("tail -c 4 /hf/lab/text"), ["ree"]);
        // A redirection gives the file a low descriptor.
        assert_eq!(
            run("while read -r line; do echo \"<$line>\"; done < /hf/lab/text"),
            ["<one>", "<two>", "<three>"]
        );
        assert_eq!(
            run("cd /hf/lab; pwd; cat text | wc -l; ls; cd ..; /bin/pwd"),
            ["/hf/lab", "3", "a.bin", "text", "/hf"]
        );
        assert_eq!(run("cp /hf/lab/a.bin copy && cmp copy a.bin && echo same"), ["same"]);
        assert_eq!(
            run("tar cf lab.tar -C /hf lab && tar tf lab.tar | sort"),
            ["lab/", "lab/a.bin", "lab/text"]
        );
        assert_eq!(run("tar xf lab.tar && cmp lab/a.bin a.bin && echo same; rm -r lab"), ["same"]);
    }
    assert_eq!(sum, blake3::hash(&bytes));
}

#[test]
fn programs_write_and_change_the_tree() {
    let world = World::new();
    let fs = world.fs(world.options());
    let bytes = contents(9, 9_000_000);
    std::fs::write(world.folder().join("a.bin"), &bytes).unwrap();
    for (at, way) in ways().into_iter().enumerate() {
        let run = |script: &str| lines(&world, &fs, way, &script.replace("LAB", &format!("/hf/lab{at}")));
        assert_eq!(run("mkdir LAB && cp a.bin LAB/a.bin && cmp a.bin LAB/a.bin && echo same"), ["same"]);
        assert_eq!(run("echo one > LAB/text; echo two >> LAB/text; cat LAB/text"), ["one", "two"]);
        assert_eq!(
            run("mv LAB/text LAB/moved; rm LAB/a.bin; ls LAB; mkdir LAB/sub; rmdir LAB/sub; ls LAB"),
            ["moved", "moved"]
        );
        assert_eq!(
            run("cd LAB; mkdir -p x/y; tar cf - -C / etc/hostname | tar xf - -C x/y; find . | sort"),
            [".", "./moved", "./x", "./x/y", "./x/y/etc", "./x/y/etc/hostname"]
        );
    }
    // Another client sees what was stored.
    let fresh = world.fs(FsOptions { read_only: true, ..world.options() });
    assert_eq!(lines(&world, &fresh, ShellWay::Calls, "cat /hf/lab0/moved"), ["one", "two"]);
    let refused = run(&world, &fresh, ShellWay::Calls, "echo three > /hf/lab0/moved");
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("Read-only file system"));
}
