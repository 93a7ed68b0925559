//! The one interface of all algorithms: data in memory to cut points.

use crate::fastcdc::FastCdc;
use crate::{Algorithm, KeyMaterial, ParameterError, Parameters, UNKEYED_GEAR_TABLE};
use std::fmt;
use std::iter::FusedIterator;
use std::ops::Range;

/// Cuts data into chunks. Has no state of its own: one serves any number of streams and threads.
#[derive(Clone)]
pub struct Chunker {
    parameters: Parameters,
    method: Method,
}

/// Each algorithm, made ready to run.
#[derive(Clone)]
enum Method {
    FastCdc(FastCdc),
}

/// Never shows the key.
impl fmt::Debug for Chunker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chunker")
            .field("parameters", &self.parameters)
            .finish_non_exhaustive()
    }
}

impl Chunker {
    /// A chunker with these parameters and this key.
    ///
    /// # Errors
    /// When [`Parameters::validate`] finds an impossible one.
    pub fn new(parameters: &Parameters, key: KeyMaterial) -> Result<Self, ParameterError> {
        parameters.validate()?;
        let method = match parameters.algorithm {
            Algorithm::FastCdc => {
                let table = match key {
                    KeyMaterial::Unkeyed => Box::new(UNKEYED_GEAR_TABLE),
                    KeyMaterial::Table(table) => table,
                };
                Method::FastCdc(FastCdc::new(parameters, table))
            }
        };
        Ok(Self {
            parameters: *parameters,
            method,
        })
    }

    /// The parameters it was made of.
    #[must_use]
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The length of the first chunk of `data`, from 1 to `max_bytes`; 0 for no data.
    ///
    /// `data` must hold at least `max_bytes` bytes or all that is left of the stream: with fewer,
    /// the end of `data` is taken for the end of the stream. Bytes beyond `max_bytes` are not
    /// looked at.
    #[must_use]
    pub fn cut(&self, data: &[u8]) -> usize {
        let length = match &self.method {
            Method::FastCdc(method) => method.cut(data),
        };
        debug_assert!(length <= self.parameters.max_bytes as usize);
        debug_assert!(length == data.len() || length >= self.parameters.min_bytes as usize);
        length
    }

    /// The chunks of a whole stream that lies in memory, in order, as ranges of `data`.
    #[must_use]
    pub fn chunks<'a>(&'a self, data: &'a [u8]) -> Cuts<'a> {
        Cuts {
            chunker: self,
            data,
            start: 0,
        }
    }
}

/// The chunks of a slice; see [`Chunker::chunks`].
#[derive(Clone)]
pub struct Cuts<'a> {
    chunker: &'a Chunker,
    data: &'a [u8],
    /// Where the next chunk begins.
    start: usize,
}

impl Iterator for Cuts<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let start = self.start;
        let length = self.chunker.cut(&self.data[start..]);
        self.start += length;
        (length > 0).then_some(start..self.start)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let rest = self.data.len() - self.start;
        let parameters = &self.chunker.parameters;
        (
            rest.div_ceil(parameters.max_bytes as usize),
            Some(rest.div_ceil(parameters.min_bytes as usize)),
        )
    }
}

impl FusedIterator for Cuts<'_> {}

/// Never shows the key or the data.
impl fmt::Debug for Cuts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cuts")
            .field("chunker", self.chunker)
            .field("start", &self.start)
            .finish_non_exhaustive()
    }
}
