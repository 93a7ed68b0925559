//! Ctrl-C and SIGTERM: the first one asks a measurement to stop, the second ends the program.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGINT, SIGTERM};

use crate::failure::{Failure, INTERRUPTED};

static REQUESTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// From now on, an interruption is a request.
pub fn catch() -> io::Result<()> {
    if REQUESTED.get().is_some() {
        return Ok(());
    }
    let flag = Arc::clone(REQUESTED.get_or_init(Arc::default));
    for signal in [SIGINT, SIGTERM] {
        // In this order: the first signal finds the flag unset and sets it.
        let code = i32::from(INTERRUPTED);
        signal_hook::flag::register_conditional_shutdown(signal, code, Arc::clone(&flag))?;
        signal_hook::flag::register(signal, Arc::clone(&flag))?;
    }
    Ok(())
}

/// Fails when somebody asked for a stop.
pub fn check() -> Result<(), Failure> {
    let is_requested = REQUESTED
        .get()
        .is_some_and(|flag| flag.load(Ordering::Relaxed));
    if is_requested {
        let message = "interrupted: nothing was written, nothing is left behind";
        return Err(Failure::new(INTERRUPTED, message));
    }
    Ok(())
}
