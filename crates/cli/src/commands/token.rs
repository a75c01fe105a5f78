//! `holdfast token`: create, list and revoke the tokens of a site, in its data folder.

use crate::out::Out;
use crate::serving::{self, rfc3339};
use holdfast_base::failure::{Failure, Result};
use holdfast_base::{UnitError, clean};
use holdfast_client::json::{RevokedToken, SiteToken};
use holdfast_client::table::{Side, Table};
use holdfast_client::times;
use holdfast_server::{
    AccountName, Clock, NewToken, ProjectName, Scope, Scopes, TokenId, TokenInfo, TokenStore,
};
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::time::Duration;

/// Create, list and revoke the tokens that give access to a site
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Works on the data folder of the server, also while it runs; a change counts at once. A server\n\
    that has tokens refuses requests without one. Clients have the token in $HOLDFAST_TOKEN or in a\n\
    file of mode 0600.\n\n\
    Examples:\n  holdfast token create --name telescope --scope read,write --project lab\n  holdfast token list\n  \
    holdfast token revoke 6f1d0c2b3a495867"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

impl Args {
    /// True for a command that only prints.
    pub(crate) fn only_prints(&self) -> bool {
        matches!(self.what, What::List { .. })
    }
}

#[derive(clap::Subcommand, Debug)]
enum What {
    /// Create a token, and print it once
    #[command(
        after_help = "Examples:\n  holdfast token create --name telescope --scope read,write --project lab\n  \
        holdfast token create --name guest --scope read --expires 30d --quiet"
    )]
    Create {
        /// Name for people, such as the machine that uses the token
        #[arg(long, value_name = "NAME")]
        name: String,
        /// Permissions, with commas between: read, write, replicate, admin
        #[arg(long, value_name = "SCOPES", value_delimiter = ',', required = true, value_parser = scope)]
        scope: Vec<Scope>,
        /// Only project that the token gives access to [default: all]
        #[arg(long, value_name = "PROJECT", value_parser = ProjectName::parse)]
        project: Option<ProjectName>,
        /// Account whose rights limit the token [default: none, and no limit]
        #[arg(long, value_name = "ACCOUNT", value_parser = AccountName::parse)]
        account: Option<AccountName>,
        /// Time until the token expires [default: never]
        #[arg(long, value_name = "SPAN", value_parser = span)]
        expires: Option<Duration>,
        /// Print the token alone
        #[arg(long, conflicts_with = "json")]
        quiet: bool,
        #[command(flatten)]
        data: DataArg,
    },
    /// List all tokens, without their secrets
    #[command(after_help = "Exits with 3 if there are none.\n\nExample:\n  holdfast token list")]
    List {
        #[command(flatten)]
        data: DataArg,
    },
    /// Revoke a token for ever
    #[command(after_help = "Example:\n  holdfast token revoke 6f1d0c2b3a495867")]
    Revoke {
        /// Identity of the token, as `list` shows it
        #[arg(value_name = "ID", value_parser = identity)]
        id: TokenId,
        #[command(flatten)]
        data: DataArg,
    },
}

/// Data folder of the server.
#[derive(clap::Args, Debug)]
struct DataArg {
    /// Data folder of the server (default: ~/.local/share/holdfast/site)
    #[arg(long = "data", value_name = "DATA")]
    folder: Option<PathBuf>,
}

fn scope(text: &str) -> Result<Scope, String> {
    let found = Scope::ALL.into_iter().find(|scope| scope.name() == text);
    found.ok_or_else(|| format!("`{text}` is no permission: take read, write, replicate or admin"))
}

fn span(text: &str) -> Result<Duration, UnitError> {
    times::span(text)
}

fn identity(text: &str) -> Result<TokenId, String> {
    text.parse().map_err(|()| format!("`{text}` is no identity of a token: `holdfast token list` lists them"))
}

/// Runs the command `holdfast token`.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    match &args.what {
        What::Create { name, scope, project, account, expires, quiet, data } => {
            let new = NewToken {
                name: name.clone(),
                scopes: Scopes::of(scope),
                project: project.clone(),
                account: account.clone(),
                expires: expires.map(|span| Clock::System.now().plus(span)),
            };
            create(&data.made()?, new, *quiet, out)
        }
        What::List { data } => list(&data.opened()?, out),
        What::Revoke { id, data } => revoke(&data.opened()?, *id, out),
    }
}

impl DataArg {
    /// Store in the data folder, which is made as the server makes it.
    fn made(&self) -> Result<TokenStore> {
        let data = serving::data_folder(self.folder.as_ref());
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&data);
        made.map_err(|error| Failure::io("cannot make the data folder", &data, &error))?;
        TokenStore::open(&data, Clock::System).map_err(|error| serving::failure(&error))
    }

    /// Store in a data folder that a server or a token has made.
    fn opened(&self) -> Result<TokenStore> {
        let data = serving::data_folder(self.folder.as_ref());
        if !data.join(holdfast_server::TOKENS_FILE).is_file() {
            return Err(Failure::nothing("there are no tokens in this folder")
                .at_path(&data)
                .advice("name the data folder of the server by --data"));
        }
        TokenStore::open(&data, Clock::System).map_err(|error| serving::failure(&error))
    }
}

fn create(store: &TokenStore, new: NewToken, quiet: bool, out: &mut Out) -> Result<()> {
    let (info, text) = store.create(new).map_err(|error| serving::failure(&error))?;
    if out.is_json() {
        return out.object(&shape(&info, Some(&text)));
    }
    if !quiet {
        let (id, name) = (info.id, clean(&info.name));
        let scopes = scope_names(&info).join(", ");
        let project = info.project.as_ref().map_or("all projects".to_owned(), |p| format!("project {p}"));
        let end = info.expires.map_or("for ever".to_owned(), |end| format!("until {}", rfc3339(end)));
        let account = info.account.as_ref().map(|account| format!(" with the rights of {account}"));
        let account = account.unwrap_or_default();
        out.line(format_args!("token {id} \"{name}\": {scopes} in {project}{account}, {end}"))?;
        out.line("keep it: it is shown only now")?;
    }
    out.line(text)
}

fn list(store: &TokenStore, out: &mut Out) -> Result<()> {
    let tokens = store.list().map_err(|error| serving::failure(&error))?;
    if tokens.is_empty() {
        return Err(Failure::nothing("there are no tokens").advice("`holdfast token create` creates one"));
    }
    let mut table = Table::new(&[
        ("id", Side::Left),
        ("name", Side::Left),
        ("scopes", Side::Left),
        ("project", Side::Left),
        ("account", Side::Left),
        ("created", Side::Left),
        ("last use", Side::Left),
        ("state", Side::Left),
    ]);
    let now = Clock::System.now();
    for token in &tokens {
        if out.is_json() {
            out.object(&shape(token, None))?;
            continue;
        }
        let state = match (token.revoked, token.expires) {
            (Some(at), _) => format!("revoked {}", rfc3339(at)),
            (None, Some(end)) if end <= now => format!("expired {}", rfc3339(end)),
            (None, Some(end)) => format!("until {}", rfc3339(end)),
            (None, None) => "valid".to_owned(),
        };
        table.row([
            token.id.to_string(),
            clean(&token.name),
            scope_names(token).join(","),
            token.project.as_ref().map_or("all".to_owned(), ProjectName::to_string),
            token.account.as_ref().map(AccountName::to_string).unwrap_or_default(),
            rfc3339(token.created),
            token.last_use.map(rfc3339).unwrap_or_default(),
            state,
        ]);
    }
    if out.is_json() { Ok(()) } else { out.table(&table) }
}

fn revoke(store: &TokenStore, id: TokenId, out: &mut Out) -> Result<()> {
    if !store.revoke(id).map_err(|error| serving::failure(&error))? {
        return Err(Failure::nothing("there is no such token")
            .at(id)
            .advice("`holdfast token list` lists all tokens"));
    }
    let id = id.to_string();
    if out.is_json() {
        return out.object(&RevokedToken { revoked: &id });
    }
    out.line(format_args!("revoked {id}"))
}

fn scope_names(info: &TokenInfo) -> Vec<&'static str> {
    Vec::from(info.scopes).into_iter().map(Scope::name).collect()
}

fn shape<'a>(info: &'a TokenInfo, token: Option<&'a str>) -> SiteToken<'a> {
    SiteToken {
        id: info.id.to_string(),
        name: &info.name,
        scopes: scope_names(info),
        project: info.project.as_ref().map(ProjectName::as_str),
        account: info.account.as_ref().map(AccountName::as_str),
        created: rfc3339(info.created),
        expires: info.expires.map(rfc3339),
        revoked: info.revoked.map(rfc3339),
        last_use: info.last_use.map(rfc3339),
        token,
    }
}
