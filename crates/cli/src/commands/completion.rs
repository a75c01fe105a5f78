//! `holdfast completion`: completion of commands and options for shells, from the definitions of the arguments.

use crate::commands::Cli;
use crate::out::Out;
use clap::CommandFactory as _;
use clap_complete::Shell;
use holdfast_base::failure::Result;

/// Print the completion of commands and options for a shell
#[derive(clap::Args, Debug)]
#[command(
    after_help = "bash: keep the output in a file, and source it in ~/.bashrc. zsh: keep it as _holdfast in a folder of\n\
    $fpath. fish: keep it as holdfast.fish in ~/.config/fish/completions.\n\n\
    Examples:\n  holdfast completion bash\n  holdfast completion zsh\n  holdfast completion fish"
)]
pub(crate) struct Args {
    /// Shell that reads the completion
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Runs the command `holdfast completion`.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "holdfast", &mut script);
    out.bytes(&script)
}
