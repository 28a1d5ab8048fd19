//! Completions for shells, and man pages.

use crate::args::Arguments;
use crate::exit::{Exit, refused};
use crate::output::Output;
use clap::CommandFactory;

pub(crate) fn completions(shell: clap_complete::Shell) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "corelane", &mut script);
    Output::stdout().write(|out| out.write_all(&script)).unwrap_or_else(refused)
}

/// The page of a command, or of the whole program.
pub(crate) fn page(command: Option<String>) -> Exit {
    let mut program = Arguments::command().disable_help_subcommand(true);
    // This gives each command its full name, such as `corelane-monitor`, which is the title of its page.
    program.build();
    let command = match command {
        Some(name) => program.find_subcommand(name).expect("the parser takes no other name").clone(),
        None => program,
    };
    let page = clap_mangen::Man::new(command).source(concat!("corelane ", env!("CARGO_PKG_VERSION")));
    Output::stdout().write(|out| page.render(out)).unwrap_or_else(refused)
}
