//! The numbers that a run can end with (docs/guide/exit-codes.md).

/// How a run ended, as a script sees it. The numbers are a promise: they never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitCode {
    /// All that was asked for was done.
    Done = 0,
    /// It failed.
    Failed = 1,
    /// The command line is not one of this program.
    Usage = 2,
    /// Saved or restored, but for some files.
    Partial = 3,
    /// A command that was to run before or after it failed.
    Hook = 4,
    /// There is no repository where one was expected.
    NoRepository = 10,
    /// There is a repository where none was expected.
    AlreadyExists = 11,
    /// The password is wrong, or there is none.
    Password = 12,
    /// Something in the repository is damaged or missing.
    Damaged = 13,
    /// The user or the system stopped it.
    Interrupted = 130,
    /// Nobody reads the output any more.
    OutputClosed = 141,
}

impl ExitCode {
    /// The number for the operating system.
    pub fn number(self) -> u8 {
        self as u8
    }
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        code.number().into()
    }
}

/// The table at the end of `--help`.
pub const TABLE: &str = "\
Exit codes:
    0  done
    1  failed
    2  wrong usage
    3  saved or restored, but some files could not be read or restored
    4  a command to run before or after it failed (profiles)
   10  no repository, or no volume, there
   11  there is a repository already (init), or something else (volume create)
   12  wrong password, or none given
   13  the repository is damaged
  130  interrupted";
