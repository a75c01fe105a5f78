//! Accounts of persons and projects: their names, and the body of the fact that the catalog keeps of each.
//!
//! Facts are read and written in `directory`; decisions about requests are in `authorization`.

use crate::object_path::{NameError, shown};
use crate::password::PasswordHash;
use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// Subject of grants that stands for all accounts. No account or group has this name.
pub(crate) const EVERYONE: &str = "everyone";

/// Greatest length of the name of an account or a group in bytes.
const MOST_NAME: usize = 64;

/// Name of an account or a group: letters, digits, `.`, `_` and `-`, beginning with a letter or digit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountName(String);

impl AccountName {
    /// Checks the name of an account or a group.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let is_plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
        let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        if !is_plain || !begins || text.len() > MOST_NAME || text == EVERYONE {
            return Err(NameError(format!(
                "{} is no name of an account or a group; use up to {MOST_NAME} letters, digits, '.', '_' and '-', \
                 beginning with a letter or digit, and not '{EVERYONE}'",
                shown(text)
            )));
        }
        Ok(Self(text.to_owned()))
    }

    /// Name as a text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AccountName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Kind of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AccountKind {
    /// Account of one person.
    Person,
    /// Account that the members of the group of its name use together.
    Project,
}

/// Body of the fact of an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Account {
    /// Kind of the account.
    pub(crate) kind: AccountKind,
    /// Hash of the password; `None` for an account that nobody logs in to by password.
    pub(crate) password: Option<PasswordHash>,
    /// True while no token of the account is accepted.
    pub(crate) disabled: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_and_the_body_survives_its_text() {
        for good in ["ann", "m31", "A.b_c-d", "9"] {
            assert_eq!(AccountName::parse(good).unwrap().as_str(), good);
        }
        for bad in ["", "everyone", "-a", "a/b", "ä", "a b", "a\n", &"a".repeat(65)] {
            assert!(AccountName::parse(bad).is_err(), "{bad:?}");
        }
        let account = Account { kind: AccountKind::Project, password: None, disabled: true };
        let text = serde_json::to_string(&account).unwrap();
        assert_eq!(text, "{\"kind\":\"project\",\"password\":null,\"disabled\":true}");
        assert_eq!(serde_json::from_str::<Account>(&text).unwrap(), account);
    }
}
