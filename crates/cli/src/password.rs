//! Where the password comes from.
//!
//! In this order: `--password-file`, `--password-command`, the variable `ONEFOLD_PASSWORD`, a
//! question on the terminal; for a password that is to be added, the same with `new` in their names.
//! Files and commands end with a newline that is not part of the
//! password; otherwise bytes are taken as they are. Every copy made here is wiped.
//!
//! A question is asked only where somebody can answer: if the standard input or error output is
//! a terminal. It goes to the terminal itself, so that it works when data come by a pipe.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Context as _;
use repository::keys::{KeyError, Password};
use zeroize::Zeroizing;

use crate::arguments::GlobalArguments;
use crate::exit_code::ExitCode;
use crate::failure::{Failure, HINT_PASSWORD_SOURCES};
use crate::names;

/// The variable that may hold the password.
pub const PASSWORD_VARIABLE: &str = "ONEFOLD_PASSWORD";

/// The variable that may hold a password that is to be added.
pub const NEW_PASSWORD_VARIABLE: &str = "ONEFOLD_NEW_PASSWORD";

/// The variable that may hold the password of a repository that is copied to.
pub const TO_PASSWORD_VARIABLE: &str = "ONEFOLD_TO_PASSWORD";

/// The variable that may hold the password of a repository that a new one is to cut like.
pub const LIKE_PASSWORD_VARIABLE: &str = "ONEFOLD_LIKE_PASSWORD";

/// Variables with secrets, which no command that is run gets to see.
pub const SECRET_VARIABLES: [&str; 6] = [
    PASSWORD_VARIABLE,
    NEW_PASSWORD_VARIABLE,
    TO_PASSWORD_VARIABLE,
    LIKE_PASSWORD_VARIABLE,
    "ONEFOLD_WEBDAV_PASSWORD",
    "ONEFOLD_WEBDAV_TOKEN",
];

/// Longest password in bytes; what is longer is a mistaken file.
const PASSWORD_BYTES_MAX: usize = 64 << 10;

/// Where a password may be given.
#[derive(Debug, Clone, Copy)]
pub struct PasswordSources<'a> {
    pub file: Option<&'a Path>,
    pub command: Option<&'a str>,
    pub variable: &'static str,
}

impl PasswordSources<'_> {
    /// The password that was given, if any.
    pub fn read(self) -> anyhow::Result<Option<Password>> {
        let bytes = if let Some(path) = self.file {
            read_file(path)?
        } else if let Some(command) = self.command {
            run_command(command)?
        } else if let Some(value) = std::env::var_os(self.variable) {
            value.into_vec()
        } else {
            return Ok(None);
        };
        checked(bytes).map(Some)
    }
}

/// The repository's password that was given with the command line or the environment, if any.
pub fn given(global: &GlobalArguments) -> anyhow::Result<Option<Password>> {
    let sources = PasswordSources {
        file: global.password_file.as_deref(),
        command: global.password_command.as_deref(),
        variable: global.password_variable.unwrap_or(PASSWORD_VARIABLE),
    };
    sources.read()
}

/// Is there somebody at a terminal to be asked?
pub fn can_ask() -> bool {
    io::stdin().is_terminal() || io::stderr().is_terminal()
}

/// Asks for the password of an existing repository, as it is shown to a person.
pub fn ask(shown: &str) -> anyhow::Result<Password> {
    let prompt = format!("Password of the repository {shown}: ");
    checked(question(&prompt, HINT_PASSWORD_SOURCES)?.into_bytes())
}

/// Asks for a new password, twice. `hint` says where else it may come from, `otherwise` what was
/// not done when there is none.
pub fn ask_new(prompt: &str, hint: &str, otherwise: &str) -> anyhow::Result<Password> {
    let mut first = Zeroizing::new(question(prompt, hint)?);
    if first.is_empty() {
        return Err(KeyError::EmptyPassword).context(otherwise.to_owned());
    }
    let again = Zeroizing::new(question("The same password again: ", hint)?);
    if first != again {
        let message = format!("the two passwords differ; {otherwise}");
        return Err(Failure::new(ExitCode::Password, message).into());
    }
    checked(std::mem::take(&mut *first).into_bytes())
}

fn question(prompt: &str, hint: &str) -> anyhow::Result<String> {
    if !can_ask() {
        let message = "a password is needed, and there is no terminal to ask for it";
        return Err(Failure::new(ExitCode::Password, message)
            .with_hint(hint)
            .into());
    }
    rpassword::prompt_password(prompt).context("cannot ask for the password on the terminal")
}

/// Refuses what can't be a password. Takes the bytes over without a copy.
fn checked(bytes: Vec<u8>) -> anyhow::Result<Password> {
    let password = Password::new(bytes);
    if password.is_empty() {
        return Err(KeyError::EmptyPassword.into());
    }
    Ok(password)
}

fn read_file(path: &Path) -> anyhow::Result<Vec<u8>> {
    let cannot = || {
        format!(
            "cannot read the password file {}",
            names::escaped_path(path)
        )
    };
    let mut file = File::open(path).with_context(cannot)?;
    read_line(&mut file).with_context(cannot)
}

fn run_command(command: &str) -> anyhow::Result<Vec<u8>> {
    let cannot = || format!("cannot run the password command '{command}'");
    let mut shell = Command::new(OsStr::new("sh"));
    for variable in SECRET_VARIABLES {
        shell.env_remove(variable);
    }
    let mut child = shell
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(cannot)?;
    let mut output = child.stdout.take().expect("the output is piped");
    let password = read_line(&mut output);
    drop(output);
    let status = child.wait().with_context(cannot)?;
    let mut password = Zeroizing::new(password.with_context(cannot)?);
    if !status.success() {
        return Err(Failure::new(
            ExitCode::Failed,
            format!("the password command '{command}' failed ({status})"),
        )
        .into());
    }
    Ok(std::mem::take(&mut *password))
}

/// All that `source` has, without the newline at its end.
fn read_line(source: &mut dyn Read) -> io::Result<Vec<u8>> {
    // Growing would leave copies behind: the memory is taken at once.
    let mut bytes = Zeroizing::new(vec![0; PASSWORD_BYTES_MAX + 2]);
    let mut filled = 0;
    while filled < bytes.len() {
        match source.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let mut password = &bytes[..filled];
    if let Some(rest) = password.strip_suffix(b"\n") {
        password = rest.strip_suffix(b"\r").unwrap_or(rest);
    }
    if password.len() > PASSWORD_BYTES_MAX {
        let reason = format!("a password of more than {PASSWORD_BYTES_MAX} bytes is a mistake");
        return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
    }
    Ok(password.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_newline_is_no_part_of_a_password() {
        let read = |mut bytes: &[u8]| read_line(&mut bytes).unwrap();
        assert_eq!(read(b"secret\n"), b"secret");
        assert_eq!(read(b"secret\r\n"), b"secret");
        assert_eq!(read(b"secret"), b"secret");
        assert_eq!(read(b" two\nlines \n\n"), b" two\nlines \n");
        assert_eq!(read(b"\n"), b"");
    }

    #[test]
    fn a_mistaken_file_is_refused() {
        assert!(read_line(&mut &vec![b'x'; PASSWORD_BYTES_MAX][..]).is_ok());
        assert!(read_line(&mut io::repeat(b'x')).is_err());
    }

    #[test]
    fn commands_are_run_by_the_shell() {
        assert_eq!(run_command("printf 'a b\\n'").unwrap(), b"a b");
        assert!(run_command("echo secret; exit 3").is_err());
        assert!(run_command("onefold-there-is-no-such-command").is_err());
    }
}
