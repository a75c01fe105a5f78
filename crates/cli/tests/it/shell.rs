//! `holdfast shell`: programs that see a site as files, in both ways, also as an ordinary user without FUSE.

use crate::common::site::Site;
use crate::common::{Said, documented, folder, holdfast, tool};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, Stdio};

/// Ways that this system allows. That by system calls must always be there.
fn ways(site: &Site) -> Vec<&'static str> {
    let can_mount =
        site.command().args(["shell", "--how", "--way", "fuse"]).output().unwrap().status.success();
    if !can_mount {
        eprintln!("the way by FUSE is not tested: this system refuses it");
    }
    ["seccomp"].into_iter().chain(can_mount.then_some("fuse")).collect()
}

/// Output of a script in a shell over the site, which must succeed.
fn run(site: &Site, way: &str, script: &str) -> String {
    let said: Said =
        site.command().args(["shell", "--way", way, "--", "bash", "-ec", script]).output().unwrap().into();
    assert_eq!(said.code, Some(0), "{way}: {script}: {}{}", said.out, said.err);
    said.out
}

/// Scripts that read files of media and of experiments in LAB; each prints 42.
pub(crate) fn media_scripts() -> Vec<String> {
    let mut scripts = Vec::new();
    if tool("ffmpeg").is_some() && tool("ffprobe").is_some() {
        let make = "ffmpeg -loglevel error -y -f lavfi -i testsrc=size=64x64:rate=1 -frames:v 42 clip.mkv </dev/null";
        let read = "ffprobe -loglevel error -count_frames -show_entries stream=nb_read_frames -of csv=p=0 LAB/clip.mkv";
        scripts.push(format!("{make}; cp clip.mkv LAB/; {read}"));
    }
    let python = std::env::var("HOLDFAST_PYTHON").unwrap_or_default();
    let has_package = |name| Command::new(&python).args(["-c", &format!("import {name}")]).output();
    if has_package("h5py").is_ok_and(|done| done.status.success()) {
        let make = "import h5py; f = h5py.File('run.h5', 'w'); f['frames'] = range(100000); f.close()";
        let read = "import h5py; print(h5py.File('LAB/run.h5', 'r')['frames'][42])";
        scripts.push(format!("{python} -c \"{make}\"; cp run.h5 LAB/; {python} -c \"{read}\""));
    } else {
        eprintln!("h5py is not installed: it is not checked");
    }
    scripts
}

#[test]
fn programs_work_in_a_shell() {
    let folder = folder();
    let dir = folder.path();
    let site = Site::start(dir, &[]);
    for way in ways(&site) {
        let run = |script: &str| run(&site, way, &script.replace("LAB", &format!("/hf/{way}")));
        assert_eq!(run("mkdir LAB; echo hello > LAB/a; cat LAB/a"), "hello\n");
        assert_eq!(site.ends(&format!("cat /{way}/a"), 0).out, "hello\n");
        if tool("git").is_some() {
            let make = "git init -q r && cd r && git config user.email a@b && git config user.name a && \
                echo text > f && git add f && git commit -qm first";
            run(&format!("rm -rf r; {make}"));
            let status = run("git clone -q r LAB/r 2>&1; cd LAB/r; git status --short; git log --format=%s");
            assert_eq!(status, "first\n");
            assert_eq!(site.ends(&format!("cat /{way}/r/f"), 0).out, "text\n");
            assert_eq!(
                run(
                    "cd LAB/r; echo more >> f; git -c user.name=a -c user.email=a@b commit -qam second; git log --format=%s"
                ),
                "second\nfirst\n"
            );
        }
        if tool("make").is_some() {
            run("mkdir LAB/m; printf 'b: a\\n\\tcp a b\\n' > LAB/m/Makefile; echo x > LAB/m/a");
            run("make -s -C LAB/m; cmp LAB/m/a LAB/m/b; make -q -C LAB/m");
        }
        if tool("sqlite3").is_some() {
            run("rm -f d.db; sqlite3 d.db 'create table t(a); insert into t values(42)'; cp d.db LAB/");
            assert_eq!(run("sqlite3 -readonly LAB/d.db 'select a from t'"), "42\n");
        }
        if tool("python3").is_some() {
            let seek = "import mmap, os; f = open('LAB/a', 'rb'); f.seek(2); print(f.read(2)); \
                print(mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)[:5]); print(os.listdir('LAB')[0]); \
                os.chdir('LAB'); print(open('a').read(), os.getcwd()); w = open('w', 'wb'); w.write(b'x' * 9); \
                w.seek(3); w.write(b'y'); w.close(); print(open('w').read())";
            let said = run(&format!("python3 -c \"{seek}\""));
            assert_eq!(said, format!("b'll'\nb'hello'\na\nhello\n /hf/{way}\nxxxyxxxxx\n"));
        }
        for script in media_scripts() {
            assert_eq!(run(&script).trim(), "42");
        }
        if tool("setfattr").is_some() {
            run("setfattr -n user.exposure -v '1.5[s]' LAB/a");
            assert!(run("getfattr -d LAB/a").contains("user.exposure=\"1.5[s]\""));
        }
        if tool("vim").is_some() {
            run("vim -es -N -u NONE -c '%s/hello/changed/' -c 'wq' LAB/a </dev/null");
            assert_eq!(site.ends(&format!("cat /{way}/a"), 0).out, "changed\n");
        }
    }
}

#[test]
fn status_and_signals_pass_through() {
    let folder = folder();
    let dir = folder.path();
    let site = Site::start(dir, &[]);
    for way in ways(&site) {
        let shell = |words: &[&str]| {
            let mut command = site.command();
            command.args(["shell", "--way", way]).args(words);
            command
        };
        let code = |words: &[&str]| shell(words).output().unwrap().status.code();
        assert_eq!(code(&["--", "sh", "-c", "exit 7"]), Some(7));
        assert_eq!(code(&["--", "no-such-program"]), Some(127));
        assert_eq!(code(&["--", "/etc/passwd"]), Some(126));
        let killed = shell(&["--", "sh", "-c", "kill -KILL $$"]).status().unwrap();
        assert_eq!(killed.signal(), Some(9));
        let mut waiting = shell(&[
            "--",
            "sh",
            "-c",
            "trap 'echo caught; kill $!; exit 3' TERM; sleep infinity & echo ready; wait",
        ])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
        let mut lines = BufReader::new(waiting.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "ready");
        kill_process(Pid::from_child(&waiting), Signal::TERM).unwrap();
        assert_eq!(lines.next().unwrap().unwrap(), "caught");
        assert_eq!(waiting.wait().unwrap().code(), Some(3));
        let how: Value =
            serde_json::from_slice(&shell(&["--how", "--json"]).output().unwrap().stdout).unwrap();
        documented("shell", [&how]);
        assert_eq!(how["way"], json!(way));
    }
    for (line, code, wanted) in [
        ("shell --at relative -- true", 2, "--at"),
        ("shell --site http://127.0.0.1:1 -- true", 1, "http://127.0.0.1:1"),
        ("shell --path /none -- true", 3, "/none"),
    ] {
        let said = site.ends(line, code);
        assert!(said.err.contains(wanted), "{}", said.err);
    }
}

#[test]
fn an_ordinary_user_without_fuse_reads_the_tree() {
    if !geteuid().is_root() {
        eprintln!("another user is not tested: this is not root");
        return;
    }
    let folder = folder();
    let dir = folder.path();
    let site = Site::start(dir, &[]);
    let bytes: Vec<u8> = (0..5_000_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    fs::write(dir.join("big"), &bytes).unwrap();
    site.ends("put big /lab/run/", 0);
    fs::write(dir.join("small"), "text\n").unwrap();
    site.ends("put small /lab/run/", 0);
    // The program must lie where the user may run it.
    let home = dir.join("home");
    fs::create_dir(&home).unwrap();
    let program = home.join("holdfast");
    let built = holdfast(dir).get_program().to_owned();
    if fs::hard_link(&built, &program).is_err() {
        fs::copy(&built, &program).unwrap();
    }
    let nobody = 65_534;
    fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::chown(&home, Some(nobody), Some(nobody)).unwrap();
    let as_nobody = |arguments: &[&str]| -> Said {
        let mut command = Command::new(&program);
        command
            .current_dir(&home)
            .env("HOME", &home)
            .env("HOLDFAST_SITE", site.url())
            .uid(nobody)
            .gid(nobody);
        command.args(arguments).stdin(Stdio::null()).output().unwrap().into()
    };
    let how = as_nobody(&["shell", "--how", "--json"]);
    let how: Value = serde_json::from_str(&how.out).unwrap_or_else(|_| panic!("{}", how.err));
    documented("shell", [&how]);
    if fs::metadata("/dev/fuse").is_ok_and(|found| found.mode_of_others() == 0) {
        assert_eq!(how["way"], json!("seccomp"), "{how}");
        assert_eq!(how["refused"][0]["way"], json!("fuse"), "{how}");
    }
    let sum = as_nobody(&["shell", "--", "sha256sum", "/hf/lab/run/big"]);
    assert_eq!(sum.code, Some(0), "{}", sum.err);
    let got = as_nobody(&["get", "/lab/run/big", "got"]);
    assert_eq!(got.code, Some(0), "{}", got.err);
    let wanted: Said = Command::new("sha256sum").arg("got").current_dir(&home).output().unwrap().into();
    assert_eq!(sum.out.split(' ').next(), wanted.out.split(' ').next());
    let packed = as_nobody(&["shell", "--", "tar", "cf", "run.tar", "-C", "/hf/lab", "run"]);
    assert_eq!(packed.code, Some(0), "{}", packed.err);
    let unpacked = Command::new("tar").args(["xf", "run.tar"]).current_dir(&home).status().unwrap();
    assert!(unpacked.success());
    assert!(fs::read(home.join("run/big")).unwrap() == bytes);
    assert_eq!(fs::read(home.join("run/small")).unwrap(), b"text\n");
    // Writing needs no more than reading.
    let written = as_nobody(&["shell", "--", "cp", "got", "/hf/lab/copy"]);
    assert_eq!(written.code, Some(0), "{}", written.err);
    assert_eq!(site.ends("get /lab/copy copy", 0).code, Some(0));
    assert!(fs::read(dir.join("copy")).unwrap() == bytes);
}

#[test]
fn bytes_that_the_site_did_not_take_are_named_at_the_end() {
    let folder = folder();
    let dir = folder.path();
    let all = ways(&Site::start(dir, &[]));
    for way in all {
        let site = Site::start(dir, &[]);
        site.ends(&format!("mkdir -p /{way}"), 0);
        // No descriptor is closed before the end: a close would store the bytes.
        let script = "open F, '>', $ARGV[0] or die; syswrite F, qq(precious\\n); syswrite STDOUT, qq(ready\\n); \
            sysread STDIN, $_, 1";
        let mut shell = site.command();
        shell.args(["shell", "--way", way, "--wait", "10ms", "--", "perl", "-e", script]);
        shell.arg(format!("/hf/{way}/lost"));
        let mut child =
            shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        site.stop();
        drop(child.stdin.take());
        let said = Said::from(child.wait_with_output().unwrap());
        assert_eq!(said.code, Some(1), "{way}: {}", said.err);
        let kept = said.err.split("its bytes are kept in ").nth(1).and_then(|rest| rest.split(';').next());
        let kept = kept.unwrap_or_else(|| panic!("{way}: {}", said.err));
        assert_eq!(fs::read(kept).unwrap(), b"precious\n", "{way}");
    }
}

/// Rights of other users.
trait OfOthers {
    fn mode_of_others(&self) -> u32;
}

impl OfOthers for fs::Metadata {
    fn mode_of_others(&self) -> u32 {
        self.permissions().mode() & 0o007
    }
}
