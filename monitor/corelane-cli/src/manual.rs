//! Completions for shells, and man pages.

use crate::args::Arguments;
use crate::exit::{Exit, refused};
use crate::output::Output;
use clap::CommandFactory;
use std::io::{self, Write};

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
    Output::stdout().write(|out| write(command, out)).unwrap_or_else(refused)
}

/// Writes a page. The text behind the help has a section for each paragraph, line by line, as lines of examples that
/// are joined are none.
fn write(command: clap::Command, out: &mut dyn Write) -> io::Result<()> {
    let extra = command.get_after_long_help().or(command.get_after_help()).map(ToString::to_string).unwrap_or_default();
    let command = command.after_help(None::<&str>).after_long_help(None::<&str>);
    let mut page = Vec::new();
    clap_mangen::Man::new(command).source(concat!("corelane ", env!("CARGO_PKG_VERSION"))).render(&mut page)?;
    // The section of the version comes last, if there is one.
    let version = b".SH VERSION";
    let end = page.windows(version.len()).position(|part| part == version).unwrap_or(page.len());
    out.write_all(&page[..end])?;
    for paragraph in extra.split("\n\n") {
        let (head, text) = paragraph.split_once(':').unwrap_or(("Notes", paragraph));
        // What follows on the line of the head has no indent.
        let lines: Vec<_> = text.strip_prefix('\n').unwrap_or(text.trim_start()).lines().collect();
        let depth = |line: &&str| line.len() - line.trim_start().len();
        let indent = lines.iter().map(depth).min().unwrap_or(0);
        writeln!(out, ".SH {}\n.nf", head.trim().to_uppercase())?;
        for line in lines {
            // A dot or a quote in front would be a request.
            writeln!(out, "\\&{}", line[indent..].replace('\\', "\\e").replace('-', "\\-"))?;
        }
        writeln!(out, ".fi")?;
    }
    out.write_all(&page[end..])
}
