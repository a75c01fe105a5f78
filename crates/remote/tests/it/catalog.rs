//! Catalog of a site: properties, lists, searches and attributes, at servers that have one.

use crate::uploads::settled;
use crate::world::{World, contents, run, upload};
use holdfast_remote::{
    AttributeChange, AttributeValue, CatalogKind, FindRequest, NewAttribute, NewUpload, RemoteErrorKind,
};

#[test]
fn entries_are_listed_found_and_changed() {
    let world = World::new();
    run(async {
        let site = world.site();
        let bytes = contents(1, 1000);
        let metadata = vec![("attribute.target".to_owned(), "m31".to_owned())];
        let new = NewUpload { metadata, ..upload("a/b", Some(1000), Some(bytes.clone())) };
        settled(&site, &site.create(&new).await.unwrap().address).await;
        let stat = match site.catalog_stat("/p/a/b").await {
            Ok(stat) => stat,
            // The server has no catalog.
            Err(error) => return assert_eq!(error.kind, RemoteErrorKind::NotFound, "{error}"),
        };
        assert_eq!((stat.path.as_str(), stat.kind), ("/p/a/b", CatalogKind::Object));
        assert_eq!(stat.versions[0].blake3, blake3::hash(&bytes).to_hex().as_str());
        assert_eq!(stat.current.as_ref(), Some(&stat.versions[0].version));
        assert!(stat.replicas.iter().all(|replica| replica.state == "verified"));
        assert_eq!(stat.attributes[0].value, AttributeValue::Text("m31".to_owned()));
        let add = |value: serde_json::Value, unit: Option<&str>| {
            let unit = unit.map(str::to_owned);
            AttributeChange {
                add: vec![NewAttribute { name: "gain".to_owned(), value, unit }],
                remove: Vec::new(),
            }
        };
        let changed = site.catalog_attributes("/p/a/b", &add(2.5.into(), Some("dB"))).await.unwrap();
        let gain = changed.attributes.iter().find(|attribute| attribute.name == "gain").unwrap();
        assert_eq!((&gain.value, gain.unit.as_deref()), (&AttributeValue::Float(2.5), Some("dB")));
        let find = |condition: &str| FindRequest {
            under: Some("/p".to_owned()),
            condition: Some(condition.to_owned()),
            ..FindRequest::default()
        };
        let found = site.catalog_find(&find("gain > 2 and target = \"m31\"")).await.unwrap();
        assert_eq!((found.entries[0].path.as_str(), found.next), ("/p/a/b", None));
        assert!(site.catalog_find(&find("gain > 3")).await.unwrap().entries.is_empty());
        assert_eq!(site.catalog_find(&find("gain >")).await.unwrap_err().kind, RemoteErrorKind::Refused);
        let remove =
            AttributeChange { add: Vec::new(), remove: vec!["gain".to_owned(), "target".to_owned()] };
        assert!(site.catalog_attributes("/p/a/b", &remove).await.unwrap().attributes.is_empty());
        let listed = site.catalog_list("/p", None).await.unwrap();
        assert_eq!((listed.entries[0].name.as_str(), listed.entries[0].kind), ("a", CatalogKind::Collection));
        assert!(site.catalog_list("/p", Some("a")).await.unwrap().entries.is_empty());
        assert_eq!(site.catalog_stat("/p/none").await.unwrap_err().kind, RemoteErrorKind::NotFound);
    });
}
