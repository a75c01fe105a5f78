//! Requests of web pages of other origins: a browser sends them with the rights that the machine of its user has.
//!
//! Pages of other origins must not change anything. They cannot read either, as no answer allows it. A request with a token is
//! not the browser's own doing, so that programs in browsers may use any origin.

use crate::problem::{Problem, ProblemKind};
use http::header::{AUTHORIZATION, HOST, ORIGIN};
use http::{HeaderMap, HeaderName, HeaderValue, Method};

/// Header by which browsers tell where a request comes from.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Header that keeps pages of other origins from showing an answer, such as an image.
pub(crate) const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// Value of [`RESOURCE_POLICY`] of all answers.
pub(crate) const SAME_ORIGIN: HeaderValue = HeaderValue::from_static("same-origin");

/// Refuses a request that changes something, comes from a page of another origin, and carries no token.
pub(crate) fn check(method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
    let is_safe = [Method::GET, Method::HEAD, Method::OPTIONS].contains(method);
    if is_safe || headers.contains_key(AUTHORIZATION) || !is_foreign(headers) {
        return Ok(());
    }
    let detail = "cannot do the request: it comes from a web page of another origin; send it from a program, or with a token";
    Err(Problem::new(ProblemKind::Forbidden, detail))
}

/// True if a browser tells another origin than that of the server. Programs tell none.
fn is_foreign(headers: &HeaderMap) -> bool {
    let text = |name: &HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    if let Some(site) = text(&FETCH_SITE) {
        // `none`: the user did it, by the address bar for instance.
        return !matches!(site, "same-origin" | "none");
    }
    let Some(origin) = text(&ORIGIN) else { return false };
    let host = origin.split_once("://").map(|(_, host)| host);
    host.is_none_or(|host| text(&HOST).is_none_or(|own| !own.eq_ignore_ascii_case(host)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_other_origins_change_nothing() {
        let own = "127.0.0.1:7370";
        for (headers, is_allowed) in [
            (vec![], true),
            (vec![("origin", "http://127.0.0.1:7370")], true),
            (vec![("origin", "http://127.0.0.1:8080")], false),
            (vec![("origin", "http://127.0.0.1")], false),
            (vec![("origin", "https://evil.example")], false),
            (vec![("origin", "http://127.0.0.1:7370.evil.example")], false),
            (vec![("origin", "null")], false),
            (vec![("origin", "\u{7f}")], false),
            (vec![("sec-fetch-site", "cross-site")], false),
            (vec![("sec-fetch-site", "same-site")], false),
            (vec![("sec-fetch-site", "same-origin")], true),
            (vec![("sec-fetch-site", "none")], true),
            (vec![("sec-fetch-site", "cross-site"), ("origin", "http://127.0.0.1:7370")], false),
            // Behind a proxy the browser knows the origin, and not the server.
            (vec![("sec-fetch-site", "same-origin"), ("origin", "https://data.example")], true),
            (vec![("origin", "https://evil.example"), ("authorization", "Bearer x")], true),
        ] {
            let mut map = HeaderMap::from_iter([(HOST, HeaderValue::from_static(own))]);
            for (name, value) in &headers {
                let value = HeaderValue::from_bytes(value.as_bytes());
                map.insert(*name, value.unwrap_or(HeaderValue::from_static("")));
            }
            for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
                assert_eq!(check(&method, &map).is_ok(), is_allowed, "{method} {headers:?}");
            }
            for method in [Method::GET, Method::HEAD, Method::OPTIONS] {
                assert!(check(&method, &map).is_ok(), "{method} {headers:?}");
            }
        }
    }
}
