//! The dray command.

fn main() -> std::process::ExitCode {
    dray_cli::main()
}
