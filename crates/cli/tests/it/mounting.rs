//! `holdfast mount`: a site as a file system, for programs, over kills and without a connection. As root with /dev/fuse.

use crate::common::recording::{Recording, line};
use crate::common::site::Site;
use crate::common::{Said, documented, ends, folder, holdfast, tool};
use crate::shell::media_scripts;
use serde_json::json;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

fn can_mount() -> bool {
    let can = rustix::process::geteuid().is_root() && Path::new("/dev/fuse").exists();
    if !can {
        eprintln!("the mount is not tested: this is not root, or there is no /dev/fuse");
    }
    can
}

/// Process of a mount. A test that fails leaves no mount.
struct Mounted {
    child: Option<Child>,
    folder: PathBuf,
}

impl Mounted {
    fn end(mut self, signal: rustix::process::Signal) -> Said {
        let child = self.child.take().unwrap();
        rustix::process::kill_process(rustix::process::Pid::from_child(&child), signal).unwrap();
        child.wait_with_output().unwrap().into()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
            let _ = rustix::mount::unmount(&self.folder, rustix::mount::UnmountFlags::DETACH);
        }
    }
}

/// Mounts in the foreground; returns once the tree is there.
fn mount(site: &Site, dir: &Path, arguments: &[&str]) -> Mounted {
    let mut command = site.command();
    command.args(["mount", "mnt", "--json"]).args(arguments);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    if line.is_empty() {
        let said = Said::from(child.wait_with_output().unwrap());
        panic!("{}", said.err);
    }
    let event = serde_json::from_str(&line).unwrap();
    documented("mount", [&event]);
    assert_eq!(event["event"], json!("mounted"));
    Mounted { child: Some(child), folder: dir.join("mnt") }
}

fn shell(dir: &Path, line: &str) -> String {
    let said: Said = Command::new("sh").args(["-ec", line]).current_dir(dir).output().unwrap().into();
    assert_eq!(said.code, Some(0), "{line}: {}{}", said.out, said.err);
    said.out
}

#[test]
fn programs_use_a_mounted_site() {
    if !can_mount() {
        return;
    }
    let folder = folder();
    let dir = folder.path();
    fs::create_dir(dir.join("mnt")).unwrap();
    let site = Site::start(dir, &[]);
    let mounted = mount(&site, dir, &[]);
    shell(dir, "mkdir mnt/lab && echo hello > mnt/lab/a && cat mnt/lab/a");
    assert_eq!(site.ends("cat /lab/a", 0).out, "hello\n");
    if tool("git").is_some() {
        let make = "git init -q r && cd r && git config user.email a@b && git config user.name a && \
            echo text > f && git add f && git commit -qm first";
        shell(dir, make);
        shell(
            dir,
            "git clone -q r mnt/lab/r 2>&1 && cd mnt/lab/r && git status --short && git log --oneline",
        );
        assert_eq!(site.ends("cat /lab/r/f", 0).out, "text\n");
        let commit =
            "cd mnt/lab/r && echo more >> f && git -c user.name=a -c user.email=a@b commit -qam second";
        shell(dir, &format!("{commit} && git fsck --strict 2>&1 && git log --format=%s"));
    }
    if tool("make").is_some() {
        shell(
            dir,
            "mkdir mnt/lab/m && printf 'b: a\\n\\tcp a b\\n' > mnt/lab/m/Makefile && echo x > mnt/lab/m/a",
        );
        shell(dir, "make -s -C mnt/lab/m && cmp mnt/lab/m/a mnt/lab/m/b && make -q -C mnt/lab/m");
    }
    if tool("sqlite3").is_some() {
        shell(dir, "sqlite3 d.db 'create table t(a); insert into t values(42)' && cp d.db mnt/lab/");
        assert_eq!(shell(dir, "sqlite3 -readonly mnt/lab/d.db 'select a from t'"), "42\n");
    }
    if tool("python3").is_some() {
        let seek = "import mmap; f = open('mnt/lab/a', 'rb'); f.seek(2); print(f.read(2)); \
            print(mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)[:5])";
        assert_eq!(shell(dir, &format!("python3 -c \"{seek}\"")), "b'll'\nb'hello'\n");
    }
    for script in media_scripts() {
        assert_eq!(shell(dir, &script.replace("LAB", "mnt/lab")).trim(), "42");
    }
    // A killed process leaves a mount that the next one replaces.
    mounted.end(rustix::process::Signal::KILL);
    assert!(fs::read_dir(dir.join("mnt")).is_err());
    let mounted = mount(&site, dir, &["--path", "/lab", "--read-only"]);
    assert_eq!(shell(dir, "cat mnt/a"), "hello\n");
    let refused = fs::write(dir.join("mnt/b"), "x").unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(rustix::io::Errno::ROFS.raw_os_error()));
    // A file that is open is no reason to keep the mount.
    let open = fs::File::open(dir.join("mnt/a")).unwrap();
    let said = mounted.end(rustix::process::Signal::TERM);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.err.contains("programs still use"), "{}", said.err);
    assert_eq!(fs::read_dir(dir.join("mnt")).unwrap().count(), 0);
    assert!(std::io::read_to_string(open).is_err());
}

#[test]
fn a_mount_in_the_background_ends_with_the_unmount() {
    if !can_mount() || tool("umount").is_none() {
        return;
    }
    let folder = folder();
    let dir = folder.path();
    fs::create_dir(dir.join("mnt")).unwrap();
    let site = Site::start(dir, &[]);
    let said = site.ends("mount mnt --daemon", 0).out;
    assert!(said.starts_with("mounted http://127.0.0.1:"), "{said}");
    shell(dir, "mkdir mnt/lab && echo x > mnt/lab/x && umount mnt");
    assert_eq!(site.ends("cat /lab/x", 0).out, "x\n");
    assert_eq!(fs::read_dir(dir.join("mnt")).unwrap().count(), 0);
    for (line, code, wanted) in [
        ("mount mnt --daemon --site http://127.0.0.1:1", 1, "http://127.0.0.1:1"),
        ("mount mnt --path /none", 3, "/none"),
        ("mount nowhere", 1, "nowhere"),
        ("mount mnt --buffer-size x", 2, "--buffer-size"),
        ("mount mnt --daemon --foreground", 2, "--foreground"),
    ] {
        let said: Said =
            holdfast(dir).args(line.split(' ')).env("HOLDFAST_SITE", site.url()).output().unwrap().into();
        assert_eq!(said.code, Some(code), "{line}: {}{}", said.out, said.err);
        assert!(said.err.contains(wanted), "{line}: {}", said.err);
    }
}

#[test]
fn bytes_that_the_site_did_not_take_are_named_at_the_end() {
    if !can_mount() {
        return;
    }
    let folder = folder();
    let dir = folder.path();
    fs::create_dir(dir.join("mnt")).unwrap();
    let site = Site::start(dir, &[]);
    let mounted = mount(&site, dir, &["--wait", "10ms"]);
    fs::create_dir(dir.join("mnt/lab")).unwrap();
    let file = fs::File::create(dir.join("mnt/lab/lost")).unwrap();
    std::io::Write::write_all(&mut &file, b"precious").unwrap();
    site.stop();
    assert!(file.sync_all().is_err());
    drop(file);
    let said = mounted.end(rustix::process::Signal::TERM);
    assert_eq!(said.code, Some(1));
    let kept = said.err.split("its bytes are kept in ").nth(1).and_then(|rest| rest.split(';').next());
    assert!(said.err.contains("cannot write `/lab/lost`"), "{}", said.err);
    assert_eq!(fs::read(kept.unwrap()).unwrap(), b"precious");
}

#[test]
fn a_ring_is_files_by_time() {
    if !can_mount() {
        return;
    }
    let folder = folder();
    let dir = folder.path();
    fs::create_dir_all(dir.join("mnt")).unwrap();
    fs::create_dir_all(dir.join(".config/holdfast")).unwrap();
    let mut recording = Recording::start(dir, "--size 16MiB --slot 64KiB");
    let config = format!(
        "[rings.lab]\npath = {:?}\nqueries.count = \"select count(*) n from log\"\nqueries.wrong = \"select\"\n",
        dir.join("r.hf")
    );
    fs::write(dir.join(".config/holdfast/config.toml"), config).unwrap();
    recording.lines(100);
    recording.await_lines(dir, 100);
    let all = |range: std::ops::Range<u64>| range.map(|at| line(at) + "\n").collect::<String>();
    let site = Site::start(dir, &[]);
    let mounted = mount(&site, dir, &[]);
    let rings = dir.join("mnt/rings/lab");
    assert_eq!(shell(dir, "ls mnt; ls mnt/rings; ls mnt/rings/lab"), "rings\nlab\nholds\nlog\nquery\n");
    // The growing file gives what has come whenever it is asked.
    let mut live = fs::File::open(rings.join("log/live.raw")).unwrap();
    let mut text = String::new();
    live.read_to_string(&mut text).unwrap();
    assert_eq!(text, all(0..100));
    assert_eq!(live.metadata().unwrap().len(), text.len() as u64);
    recording.lines(50);
    recording.await_lines(dir, 150);
    live.read_to_string(&mut text).unwrap();
    assert_eq!(text, all(0..150));
    // The minutes together have everything.
    let minutes = shell(dir, "cd mnt/rings/lab/log && cat 20*/*.raw");
    assert_eq!(minutes, all(0..150));
    let held = ends(dir, "hold r.hf --ordinals 10..20 --stream log --reason x --json", 0).json();
    let file = rings.join(format!("holds/{}/log.raw", held["id"]));
    assert_eq!(fs::read_to_string(&file).unwrap(), all(10..20));
    shell(dir, &format!("cp {} copy && test $(stat -c %s copy) = {}", file.display(), all(10..20).len()));
    assert_eq!(fs::read_to_string(rings.join("log/live.jsonl")).unwrap().lines().count(), 150);
    assert_eq!(shell(dir, "ls mnt/rings/lab/query"), "count.jsonl\nwrong.jsonl\n");
    assert_eq!(fs::read_to_string(rings.join("query/count.jsonl")).unwrap(), "{\"n\":150}\n");
    let wrong = fs::read(rings.join("query/wrong.jsonl")).unwrap_err();
    assert_eq!(wrong.raw_os_error(), Some(rustix::io::Errno::IO.raw_os_error()));
    for missing in ["query/none.jsonl", "log/2001-01-01", "log/live.exe", "other", "holds/77"] {
        assert!(fs::metadata(rings.join(missing)).is_err(), "{missing}");
    }
    let refused = fs::write(rings.join("log/x"), "x").unwrap_err();
    assert!(refused.raw_os_error().is_some());
    drop(live);
    recording.input = None;
    assert_eq!(recording.end().0, Some(0));
    // Without a recorder the ring is read all the same.
    assert_eq!(shell(dir, "cat mnt/rings/lab/log/20*/*.raw"), all(0..150));
    assert_eq!(mounted.end(rustix::process::Signal::TERM).code, Some(0));
}

#[test]
fn the_inside_of_a_dataset_is_a_directory() {
    if !can_mount() {
        return;
    }
    let folder = folder();
    let dir = folder.path();
    fs::create_dir(dir.join("mnt")).unwrap();
    fs::create_dir_all(dir.join("run/notes/deep")).unwrap();
    let frame: Vec<u8> = (0..300_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 11) as u8).collect();
    fs::write(dir.join("run/frame.raw"), &frame).unwrap();
    fs::write(dir.join("run/notes/setup.txt"), "exposure 1.5 s\n").unwrap();
    fs::write(dir.join("run/notes/deep/empty"), "").unwrap();
    ends(dir, "dataset pack run -o run1.mcap", 0);
    let mut recording = Recording::start(dir, "--size 16MiB --slot 64KiB");
    recording.lines(100);
    recording.await_lines(dir, 100);
    recording.input = None;
    assert_eq!(recording.end().0, Some(0));
    ends(dir, "hold r.hf --ordinals 0..100 --stream log --reason x", 0);
    ends(dir, "evacuate r.hf 1 --to lines.mcap", 0);
    let site = Site::start(dir, &[]);
    site.ends("put run1.mcap lines.mcap /lab/", 0);
    site.ends("put run/notes/setup.txt /lab/plain", 0);
    let mounted = mount(&site, dir, &[]);
    // Lists do not show it, so that a copy of all does not have everything twice.
    assert_eq!(shell(dir, "ls mnt/lab"), "lines.mcap\nplain\nrun1.mcap\n");
    shell(dir, "diff -r run mnt/lab/run1.mcap.d");
    assert_eq!(shell(dir, "ls mnt/lab/run1.mcap.d/notes"), "deep\nsetup.txt\n");
    assert_eq!(shell(dir, "stat -c %s mnt/lab/run1.mcap.d/frame.raw"), "300000\n");
    assert_eq!(fs::metadata(dir.join("run/frame.raw")).unwrap().modified().unwrap(), {
        fs::metadata(dir.join("mnt/lab/run1.mcap.d/frame.raw")).unwrap().modified().unwrap()
    });
    assert_eq!(shell(dir, "ls mnt/lab/lines.mcap.d"), "log.raw\n");
    let text = (0..100).map(|at| line(at) + "\n").collect::<String>();
    assert_eq!(fs::read_to_string(dir.join("mnt/lab/lines.mcap.d/log.raw")).unwrap(), text);
    let json = fs::read_to_string(dir.join("mnt/lab/lines.mcap.d/log.jsonl")).unwrap();
    assert_eq!(json.lines().count(), 100);
    for missing in ["run1.mcap.d/none", "plain.d", "none.d", "lines.mcap.d/log.exe"] {
        let error = fs::metadata(dir.join("mnt/lab").join(missing)).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{missing}");
    }
    let refused = fs::write(dir.join("mnt/lab/run1.mcap.d/new"), "x").unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(rustix::io::Errno::ROFS.raw_os_error()));
    let mut packed = site.command();
    packed.args(["shell", "--way", "seccomp", "--", "cat"]);
    let said: Said = packed.arg("/hf/lab/run1.mcap.d/notes/setup.txt").output().unwrap().into();
    assert_eq!((said.code, said.out.as_str()), (Some(0), "exposure 1.5 s\n"), "{}", said.err);
    assert_eq!(mounted.end(rustix::process::Signal::TERM).code, Some(0));
}

/// Access control list of a file that one more user may read, as the kernel keeps it.
const LIST: [u8; 44] = [
    2, 0, 0, 0, 1, 0, 6, 0, 255, 255, 255, 255, 2, 0, 4, 0, 232, 3, 0, 0, 4, 0, 4, 0, 255, 255, 255, 255, 16,
    0, 4, 0, 255, 255, 255, 255, 32, 0, 4, 0, 255, 255, 255, 255,
];

#[test]
fn programs_copy_and_replace_files_without_a_complaint() {
    if !can_mount() {
        return;
    }
    let folder = folder();
    let dir = folder.path();
    fs::create_dir(dir.join("mnt")).unwrap();
    fs::create_dir(dir.join("tree")).unwrap();
    fs::write(dir.join("tree/a"), "one\ntwo\n").unwrap();
    let target = "user.target";
    if rustix::fs::setxattr(dir.join("tree/a"), target, b"m31", rustix::fs::XattrFlags::empty()).is_err() {
        eprintln!("the file system of the test has no extended attributes: their copies are not checked");
    }
    let site = Site::start(dir, &[]);
    let mounted = mount(&site, dir, &[]);
    let lab = dir.join("mnt/lab");
    fs::create_dir(&lab).unwrap();
    // Nothing is said, as by any file system without access control lists.
    let quiet = |line: &str| {
        let said: Said = Command::new("sh").args(["-ec", line]).current_dir(dir).output().unwrap().into();
        assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{line}");
        said.out
    };
    quiet("cp -a tree mnt/lab/tree && cmp tree/a mnt/lab/tree/a && diff -r tree mnt/lab/tree");
    quiet("install -m 0640 tree/a mnt/lab/installed && cp -p tree/a mnt/lab/kept && mv tree/a mnt/lab/moved");
    quiet("sed -i s/one/1/ mnt/lab/moved && printf '1\\ntwo\\n' | cmp - mnt/lab/moved");
    quiet("mv mnt/lab/moved mnt/lab/kept && test ! -e mnt/lab/moved && test \"$(head -1 mnt/lab/kept)\" = 1");
    quiet("mv mnt/lab/kept back && test ! -e mnt/lab/kept && printf '1\\ntwo\\n' | cmp - back");
    quiet("printf 'one\\ntwo\\n' | cmp - mnt/lab/installed");
    quiet("tar cf - -C mnt/lab tree | tar xf - -C mnt/lab --one-top-level=copy");
    quiet("test -s mnt/lab/copy/tree/a && diff -r mnt/lab/tree mnt/lab/copy/tree");
    if tool("rsync").is_some() {
        quiet("rsync -a mnt/lab/ mirror/ && rsync -a mirror/ mnt/lab/again/ && diff -r mirror mnt/lab/again");
        quiet(
            "echo more >> mirror/installed && rsync -a mirror/ mnt/lab/again/ && diff -r mirror mnt/lab/again",
        );
    }
    if tool("vim").is_some() {
        quiet(
            "vim -es -u NONE -c 's/two/2/e' -c '%s/two/2/e' -c wq mnt/lab/installed && grep -q 2 mnt/lab/installed",
        );
    }
    // Attributes that no file has are told apart by their names, whatever they contain.
    let file = lab.join("installed");
    for name in ["system.posix_acl_access", "security.selinux", "trusted.x"] {
        let refused = Err(rustix::io::Errno::OPNOTSUPP);
        let flags = rustix::fs::XattrFlags::empty();
        assert_eq!(rustix::fs::setxattr(&file, name, &LIST, flags), refused, "{name}");
        assert_eq!(rustix::fs::getxattr(&file, name, &mut [0; 100]).map(drop), refused, "{name}");
        assert_eq!(rustix::fs::removexattr(&file, name), refused, "{name}");
        assert_eq!(rustix::fs::setxattr(&file, "user.target", b"m31", flags), Ok(()));
    }
    // A reader goes on when the file gets another name, another file its name, or none has it.
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    fs::write(lab.join("run"), &bytes).unwrap();
    let mut read = Vec::new();
    let mut open = fs::File::open(lab.join("run")).unwrap();
    for change in [
        "mv mnt/lab/run mnt/lab/moved",
        "cp back mnt/lab/new; mv mnt/lab/new mnt/lab/moved",
        "rm mnt/lab/moved",
    ] {
        quiet(change);
        open.by_ref().take(1_000_000).read_to_end(&mut read).unwrap();
        assert_eq!(open.metadata().unwrap().len(), bytes.len() as u64, "{change}");
    }
    assert!(read == bytes);
    drop(open);
    let long = fs::create_dir(lab.join("n".repeat(255)).join("d")).unwrap_err();
    assert_eq!(long.kind(), std::io::ErrorKind::NotFound);
    let deep = format!("mnt/lab/{}", vec!["d".repeat(200); 5].join("/"));
    let long = fs::create_dir_all(dir.join(deep)).unwrap_err();
    assert_eq!(long.raw_os_error(), Some(rustix::io::Errno::NAMETOOLONG.raw_os_error()));
    assert_eq!(mounted.end(rustix::process::Signal::TERM).code, Some(0));
}

#[test]
fn an_unmount_ends_the_mount_with_success() {
    if !can_mount() {
        return;
    }
    let folder = folder();
    let dir = folder.path();
    fs::create_dir(dir.join("mnt")).unwrap();
    let site = Site::start(dir, &[]);
    for program in ["umount", "fusermount3 -u"] {
        if tool(program.split(' ').next().unwrap()).is_none() {
            continue;
        }
        let mut mounted = mount(&site, dir, &[]);
        shell(dir, &format!("mkdir -p mnt/lab && echo x > mnt/lab/x && {program} mnt"));
        let said = Said::from(mounted.child.take().unwrap().wait_with_output().unwrap());
        assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{program}");
        assert_eq!(site.ends("cat /lab/x", 0).out, "x\n");
    }
}

#[test]
fn a_token_that_only_reads_fails_at_the_open() {
    if !can_mount() {
        return;
    }
    let folder = folder();
    let dir = folder.path();
    fs::create_dir(dir.join("mnt")).unwrap();
    let mut site = Site::start(dir, &[]);
    fs::write(dir.join("a"), "hello\n").unwrap();
    site.ends("put a /lab/a", 0);
    let token = ends(dir, "token create --data data --name reader --scope read --quiet", 0).out;
    site.token = Some(token.trim().to_owned());
    let mounted = mount(&site, dir, &[]);
    assert_eq!(fs::read_to_string(dir.join("mnt/lab/a")).unwrap(), "hello\n");
    for open in [fs::File::create(dir.join("mnt/lab/a")), fs::File::create(dir.join("mnt/lab/new"))] {
        assert_eq!(open.unwrap_err().kind(), std::io::ErrorKind::PermissionDenied);
    }
    let appended = fs::OpenOptions::new().append(true).open(dir.join("mnt/lab/a"));
    assert_eq!(appended.unwrap_err().kind(), std::io::ErrorKind::PermissionDenied);
    assert_eq!(mounted.end(rustix::process::Signal::TERM).code, Some(0));
}
