//! Ctrl-C and SIGTERM.
//!
//! Until [`catch`] is called, both end the program at once, which is right for everything that
//! only reads. During a backup, a restore or a check, the first one asks the operation to stop
//! at the next safe place; the second one ends the program at once. Nothing that is stored
//! can be harmed by either.

use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::exit_code::ExitCode;
use crate::failure::Failure;

static REQUESTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// How often a waiting reader looks whether it should stop, in nanoseconds.
const LOOK_EVERY_NS: i64 = 200_000_000;

/// From now on, an interruption is a request.
pub fn catch() -> io::Result<()> {
    if REQUESTED.get().is_some() {
        return Ok(());
    }
    let flag = Arc::clone(REQUESTED.get_or_init(Arc::default));
    for signal in [SIGINT, SIGTERM] {
        // In this order: the first signal finds the flag unset and sets it.
        let code = i32::from(ExitCode::Interrupted.number());
        signal_hook::flag::register_conditional_shutdown(signal, code, Arc::clone(&flag))?;
        signal_hook::flag::register(signal, Arc::clone(&flag))?;
    }
    Ok(())
}

/// Did somebody ask for a stop?
pub fn is_requested() -> bool {
    REQUESTED
        .get()
        .is_some_and(|flag| flag.load(Ordering::Relaxed))
}

/// The outcome of an operation; if it failed after somebody had asked for a stop, that is why.
/// `rest` says what is left behind.
pub fn unless_interrupted<T, E>(outcome: Result<T, E>, rest: &str) -> anyhow::Result<T>
where
    E: std::error::Error + Send + Sync + 'static,
{
    match outcome {
        Err(_) if is_requested() => Err(interrupted(rest)),
        outcome => Ok(outcome?),
    }
}

/// The failure of an operation that was stopped. `rest` says what is left behind.
pub fn interrupted(rest: &str) -> anyhow::Error {
    Failure::new(ExitCode::Interrupted, format!("interrupted: {rest}")).into()
}

/// A pipe or terminal, whose reader stops waiting when somebody asks for a stop.
#[derive(Debug)]
pub struct InterruptibleReader(OwnedFd);

impl InterruptibleReader {
    /// A reader of that descriptor.
    pub fn new(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }

    /// A reader of the standard input.
    pub fn stdin() -> io::Result<Self> {
        Ok(Self(io::stdin().as_fd().try_clone_to_owned()?))
    }

    /// Waits until there is something to read, or its end.
    fn wait(&self) -> io::Result<()> {
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: LOOK_EVERY_NS,
        };
        loop {
            if is_requested() {
                return Err(io::Error::other("interrupted"));
            }
            let mut descriptors = [PollFd::new(&self.0, PollFlags::IN)];
            match poll(&mut descriptors, Some(&timeout)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Read for InterruptibleReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.wait()?;
        Ok(rustix::io::read(&self.0, buffer)?)
    }
}
