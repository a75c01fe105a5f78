//! Shell: unmodified programs over the tree, by answered system calls and by FUSE in name spaces.

use crate::world::{World, contents};
use holdfast_fs::{FileSystem, FsOptions, ROOT, ShellWay, check, start};
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

/// Ways that this system allows. That by system calls must always be there.
fn ways(fs: &FileSystem) -> Vec<ShellWay> {
    let can_mount = check(ShellWay::Fuse, fs, Path::new(FOLDER));
    if let Err(error) = &can_mount {
        eprintln!("the way by FUSE is not tested: {error}");
    }
    [ShellWay::Calls].into_iter().chain(can_mount.ok().map(|()| ShellWay::Fuse)).collect()
}

#[test]
fn programs_read_and_list() {
    let world = World::new();
    let fs = world.fs(world.options());
    let bytes = contents(7, 3_000_000);
    store(&world, &fs, "lab", "a.bin", &bytes);
    store(&world, &fs, "lab", "text", b"one\ntwo\nthree\n");
    store(&world, &fs, "lab", "long", "a line of text\n".repeat(20_000).as_bytes());
    let sum = blake3::hash(&bytes);
    std::fs::write(world.folder().join("a.bin"), &bytes).unwrap();
    for way in ways(&fs) {
        let run = |script: &str| lines(&world, &fs, way, script);
        assert_eq!(run("ls /hf/lab"), ["a.bin", "long", "text"]);
        // A file that is not fetched yet must not look like a hole.
        assert_eq!(run("grep -c line /hf/lab/long"), ["20000"]);
        // A current folder outlives a wrong step and closed descriptors.
        let step = "cd /hf/lab; cd /no-such 2>/dev/null || true; ls";
        assert_eq!(run(step), ["a.bin", "long", "text"]);
        let closed = "python3 -c \"import os, subprocess; os.chdir('/hf/lab'); subprocess.run(['ls']); \
            os.closerange(3, 1000); print(sorted(os.listdir('.')), os.getcwd())\"";
        assert_eq!(run(closed), ["a.bin", "long", "text", "['a.bin', 'long', 'text'] /hf/lab"]);
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
            ["/hf/lab", "3", "a.bin", "long", "text", "/hf"]
        );
        assert_eq!(run("cp /hf/lab/a.bin copy && cmp copy a.bin && echo same"), ["same"]);
        assert_eq!(
            run("tar cf lab.tar -C /hf lab && tar tf lab.tar | sort"),
            ["lab/", "lab/a.bin", "lab/long", "lab/text"]
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
    for (at, way) in ways(&fs).into_iter().enumerate() {
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

/// Random operations on a file of the tree and on a local one, which must agree (after `fsx`).
const RANDOM_OPERATIONS: &str = r"
import mmap, os, random, sys
path, local, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
random.seed(seed)
for p in (path, local): open(p, 'wb').close()
def both(flags): return os.open(path, flags), os.open(local, flags)
pair, flags = both(os.O_RDWR), os.O_RDWR
for step in range(150):
    size = os.fstat(pair[1]).st_size
    op, at, length = random.randrange(9), random.randrange(200000), random.randrange(1, 30000)
    writes = flags != os.O_RDONLY
    if op < 2 and writes:
        data = random.randbytes(length)
        for f in pair: os.pwrite(f, data, at)
    elif op == 2 and writes:
        for f in pair: os.ftruncate(f, at)
    elif op == 3:
        for f in pair: os.close(f)
        flags = random.choice([os.O_RDWR, os.O_RDONLY, os.O_WRONLY | os.O_APPEND])
        pair = both(flags)
    elif op == 4 and writes:
        data = random.randbytes(length)
        for f in pair: os.lseek(f, min(at, size), os.SEEK_SET); os.write(f, data)
    elif op == 5 and not (flags & os.O_WRONLY) and size:
        maps = [mmap.mmap(f, 0, prot=mmap.PROT_READ)[:] for f in pair]
        assert maps[0] == maps[1], (seed, step, 'mmap')
    elif op == 6:
        for f in pair: os.fsync(f)
    elif not (flags & os.O_WRONLY):
        found = [os.pread(f, length, at) for f in pair]
        assert found[0] == found[1], (seed, step, 'pread', len(found[0]), len(found[1]))
        for f in pair: os.lseek(f, at, os.SEEK_SET)
        found = [os.read(f, length) for f in pair]
        assert found[0] == found[1], (seed, step, 'read')
    sizes = [os.stat(p).st_size for p in (path, local)]
    assert sizes[0] == sizes[1], (seed, step, op, sizes)
for f in pair: os.close(f)
assert open(path, 'rb').read() == open(local, 'rb').read(), (seed, 'end')
print('same')
";

#[test]
fn random_operations_agree_with_those_of_a_local_file() {
    let world = World::new();
    let fs = world.fs(world.options());
    std::fs::write(world.folder().join("random.py"), RANDOM_OPERATIONS).unwrap();
    world.run(async { fs.make_directory(ROOT, "lab").await.unwrap() });
    for (at, way) in ways(&fs).into_iter().enumerate() {
        for seed in 1..=2 {
            let script =
                format!("python3 random.py /hf/lab/f{at}-{seed} local {seed}; cp local local{at}-{seed}");
            assert_eq!(lines(&world, &fs, way, &script), ["same"], "{way:?}, seed {seed}");
        }
    }
    // The site has what the last close stored.
    let fresh = world.fs(world.options());
    for at in 0..ways(&fs).len() {
        for seed in 1..=2 {
            let script = format!("cmp /hf/lab/f{at}-{seed} local{at}-{seed} && echo same");
            assert_eq!(lines(&world, &fresh, ShellWay::Calls, &script), ["same"]);
        }
    }
}

#[test]
fn many_processes_and_files_share_the_tree() {
    let world = World::new();
    let fs = world.fs(world.options());
    let bytes = contents(11, 300_000);
    store(&world, &fs, "lab", "a.bin", &bytes);
    std::fs::write(world.folder().join("a.bin"), &bytes).unwrap();
    let script = "
import os, threading
files = [open('/hf/lab/a.bin', 'rb') for _ in range(300)]
want = open('a.bin', 'rb').read()
def check(part):
    for f in files[part::4]: assert f.read() == want
threads = [threading.Thread(target=check, args=(n,)) for n in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
shared = os.open('/hf/lab/a.bin', os.O_RDONLY)
pieces = []
def take():
    while piece := os.read(shared, 1000): pieces.append(piece)
threads = [threading.Thread(target=take) for n in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
assert sum(map(len, pieces)) == len(want)
pid = os.fork()
if pid == 0:
    w = open('/hf/lab/left', 'wb', buffering=0); w.write(b'by a killed process'); os.kill(os.getpid(), 9)
os.waitpid(pid, 0)
print(open('/hf/lab/left').read())
";
    std::fs::write(world.folder().join("many.py"), script).unwrap();
    for way in ways(&fs) {
        let run = |script: &str| lines(&world, &fs, way, script);
        assert_eq!(run("python3 many.py"), ["by a killed process"]);
        let copies = "seq 16 | xargs -P 8 -I N cp a.bin /hf/lab/copy-N; ls /hf/lab | wc -l; \
            seq 16 | xargs -P 8 -I N cmp a.bin /hf/lab/copy-N && rm /hf/lab/copy-*";
        assert_eq!(run(copies), ["18"]);
        assert_eq!(run("cat <(tail -c 5 /hf/lab/a.bin) /dev/fd/0 < /hf/lab/a.bin | wc -c"), ["300005"]);
        assert_eq!(
            run("exec 9</hf/lab/a.bin; cat /dev/fd/9 | wc -c; head -c 9 <&9 | wc -c"),
            ["300000", "9"]
        );
    }
    let fresh = world.fs(world.options());
    assert_eq!(lines(&world, &fresh, ShellWay::Calls, "cat /hf/lab/left"), ["by a killed process"]);
}
