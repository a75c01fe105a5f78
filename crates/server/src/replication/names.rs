//! Names of sites: each site tells its own one to all, as a fact of the catalog.

use holdfast_catalog::{Catalog, CatalogStore, FactKind, Result, SiteId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Sites that are read: a collaboration has fewer.
const MOST_SITES: usize = 10_000;

/// Fact of a site. Its key is the identity of the site.
#[derive(Serialize, Deserialize)]
struct SiteFact {
    name: String,
}

/// Names of all sites that have told one.
#[derive(Clone, Debug, Default)]
pub(crate) struct SiteNames(BTreeMap<SiteId, String>);

impl SiteNames {
    /// Reads the names from the catalog.
    pub(crate) fn read<S: CatalogStore>(catalog: &mut Catalog<S>) -> Result<Self> {
        let facts = catalog.facts(FactKind::Site, None, MOST_SITES)?;
        let named = facts.into_iter().filter_map(|fact| {
            let site = u64::from_str_radix(&fact.key, 16).ok()?.try_into().ok()?;
            let SiteFact { name } = serde_json::from_str(fact.body.as_deref()?).ok()?;
            Some((site, name))
        });
        Ok(Self(named.collect()))
    }

    /// Name of a site, or else its identity.
    pub(crate) fn of(&self, site: SiteId) -> String {
        self.0.get(&site).cloned().unwrap_or_else(|| site.to_string())
    }

    /// Text with the names of sites in the place of their identities.
    pub(crate) fn named(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (site, name)| {
            text.replace(&format!("site {site}"), &format!("site {name}"))
        })
    }

    /// Site with a name or an identity. Of several with one name there is none.
    pub(crate) fn site(&self, text: &str) -> Option<SiteId> {
        let mut named = self.0.iter().filter(|(_, name)| *name == text).map(|(site, _)| *site);
        match (named.next(), named.next()) {
            (Some(site), None) => Some(site),
            (Some(_), Some(_)) => None,
            (None, _) => u64::from_str_radix(text, 16).ok()?.try_into().ok(),
        }
    }
}

/// Tells the name of this site to all sites, unless they know it.
pub(super) fn tell<S: CatalogStore>(catalog: &mut Catalog<S>, name: &str) -> Result<()> {
    let (key, own) = (catalog.site().to_string(), SiteFact { name: name.to_owned() });
    let body = serde_json::to_string(&own).unwrap_or_default();
    let known = catalog.fact(FactKind::Site, &key)?;
    if known.is_none_or(|known| known.body.as_deref() != Some(body.as_str())) {
        catalog.set_fact(FactKind::Site, &key, Some(&body))?;
    }
    Ok(())
}
