//! The command for programs in other languages: the same parser, the same code, the same text.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Parser;
use clap::error::ErrorKind;

use crate::cli::Cli;
use crate::{complain, said};

/// What a command has printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Its standard output.
    pub output: String,
    /// Its standard error: notes, or what was wrong and a hint.
    pub error: String,
    /// Its exit code: 0 ok, 1 failed, 2 usage or bad input, 3 there is no DSA, 130 stopped.
    pub code: u8,
}

/// Carries out a command that asks the model something, with the words behind `dray`: its output is that of the command
/// to the last bit. Commands that run programs, set devices up or serve are refused. It blocks until the command has
/// ended, or between two points once `stop` is set; what is done is kept, where the command keeps it.
///
/// ```
/// let stop = Default::default();
/// let answer = dray_cli::answer(["advise", "--size", "16k", "--format", "json"], &stop);
/// assert_eq!((answer.code, &answer.error[..]), (0, ""));
/// assert!(answer.output.contains("\"verdict\": \"offload\""));
/// let refused = dray_cli::answer(["advise", "--size", "many"], &stop);
/// assert_eq!(refused.code, 2);
/// ```
pub fn answer<W: Into<String>>(
    words: impl IntoIterator<Item = W>,
    stop: &Arc<AtomicBool>,
) -> Answer {
    let words: Vec<String> = words.into_iter().map(Into::into).collect();
    let line = std::iter::once("dray".to_owned()).chain(words.iter().cloned());
    let cli = match Cli::try_parse_from(line) {
        Ok(cli) if cli.asks_the_model() => cli,
        Ok(_) => {
            return Answer {
                output: String::new(),
                error: "error: this command has no answer for programs; run it as a program of its own\n"
                    .to_owned(),
                code: 2,
            };
        }
        Err(error) => return unread(&error),
    };
    let (code, said) = said::kept(words, stop, || match cli.run() {
        Ok(code) if code == std::process::ExitCode::SUCCESS => 0,
        Ok(_) => 1,
        Err(error) => complain::exit(&error),
    });
    Answer {
        output: String::from_utf8_lossy(&said.output).into_owned(),
        error: said.error,
        code,
    }
}

/// Words that are no command line, or that ask for help.
fn unread(error: &clap::Error) -> Answer {
    let text = error.render().to_string();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Answer {
            output: text,
            error: String::new(),
            code: 0,
        },
        _ => Answer {
            output: String::new(),
            error: text,
            code: 2,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer<'a>(words: impl IntoIterator<Item = &'a str>) -> Answer {
        super::answer(words, &Arc::default())
    }

    #[test]
    fn a_stop_is_that_of_its_own_answer() {
        let folder = tempfile::tempdir().unwrap();
        let ask = |out: &str, stop: bool| {
            let out = format!("--out={}", folder.path().join(out).display());
            let words = ["figures", "--only=fig2", "--format=json", &out];
            super::answer(words, &Arc::new(AtomicBool::new(stop)))
        };
        assert_eq!(ask("stopped", true).code, 130);
        assert_eq!(ask("whole", false).code, 0);
    }

    #[test]
    fn two_threads_have_their_own_answers() {
        let ask = |op: &'static str| {
            move || answer(["advise", "--op", op, "--size", "4k", "--format", "json"])
        };
        let alone = [ask("copy")(), ask("fill")()];
        let threads = [ask("copy"), ask("fill")].map(std::thread::spawn);
        let together = threads.map(|thread| thread.join().unwrap());
        assert_eq!(together, alone);
        assert_ne!(alone[0].output, alone[1].output);
    }

    #[test]
    fn commands_that_run_programs_are_refused() {
        for words in [&["run", "--", "true"][..], &["vm"], &[]] {
            let refused = answer(words.iter().copied());
            assert_eq!((refused.code, &refused.output[..]), (2, ""), "{words:?}");
        }
    }

    #[test]
    fn errors_have_their_hint() {
        let refused = answer(["advise", "--op", "copi", "--size", "4k"]);
        assert_eq!(refused.code, 2);
        assert!(refused.error.contains("\nhint: "), "{}", refused.error);
    }
}
