//! Maker of programs that search rings of this machine for clients of the server: this program, with checked options.
//!
//! A client names rings of the options file, never paths, and gives options that neither read nor write other files.

use super::recorder_holds::ring;
use holdfast_server::{Search, SearchProgram};
use std::process::Command;

/// Variable of the environment of a search.
pub(crate) const SEARCH: &str = "HOLDFAST_SEARCH";

/// Options of all commands that search.
const RANGE: &[&str] = &["json", "stream", "from", "to", "last", "ordinals", "event"];

/// Commands that search, with their other options.
const COMMANDS: &[(&str, &[&str])] = &[
    ("query", &["json", "format", "reason"]),
    (
        "grep",
        &[
            "regexp",
            "fixed-strings",
            "hex",
            "ignore-case",
            "word-regexp",
            "line-number",
            "only-matching",
            "files-with-matches",
            "count",
            "max-count",
            "quiet",
        ],
    ),
    ("hash", &["algorithm", "duplicates"]),
    ("scan", &["module", "pattern", "distance", "hamming", "ignore-case", "protein", "max-count"]),
];

/// Modules of this program. Those in files are not for clients.
const MODULES: &[&str] = &["stats", "approx", "bio"];

/// Rings of the options file that clients may search.
pub(crate) struct RingSearches {
    rings: Vec<String>,
}

impl RingSearches {
    /// Searches over some rings of the configuration file.
    pub(crate) fn of(rings: &[String]) -> Self {
        Self { rings: rings.to_vec() }
    }

    /// Arguments of this program for a search.
    fn arguments(&self, search: &Search) -> Result<Vec<String>, String> {
        let Search { command, rings, options, sql } = search;
        let of_command = COMMANDS.iter().find(|(name, _)| name == command);
        let (_, allowed) = of_command.ok_or_else(|| {
            "the command is none of query, grep, hash and scan; take one of these".to_owned()
        })?;
        let allowed = |name: &str| {
            let is_ranged = command != "query" && RANGE.contains(&name);
            is_ranged || allowed.contains(&name)
        };
        let mut arguments = vec![command.clone()];
        for option in options {
            let (name, value) =
                option.split_once('=').map_or((&option[..], None), |(name, value)| (name, Some(value)));
            let bare = name.strip_prefix("--").filter(|name| allowed(name));
            let Some(bare) = bare else {
                let name = name.escape_debug();
                return Err(format!("{command} takes no option {name} at another site; leave it out"));
            };
            if bare == "module" && value.is_none_or(|value| !MODULES.contains(&value)) {
                return Err(format!(
                    "a module at another site is one of {}; take one of these",
                    MODULES.join(", ")
                ));
            }
            arguments.push(option.clone());
        }
        if command == "grep" && !options.iter().any(|option| option.starts_with("--regexp=")) {
            return Err("there is no pattern; give one".to_owned());
        }
        if rings.is_empty() {
            return Err("no ring is named; name one".to_owned());
        }
        if (command == "query") != sql.is_some() {
            return Err("the query is missing, or is none; write SQL behind the ring of `query`".to_owned());
        }
        for name in rings {
            if !self.rings.contains(name) {
                let name = name.escape_debug();
                return Err(format!(
                    "the site has no ring `{name}` that may be searched; its administrator adds it to search.rings of \
                     the options file"
                ));
            }
        }
        Ok(arguments)
    }
}

impl SearchProgram for RingSearches {
    fn command(&self, search: &Search) -> Result<Command, String> {
        let arguments = self.arguments(search)?;
        // The program that runs, also after another was installed in its place.
        let mut command = Command::new("/proc/self/exe");
        command.args(arguments).env(SEARCH, "1");
        let mut paths = Vec::new();
        for name in &search.rings {
            let entry = ring(name).map_err(|failure| failure.to_string())?;
            if let Some(index) = entry.index.filter(|_| search.command == "query") {
                command.arg("--index").arg(index);
            }
            // A name could be that of another file, too.
            paths.push(std::path::absolute(entry.path).map_err(|error| error.to_string())?);
        }
        command.arg("--").args(paths).args(&search.sql);
        Ok(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(
        command: &str,
        rings: &[&str],
        options: &[&str],
        sql: Option<&str>,
    ) -> Result<Vec<String>, String> {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let search = Search {
            command: command.into(),
            rings: texts(rings),
            options: texts(options),
            sql: sql.map(Into::into),
        };
        RingSearches::of(&["lab".into(), "sky".into()]).arguments(&search)
    }

    #[test]
    fn searches_become_arguments() {
        let words = arguments("query", &["lab"], &["--format=csv"], Some("select 1")).unwrap();
        assert_eq!(words, ["query", "--format=csv"]);
        let words =
            arguments("grep", &["lab", "sky"], &["--regexp=-x=y", "--last=5m", "--json"], None).unwrap();
        assert_eq!(words, ["grep", "--regexp=-x=y", "--last=5m", "--json"]);
        assert!(arguments("scan", &["sky"], &["--module=stats"], None).is_ok());
    }

    #[test]
    fn nothing_else_of_the_machine_can_be_reached() {
        for (command, ring, option, sql) in [
            ("read", "lab", "--json", None),
            ("query", "/dev/sda", "--json", Some("select 1")),
            ("query", "other", "--json", Some("select 1")),
            ("query", "lab", "--output=/etc/passwd", Some("select 1")),
            ("query", "lab", "-o/etc/passwd", Some("select 1")),
            ("query", "lab", "--spill=/", Some("select 1")),
            ("query", "lab", "--json", None),
            ("hash", "lab", "--json", Some("select 1")),
            ("grep", "lab", "--file=/etc/passwd", None),
            ("grep", "lab", "/etc/passwd", None),
            ("grep", "lab", "--", None),
            ("grep", "lab", "--json", None),
            ("hash", "lab", "--elements", None),
            ("scan", "lab", "--module=wasm:x", None),
            ("scan", "lab", "--module", None),
            ("scan", "lab", "--threads=9", None),
        ] {
            assert!(arguments(command, &[ring], &[option], sql).is_err(), "{command} {ring} {option}");
        }
        assert!(arguments("hash", &[], &[], None).is_err());
    }
}
