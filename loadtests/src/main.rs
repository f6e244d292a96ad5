//! `cairn-load`: parses the command line, runs a command of the library, prints its report and sets the exit code.
//!
//! Exit codes: 0 success; 1 the run could not be carried out; 2 a response was wrong; 3 requests failed (with
//! `--fail-on-error`, or if none succeeded).
#![forbid(unsafe_code)]

use std::io::{self, Write};
use std::net::TcpListener;
use std::process::ExitCode;

use cairn_loadtests::arguments::{Arguments, Command, Common, NullServerCommand, Particular};
use cairn_loadtests::commands::{clean, files, histories, idle, multipart, null_server};
use cairn_loadtests::failure::LoadError;
use cairn_loadtests::objects::key_space::KeySpace;
use cairn_loadtests::plan::Plan;
use cairn_loadtests::report::Verdict;
use cairn_loadtests::report::table;
use cairn_loadtests::run;
use cairn_loadtests::units::ByteCount;
use cairn_loadtests::workload::{Operation, Workload};

fn main() -> ExitCode {
    let arguments: Arguments = argh::from_env();
    match execute(arguments.command) {
        Ok(Verdict::Good) => ExitCode::SUCCESS,
        Ok(Verdict::Corrupt) => ExitCode::from(2),
        Ok(Verdict::Errors) => ExitCode::from(3),
        Err(error) => {
            // Standard error may be closed.
            let _ = writeln!(io::stderr(), "cairn-load: {error}");
            ExitCode::FAILURE
        }
    }
}

fn execute(command: Command) -> Result<Verdict, LoadError> {
    use Workload::{EachOnce, Mixed, Repeat};
    match command {
        Command::Put(put) => load("put", Repeat(Operation::Put), put.split()),
        Command::Get(get) => load("get", Repeat(Operation::Get), get.split()),
        Command::RangeGet(get) => load("range-get", Repeat(Operation::RangeGet), get.split()),
        Command::List(list) => load("list", Repeat(Operation::List), list.split()),
        Command::Delete(delete) => load("delete", EachOnce(Operation::Delete), delete.split()),
        Command::Mixed(mixed) => load("mixed", Mixed, mixed.split()),
        Command::Prepare(prepare) => {
            let plan = Plan::new("prepare", EachOnce(Operation::Put), prepare.split())?;
            clean::create_bucket(&plan)?;
            carry_out(plan)
        }
        Command::Clean(command) => {
            let mut plan = Plan::new("clean", EachOnce(Operation::Delete), command.split())?;
            let keys = clean::list_keys(&plan)?;
            plan.keys.count = keys.len() as u64;
            plan.keys.listed = Some(keys);
            carry_out(plan)
        }
        Command::Idle(command) => {
            let plan = Plan::new("idle", Repeat(Operation::List), command.split())?;
            let report = idle::idle(&plan)?;
            print(&(json(&report) + "\n"))?;
            Ok(if report.still_open == report.opened { Verdict::Good } else { Verdict::Errors })
        }
        Command::Multipart(command) => {
            let (common, own) = command.split();
            let part_size = own.part_size.unwrap_or(ByteCount(64 << 20));
            let plan = Plan::new("multipart", EachOnce(Operation::Put), (common, own))?;
            clean::create_bucket(&plan)?;
            print(&(json(&multipart::multipart(&plan, part_size)?) + "\n"))?;
            Ok(Verdict::Good)
        }
        Command::Files(command) => {
            let keys = KeySpace {
                prefix: command.prefix,
                count: command.keys,
                first: 0,
                scatter: false,
                folder_keys: command.folder_keys,
                seed: command.seed,
                sizes: command.size,
                listed: None,
            };
            files::write(&command.folder, &keys)?;
            Ok(Verdict::Good)
        }
        Command::NullServer(command) => serve_nothing(&command),
        Command::Histories(command) => {
            let report = histories::run(&command)?;
            print(&(json(&report) + "\n"))?;
            Ok(report.verdict())
        }
        Command::Table(command) => {
            print(&table::table(&command.folder, &command.subject)?)?;
            Ok(Verdict::Good)
        }
    }
}

fn serve_nothing(command: &NullServerCommand) -> Result<Verdict, LoadError> {
    let failed = |source| LoadError::Io { doing: format!("listening on {}", command.bind), source };
    let listener = TcpListener::bind(&command.bind).map_err(failed)?;
    print(&format!("listening on {}\n", listener.local_addr().map_err(failed)?))?;
    null_server::serve(&listener, command.size.0, command.seed)?;
    Ok(Verdict::Good)
}

fn load(name: &'static str, workload: Workload, options: (Common, Particular)) -> Result<Verdict, LoadError> {
    carry_out(Plan::new(name, workload, options)?)
}

fn carry_out(plan: Plan) -> Result<Verdict, LoadError> {
    let (as_json, fail_on_error) = (plan.json, plan.fail_on_error);
    let report = run::run(plan)?;
    print(&if as_json { json(&report) + "\n" } else { report.to_string() })?;
    Ok(report.verdict(fail_on_error))
}

fn json(report: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(report).expect("reports are plain data")
}

fn print(text: &str) -> Result<(), LoadError> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|source| LoadError::Io { doing: "writing the result".to_owned(), source })
}
