//! Attributes that a client sends with an upload: pairs `attribute.NAME` of the header `Upload-Metadata`.

use holdfast_catalog::Attribute;

/// Prefix of keys that become attributes.
const PREFIX: &str = "attribute.";

/// Attributes of an upload, typed as conditions write values, and a text for each pair that cannot be one.
pub(crate) fn upload_attributes(metadata: &[(String, Vec<u8>)]) -> (Vec<Attribute>, Vec<String>) {
    let (mut attributes, mut refused) = (Vec::new(), Vec::new());
    for (key, value) in metadata {
        let Some(name) = key.strip_prefix(PREFIX) else { continue };
        match std::str::from_utf8(value) {
            Ok(text) => {
                let attribute = Attribute::read(name, text);
                match attribute.check() {
                    Ok(()) => attributes.push(attribute),
                    Err(error) => refused.push(error.to_string()),
                }
            }
            Err(_) => refused.push(format!(
                "cannot use attribute `{}`: it is not UTF-8; encode it as UTF-8",
                name.escape_debug()
            )),
        }
    }
    (attributes, refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_with_the_prefix_become_typed_attributes() {
        let pairs =
            [("path", "x"), ("attribute.target", "m31"), ("attribute.gain", "2.5"), ("attribute.", "x")];
        let mut pairs: Vec<_> =
            pairs.iter().map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec())).collect();
        pairs.push(("attribute.raw".to_owned(), vec![255]));
        let (attributes, refused) = upload_attributes(&pairs);
        assert_eq!(attributes, [Attribute::new("target", "m31"), Attribute::read("gain", "2.5")]);
        assert_eq!(refused.len(), 2);
    }
}
