//! Options of drivers, as a configuration file holds them.

use super::placeholder::Template;
use crate::error::ServerError;
use crate::extract::Extractors;
use serde::Deserialize;
use std::time::Duration;

/// Driver that runs for every new version of its projects.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriverOptions {
    /// Name of the driver, unique in the configuration; runs are recorded under it.
    pub name: String,
    /// Projects whose versions the driver works on; empty for all projects.
    #[serde(default)]
    pub projects: Vec<String>,
    /// Work of the driver.
    pub action: DriverAction,
}

/// Work of a driver.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum DriverAction {
    /// Copies the version to another vault, and records the replica.
    Copy {
        /// Name of the vault.
        vault: String,
    },
    /// Reads attributes from the contents, and records them in the catalog.
    Extract(ExtractOptions),
    /// Runs a program, which succeeds by exit code 0.
    Command(CommandOptions),
}

/// Sources of extracted attributes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExtractOptions {
    /// Names of extractors: `fits`, `filterbank`, `dada`, and those that the program adds.
    #[serde(default)]
    pub extractors: Vec<String>,
    /// Program that prints the attributes as one JSON object.
    pub command: Option<CommandOptions>,
}

/// Program that a driver runs, never through a shell.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandOptions {
    /// Path of the program, or its name in a folder of `PATH`.
    pub program: String,
    /// Arguments, in which `{project} {path} {version} {file} {blake3} {size}` are replaced. A path may begin with a hyphen:
    /// write the argument `--` before it if the program knows that.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// Time after which the program and its children are killed, in seconds.
    #[serde(default = "default_timeout")]
    pub timeout_seconds: u64,
}

impl CommandOptions {
    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout_seconds)
    }
}

/// Ten minutes, in which a program can read some hundred GB.
fn default_timeout() -> u64 {
    600
}

impl DriverOptions {
    /// True if the driver works on versions of a project.
    pub(crate) fn is_for(&self, project: &str) -> bool {
        self.projects.is_empty() || self.projects.iter().any(|own| own == project)
    }
}

/// Checks the options of all drivers against the names of vaults and extractors.
pub(crate) fn check(
    drivers: &[DriverOptions],
    vaults: &[&str],
    extractors: &Extractors,
) -> Result<(), ServerError> {
    for (place, driver) in drivers.iter().enumerate() {
        let refuse = |reason: String, remedy: &str| {
            Err(ServerError::usage(format_args!("use the driver '{}'", driver.name), reason, remedy))
        };
        if driver.name.is_empty() || drivers[..place].iter().any(|other| other.name == driver.name) {
            return refuse("its name is empty or taken".to_owned(), "give every driver a name of its own");
        }
        let command = match &driver.action {
            DriverAction::Copy { vault } if !vaults.contains(&vault.as_str()) => {
                let reason = format!("there is no vault '{vault}'");
                return refuse(reason, &format!("choose one of {}", vaults.join(", ")));
            }
            DriverAction::Copy { .. } => None,
            DriverAction::Extract(extract) => {
                if let Some(name) = extract.extractors.iter().find(|name| !extractors.contains(name)) {
                    let reason = format!("there is no extractor '{name}'");
                    return refuse(reason, &format!("choose one of {}", extractors.names().join(", ")));
                }
                extract.command.as_ref()
            }
            DriverAction::Command(command) => Some(command),
        };
        for argument in command.into_iter().flat_map(|command| &command.arguments) {
            if let Err(name) = Template::parse(argument) {
                let reason = format!("the placeholder {{{name}}} in '{argument}' is unknown");
                return refuse(reason, "use {project} {path} {version} {file} {blake3} {size}");
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Vec<DriverOptions> {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn options_are_read_and_checked() {
        let good = r#"[
            {"name": "tape", "action": {"copy": {"vault": "tape"}}},
            {"name": "headers", "projects": ["m31"], "action": {"extract": {"extractors": ["fits"]}}},
            {"name": "notify", "action": {"command": {"program": "mail", "arguments": ["{path}", "{\"a\": 1}"]}}}
        ]"#;
        let drivers = read(good);
        assert_eq!(check(&drivers, &["archive", "tape"], &Extractors::default()), Ok(()));
        assert!(drivers[0].is_for("any") && drivers[1].is_for("m31") && !drivers[1].is_for("m3"));
        for bad in [
            r#"[{"name": "", "action": {"copy": {"vault": "tape"}}}]"#,
            r#"[{"name": "a", "action": {"copy": {"vault": "other"}}}]"#,
            r#"[{"name": "a", "action": {"extract": {"extractors": ["tiff"]}}}]"#,
            r#"[{"name": "a", "action": {"command": {"program": "x", "arguments": ["{fiel}"]}}}]"#,
        ] {
            let error = check(&read(bad), &["archive", "tape"], &Extractors::default()).unwrap_err();
            assert!(error.to_string().starts_with("cannot use the driver '"), "{error}");
        }
        for wrong in [r#"[{"name": "a", "action": {"copy": {"vault": "b", "x": 1}}}]"#, r#"[{"name": "a"}]"#]
        {
            assert!(serde_json::from_str::<Vec<DriverOptions>>(wrong).is_err(), "{wrong}");
        }
    }
}
