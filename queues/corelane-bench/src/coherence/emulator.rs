//! QEMU's user emulation with the directory of cache lines as its plugin.

use super::cases::{Amount, Case};
use super::counts::{self, Reading};
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::{self, Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

const PLUGIN: &str = include_str!("../../coherence/directory.c");

/// The path inside an unpacked package.
const PROGRAM: &str = "usr/bin/qemu-x86_64";

/// Why there is no emulator.
#[derive(Clone, Debug)]
pub(crate) struct Missing(pub(crate) String);

/// An emulator and its plugin, ready to run.
#[derive(Debug)]
pub(crate) struct Emulator {
    program: PathBuf,
    /// Where an unpacked package has the libraries that the system lacks.
    libraries: Option<PathBuf>,
    plugin: PathBuf,
    /// A directory of this process, removed at the end.
    scratch: PathBuf,
}

impl Drop for Emulator {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.scratch);
    }
}

/// The directory `target/emulator`, above this program, into which `fetch-emulator` unpacks.
fn fetched() -> Option<PathBuf> {
    let exe = env::current_exe().ok()?;
    exe.ancestors().map(|directory| directory.join("emulator")).find(|root| root.join(PROGRAM).exists())
}

impl Emulator {
    /// Finds the fetched emulator, or the system's, and compiles its plugin.
    pub(crate) fn prepare() -> Result<Self, Missing> {
        if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            return Err(Missing("cache lines are counted on Linux and x86-64 only".to_owned()));
        }
        let (program, libraries) = match fetched() {
            Some(root) => (root.join(PROGRAM), Some(root.join("usr/lib/x86_64-linux-gnu"))),
            None => (PathBuf::from("qemu-x86_64"), None),
        };
        let scratch = env::temp_dir().join(format!("corelane-coherence-{}", process::id()));
        let plugin = scratch.join("libdirectory.so");
        let emulator = Emulator { program, libraries, plugin, scratch };
        emulator.speaks()?;
        emulator.compile()?;
        Ok(emulator)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        // The environment is cleared: it would lie on the program's stack at its start and change the counts.
        command.env_clear();
        if let Some(libraries) = &self.libraries {
            command.env("LD_LIBRARY_PATH", libraries);
        }
        command
    }

    fn speaks(&self) -> Result<(), Missing> {
        let output = self.command().arg("--version").output();
        match output {
            // The interface of plugins changes with the version.
            Ok(output) if output.status.success() => match String::from_utf8_lossy(&output.stdout).lines().next() {
                Some(line) if line.contains("version 7.2.") => Ok(()),
                line => Err(Missing(format!("the plugin is for QEMU 7.2, not for {}", line.unwrap_or("nothing")))),
            },
            Ok(output) => {
                let error = String::from_utf8_lossy(&output.stderr);
                Err(Missing(format!("{} does not run: {}", self.program.display(), error.trim())))
            }
            Err(_) => Err(Missing(
                "there is no qemu-x86_64: install QEMU's user emulation 7.2, or run \
                 queues/corelane-bench/coherence/fetch-emulator, which unpacks Debian 12's into target/emulator"
                    .to_owned(),
            )),
        }
    }

    fn compile(&self) -> Result<(), Missing> {
        let missing = |error: String| Missing(format!("the emulator's plugin cannot be compiled: {error}"));
        let source = self.scratch.join("directory.c");
        fs::create_dir_all(&self.scratch)
            .and_then(|()| fs::write(&source, PLUGIN))
            .map_err(|error| missing(format!("{}: {error}", self.scratch.display())))?;
        let output = Command::new("cc")
            .args(["-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-pthread", "-o"])
            .args([&self.plugin, &source])
            .output()
            .map_err(|error| missing(format!("cc cannot be started: {error}; install a C compiler")))?;
        if !output.status.success() {
            return Err(missing(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
        }
        Ok(())
    }

    /// Counts the chosen cases. The cases of one queue run in one process, and as many processes run at once as there
    /// are CPUs. A check that the cases only run uses no more processes than that.
    pub(crate) fn count(
        &self,
        cases: &[Case],
        chosen: &[usize],
        amount: Amount,
    ) -> Result<BTreeMap<usize, Reading>, String> {
        let processes = thread::available_parallelism().map_or(1, usize::from);
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for (i, &number) in chosen.iter().enumerate() {
            let same = |group: &Vec<usize>| match amount {
                Amount::Quick => chosen[i % processes] == group[0],
                Amount::Full => {
                    (&cases[group[0]].queue, cases[group[0]].part) == (&cases[number].queue, cases[number].part)
                }
            };
            match groups.iter_mut().find(|group| same(group)) {
                Some(group) => group.push(number),
                None => groups.push(vec![number]),
            }
        }
        let quick = (amount == Amount::Quick).then(|| "--quick".to_owned());
        let guests = groups.iter().map(|cases| {
            let numbers = cases.iter().map(usize::to_string);
            ["coherence-guest".to_owned()].into_iter().chain(quick.clone()).chain(numbers).collect()
        });
        let readings: BTreeMap<_, _> = self.each(guests.collect())?.into_iter().flatten().collect();
        match chosen.iter().find(|case| !readings.contains_key(case)) {
            Some(case) => Err(format!("the emulator's plugin has not counted case {case}; run it again")),
            None => Ok(readings),
        }
    }

    /// Runs this very program in the emulator with each of these arguments, as many processes at once as there are
    /// CPUs. Returns the directory's counts of each, in the order of the arguments.
    pub(crate) fn each(&self, guests: Vec<Vec<String>>) -> Result<Vec<BTreeMap<usize, Reading>>, String> {
        let processes = thread::available_parallelism().map_or(1, usize::from).min(guests.len());
        let next = AtomicUsize::new(0);
        let work = || -> Result<BTreeMap<usize, _>, String> {
            let mut readings = BTreeMap::new();
            loop {
                let number = next.fetch_add(1, Relaxed);
                let Some(arguments) = guests.get(number) else { return Ok(readings) };
                readings.insert(number, self.play(number, arguments)?);
            }
        };
        thread::scope(|scope| {
            let workers: Vec<_> = (0..processes).map(|_| scope.spawn(work)).collect();
            let mut readings = BTreeMap::new();
            for worker in workers {
                readings.extend(worker.join().expect("no panic")?);
            }
            Ok(readings.into_values().collect())
        })
    }

    fn play(&self, number: usize, arguments: &[String]) -> Result<BTreeMap<usize, Reading>, String> {
        let exe = env::current_exe().map_err(|error| format!("this program's own file cannot be found: {error}"))?;
        let counted = self.scratch.join(format!("counts-{number}"));
        let child = self
            .command()
            .arg("-plugin")
            .arg(format!("{},out={}", self.plugin.display(), counted.display()))
            .arg(exe)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: cannot be started: {error}", self.program.display()))?;
        finish(child)?;
        let text =
            fs::read_to_string(&counted).map_err(|error| format!("{}: cannot be read: {error}", counted.display()))?;
        counts::parse(&text)
    }
}

/// Waits for a child that writes a few lines at most. The wait has a limit, because a queue may hang.
fn finish(mut child: Child) -> Result<(), String> {
    const BOUND: Duration = Duration::from_secs(180);
    let start = Instant::now();
    let ended = loop {
        match child.try_wait().map_err(|error| format!("the emulator cannot be waited for: {error}"))? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => break status.to_string(),
            None if start.elapsed() > BOUND => {
                let _ = child.kill();
                let _ = child.wait();
                break format!("still not over after {} s", BOUND.as_secs());
            }
            None => thread::sleep(Duration::from_millis(5)),
        }
    };
    let mut error = String::new();
    if let Some(mut pipe) = child.stderr.take() {
        let _ = pipe.read_to_string(&mut error);
    }
    Err(format!("in the emulator: {} ({ended})", error.trim()))
}
