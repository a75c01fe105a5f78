//! Tree of a site: collections, moves, copies, the trash and replicas, and the kinds of their errors.

use crate::uploads::settled;
use crate::world::{World, contents, run, upload};
use holdfast_remote::{CatalogKind, RemoteErrorKind};

#[test]
fn entries_are_moved_copied_deleted_and_restored() {
    let world = World::new();
    run(async {
        let site = world.site();
        let new = upload("a/b", Some(1000), Some(contents(1, 1000)));
        settled(&site, &site.create(&new).await.unwrap().address).await;
        let made = site.make_collection("/p/c/d", true, None).await.unwrap();
        assert_eq!(Some(made.id), site.catalog_stat("/p/c/d").await.unwrap().id);
        let taken = site.make_collection("/p/c", false, None).await.unwrap_err();
        assert_eq!(taken.kind, RemoteErrorKind::Taken);
        assert!(taken.message.starts_with("cannot make the collection `/p/c` by http"), "{taken}");
        assert!(taken.message.ends_with("it exists already; choose another name"), "{taken}");

        site.move_entry("/p/a/b", "/p/c/b").await.unwrap();
        let missing = site.move_entry("/p/a/b", "/p/c/e").await.unwrap_err();
        assert_eq!(missing.kind, RemoteErrorKind::NotFound);
        let copied = site.copy_entry("/p/c/b", "/p/c/e", false, None).await.unwrap();
        assert_eq!((copied.objects, copied.bytes, copied.next), (1, 1000, None));
        let copied = site.copy_entry("/p/c", "/q", true, None).await.unwrap();
        assert_eq!((copied.objects, copied.collections), (2, 2));
        let rest = site.copy_entry("/p/c", "/q", true, Some("e")).await.unwrap();
        assert_eq!((rest.objects, rest.collections), (0, 0));

        let refused = site.delete_entry("/p/c", false).await.unwrap_err();
        assert_eq!(refused.kind, RemoteErrorKind::Refused);
        let deleted = site.delete_entry("/p/c", true).await.unwrap();
        let trash = site.list_trash(Some("/p"), None).await.unwrap();
        assert_eq!(
            (trash.entries[0].id.as_str(), trash.entries[0].kind),
            (&*deleted.id, CatalogKind::Collection)
        );
        assert!(site.list_trash(None, Some(&deleted.id)).await.unwrap().entries.is_empty());
        let only = site.list_replicas(None, true, None).await.unwrap().entries;
        assert_eq!((only.len(), only.iter().filter(|replica| replica.path.is_none()).count()), (4, 2));
        assert_eq!(site.restore_entry(&deleted.id, Some("/p/f")).await.unwrap().path, "/p/f");
        let gone = site.restore_entry(&deleted.id, None).await.unwrap_err();
        assert_eq!(gone.kind, RemoteErrorKind::NotFound);
        let replicas = site.list_replicas(Some("/p/f"), false, None).await.unwrap().entries;
        assert!(replicas.len() == 2 && replicas.iter().all(|replica| replica.state == "verified"));
    });
}

#[test]
fn a_move_replaces_an_object_where_that_is_asked_for() {
    let world = World::new();
    run(async {
        let site = world.site();
        for (path, seed) in [("a/old", 1), ("a/new", 2)] {
            let new = upload(path, Some(5), Some(contents(seed, 5)));
            settled(&site, &site.create(&new).await.unwrap().address).await;
        }
        let hash = site.catalog_stat("/p/a/new").await.unwrap().versions[0].blake3.clone();
        let taken = site.move_entry("/p/a/new", "/p/a/old").await.unwrap_err();
        assert!(taken.message.contains("exists already"), "{taken}");
        site.replace_entry("/p/a/new", "/p/a/old", true).await.unwrap();
        assert_eq!(site.catalog_stat("/p/a/old").await.unwrap().versions[0].blake3, hash);
        assert_eq!(site.list_trash(None, None).await.unwrap().entries[0].path, "/p/a/old");
        site.make_collection("/p/b", false, None).await.unwrap();
        for (from, to) in [("/p/a/old", "/p/b"), ("/p/b", "/p/a/old")] {
            let refused = site.replace_entry(from, to, true).await.unwrap_err();
            assert!(refused.message.contains("a collection is not replaced"), "{refused}");
        }
    });
}
