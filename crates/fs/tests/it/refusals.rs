//! Refusals: the error numbers that programs expect, before any byte is gathered.

use crate::world::{World, contents};
use holdfast_fs::{FileSystem, OpenMode, ROOT};
use holdfast_server::{NewToken, ProjectName, Scope, Scopes};
use rustix::io::Errno;

async fn write(fs: &FileSystem, project: u64, name: &str) -> Result<(), Errno> {
    let (_, handle) = fs.create(project, name).await.map_err(|error| error.errno)?;
    fs.write(handle, 0, &contents(1, 10)).unwrap();
    let stored = fs.sync(handle).await.map_err(|error| error.errno);
    fs.release(handle);
    stored
}

#[test]
fn names_and_paths_that_are_too_long_are_told_so() {
    let world = World::new();
    let fs = world.fs(world.options());
    world.run(async {
        let lab = fs.make_directory(ROOT, "lab").await.unwrap().ino;
        write(&fs, lab, "file").await.unwrap();
        let mut deep = lab;
        for _ in 0..3 {
            deep = fs.make_directory(deep, &"d".repeat(255)).await.unwrap().ino;
        }
        // 768 bytes are taken, so that 132 are left.
        for (parent, name) in [(ROOT, "p".repeat(65)), (lab, "n".repeat(256)), (deep, "n".repeat(133))] {
            let too_long = |done: Result<(), holdfast_fs::FsError>| {
                assert_eq!(done.unwrap_err().errno, Errno::NAMETOOLONG, "{}", name.len());
            };
            too_long(fs.make_directory(parent, &name).await.map(drop));
            too_long(fs.create(parent, &name).await.map(drop));
            too_long(fs.rename((lab, "file"), (parent, &name), false).await);
            // A long path can be there, a long name cannot.
            let wanted = if parent == deep { Errno::NOENT } else { Errno::NAMETOOLONG };
            for done in [
                fs.lookup(parent, &name).await.map(drop),
                fs.unlink(parent, &name).await,
                fs.remove_directory(parent, &name).await,
                fs.rename((parent, &name), (lab, "other"), false).await,
            ] {
                assert_eq!(done.unwrap_err().errno, wanted, "{}", name.len());
            }
        }
        write(&fs, deep, &"n".repeat(132)).await.unwrap();
        assert_eq!(write(&fs, lab, &"n".repeat(255)).await, Ok(()));
        assert_eq!(fs.make_directory(lab, &"d".repeat(255)).await.unwrap_err().errno, Errno::EXIST);
        // Another refusal is none of a name that is taken.
        assert_eq!(fs.make_directory(lab, ".holdfast").await.unwrap_err().errno, Errno::INVAL);
        assert_eq!(fs.rename((lab, "file"), (ROOT, "file"), false).await.unwrap_err().errno, Errno::PERM);
        let onto = |to| fs.rename((lab, "file"), (lab, to), false);
        let folder = "d".repeat(255);
        assert_eq!(onto(&folder).await.unwrap_err().errno, Errno::ISDIR);
    });
}

#[test]
fn entries_below_a_directory_that_got_a_longer_name_can_be_read_and_removed() {
    let world = World::new();
    world.run(async {
        let fs = world.fs(world.options());
        let lab = fs.make_directory(ROOT, "lab").await.unwrap().ino;
        let names = ["d".to_owned(), "e".repeat(200), "e".repeat(200), "e".repeat(200), "e".repeat(200)];
        let mut deep = lab;
        for name in &names {
            deep = fs.make_directory(deep, name).await.unwrap().ino;
        }
        for name in ["removed", "moved"] {
            write(&fs, deep, name).await.unwrap();
        }
        let longer = "d".repeat(255);
        fs.rename((lab, "d"), (lab, &longer), false).await.unwrap();
        // Another file system knows nothing of the former path.
        let fs = world.fs(world.options());
        let lab = fs.lookup(ROOT, "lab").await.unwrap().ino;
        let mut above = fs.lookup(lab, &longer).await.unwrap().ino;
        for name in &names[1..4] {
            above = fs.lookup(above, name).await.unwrap().ino;
        }
        let deep = fs.lookup(above, &names[4]).await.unwrap().ino;
        let file = fs.lookup(deep, "removed").await.unwrap().ino;
        let handle = fs.open(file, OpenMode::default()).await.unwrap();
        assert_eq!(fs.read(handle, 0, 100).await.unwrap(), contents(1, 10));
        fs.release(handle);
        // The site would not take the bytes.
        let opened = fs.open(file, OpenMode { write: true, truncate: false }).await;
        assert_eq!(opened.unwrap_err().errno, Errno::NAMETOOLONG);
        assert_eq!(fs.set_size(file, 3).await.unwrap_err().errno, Errno::NAMETOOLONG);
        assert_eq!(write(&fs, deep, "new").await, Err(Errno::NAMETOOLONG));
        fs.unlink(deep, "removed").await.unwrap();
        fs.rename((deep, "moved"), (lab, "moved"), false).await.unwrap();
        fs.remove_directory(above, &names[4]).await.unwrap();
        assert!(fs.lookup(lab, "moved").await.is_ok());
    });
}

#[test]
fn a_token_without_the_right_fails_at_the_open() {
    let world = World::new();
    let own = world.fs(world.options());
    world.run(async {
        for project in ["own", "other"] {
            let project = own.make_directory(ROOT, project).await.unwrap().ino;
            write(&own, project, "file").await.unwrap();
        }
    });
    let token = |scopes: &[Scope], project: Option<&str>| {
        world.token(NewToken {
            account: None,
            name: "test".to_owned(),
            scopes: Scopes::of(scopes),
            project: project.map(|project| ProjectName::parse(project).unwrap()),
            expires: None,
        })
    };
    let reader = world.fs_with(&token(&[Scope::Read], None));
    let bound = world.fs_with(&token(&[Scope::Read, Scope::Write], Some("own")));
    let writer = world.fs_with(&token(&[Scope::Read, Scope::Write], None));
    world.run(async {
        for (fs, projects, may) in [
            (&reader, &["own", "other"][..], false),
            (&writer, &["own", "other"], true),
            (&bound, &["own"], true),
        ] {
            for project in projects {
                // The list of all projects is not for a token that is bound to one.
                let project = fs.lookup(ROOT, project).await.unwrap().ino;
                let file = fs.lookup(project, "file").await.unwrap().ino;
                let opened = fs.open(file, OpenMode { write: true, truncate: true }).await;
                let appended = fs.open(file, OpenMode { write: true, truncate: false }).await;
                for opened in [opened, appended, fs.create(project, "new").await.map(|(_, handle)| handle)] {
                    assert_eq!(opened.as_ref().map_err(|error| error.errno).is_ok(), may, "{opened:?}");
                    assert!(may || opened.is_err_and(|error| error.errno == Errno::ACCESS));
                }
                let cut = fs.set_size(file, 3).await.map_err(|error| error.errno);
                assert_eq!(cut.is_ok(), may, "{cut:?}");
                let read = fs.open(file, OpenMode::default()).await.unwrap();
                assert!(!fs.read(read, 0, 3).await.unwrap().is_empty() || may);
            }
        }
    });
}
