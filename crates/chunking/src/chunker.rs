//! The one interface of all algorithms: data in memory to cut points.

use crate::methods::adler::Adler;
use crate::methods::ae::Ae;
use crate::methods::ae2::Ae2;
use crate::methods::crate_fastcdc::CrateFastCdc;
use crate::methods::crc32::Crc32;
use crate::methods::fastcdc::{FastCdc, Rolling};
use crate::methods::fixed::Fixed;
use crate::methods::fold::Fold;
use crate::methods::gear::Gear;
use crate::methods::gearhash::GearHash;
use crate::methods::maxp::Maxp;
use crate::methods::rabin::Rabin;
use crate::methods::rabin_nc::RabinNc;
use crate::methods::ram::Ram;
use crate::methods::restic::Restic;
use crate::methods::seqcdc::SeqCdc;
use crate::methods::shield::Shield;
use crate::methods::tttd::Tttd;
use crate::two_stage::{Ahead, Windowed, is_faster};
use crate::{Algorithm, KeyMaterial, ParameterError, Parameters};
use kernels::isa::Isa;
use std::fmt;
use std::iter::FusedIterator;
use std::ops::Range;

/// Cuts data into chunks. Has no state of its own: one serves any number of streams and threads.
#[derive(Clone)]
pub struct Chunker {
    parameters: Parameters,
    method: Method,
    /// What its kernels run on.
    isa: Isa,
    rolling: Rolling,
    /// Whether it cuts in two stages: where marks are remembered, and where they are not.
    in_two_stages: [bool; 2],
}

/// Each algorithm, made ready to run.
#[derive(Clone)]
enum Method {
    FastCdc(FastCdc),
    Fixed(Fixed),
    Fold(Fold),
    Gear(Gear),
    Tttd(Tttd),
    CrateFastCdc(CrateFastCdc),
    GearHash(GearHash),
    Ae(Ae),
    Ae2(Ae2),
    Ram(Ram),
    Maxp(Maxp),
    SeqCdc(SeqCdc),
    Shield(Shield),
    Rabin(Rabin),
    RabinNc(RabinNc),
    Adler(Adler),
    Crc32(Crc32),
    Restic(Restic),
}

impl Method {
    /// The method of valid parameters.
    fn new(parameters: &Parameters, key: KeyMaterial) -> Result<Self, ParameterError> {
        Ok(match parameters.algorithm {
            Algorithm::FastCdc => Self::FastCdc(FastCdc::new(parameters, key.gear_table())),
            Algorithm::Fixed => Self::Fixed(Fixed::new(parameters)),
            Algorithm::Fold => Self::Fold(Fold::new(parameters, key)),
            Algorithm::Gear => Self::Gear(Gear::new(parameters, key.gear_table())),
            Algorithm::Tttd => Self::Tttd(Tttd::new(parameters, key.gear_table())),
            Algorithm::FastCdcCrateV2020 => Self::CrateFastCdc(CrateFastCdc::new(parameters)),
            Algorithm::GearHash | Algorithm::Xet => Self::GearHash(GearHash::new(parameters)),
            Algorithm::Ae => Self::Ae(Ae::new(parameters)),
            Algorithm::Ae2 => Self::Ae2(Ae2::new(parameters)),
            Algorithm::Ram => Self::Ram(Ram::new(parameters)),
            Algorithm::Maxp => Self::Maxp(Maxp::new(parameters)),
            Algorithm::SeqCdc => Self::SeqCdc(SeqCdc::new(parameters)),
            Algorithm::Shield => Self::Shield(Shield::new(parameters, &key.gear_table())),
            Algorithm::Rabin => Self::Rabin(Rabin::new(parameters, &key)?),
            Algorithm::RabinNc => Self::RabinNc(RabinNc::new(parameters, &key)?),
            Algorithm::Adler => Self::Adler(Adler::new(parameters, &key.gear_table())),
            Algorithm::Crc32 => Self::Crc32(Crc32::new(parameters)),
            Algorithm::Restic => Self::Restic(Restic::new(parameters)),
        })
    }

    fn cut(&self, isa: Isa, data: &[u8]) -> usize {
        match self {
            Self::FastCdc(method) => method.cut(data),
            Self::Fixed(method) => method.cut(data),
            Self::Fold(method) => method.cut(isa, data),
            Self::Gear(method) => method.cut(data),
            Self::Tttd(method) => method.cut(data),
            Self::CrateFastCdc(method) => method.cut(data),
            Self::GearHash(method) => method.cut(data),
            Self::Ae(method) => method.cut(data),
            Self::Ae2(method) => method.cut(data),
            Self::Ram(method) => method.cut(data),
            Self::Maxp(method) => method.cut(data),
            Self::SeqCdc(method) => method.cut(data),
            Self::Shield(method) => method.cut(isa, data),
            Self::Rabin(method) => method.cut(data),
            Self::RabinNc(method) => method.cut(data),
            Self::Adler(method) => method.cut(data),
            Self::Crc32(method) => method.cut(data),
            Self::Restic(method) => method.cut(data),
        }
    }

    /// What can be cut in two stages.
    fn windowed(&self) -> Option<&dyn Windowed> {
        Some(match self {
            Self::FastCdc(method) => method,
            Self::Fold(method) => method,
            Self::Gear(method) => method,
            Self::Tttd(method) => method,
            Self::GearHash(method) => method,
            Self::Shield(method) => method,
            Self::Rabin(method) => method,
            Self::RabinNc(method) => method,
            Self::Adler(method) => method,
            Self::Crc32(method) => method,
            Self::Restic(method) => method,
            _ => return None,
        })
    }
}

impl Method {
    /// Whether the judgement that cuts holds at `length`, from min on and before the end of `data`.
    fn is_match(&self, isa: Isa, data: &[u8], length: usize) -> bool {
        match self {
            Self::FastCdc(method) => method.is_match(data, length),
            Self::Fold(method) => method.is_match(data, length),
            Self::Shield(method) => method.is_match(data, length),
            Self::Gear(method) => method.is_match(data, length),
            Self::Tttd(method) => method.is_match(data, length),
            Self::CrateFastCdc(method) => method.is_match(data, length),
            Self::GearHash(method) => method.is_match(data, length),
            Self::Rabin(method) => method.is_match(data, length),
            Self::RabinNc(method) => method.is_match(data, length),
            Self::Adler(method) => method.is_match(data, length),
            Self::Crc32(method) => method.is_match(data, length),
            Self::Restic(method) => method.is_match(data, length),
            // What has no window is asked for its cut.
            _ => self.cut(isa, data) == length,
        }
    }
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
    /// When [`Parameters::validate`] finds an impossible one, and when there is a key that the
    /// algorithm can't use.
    pub fn new(parameters: &Parameters, key: KeyMaterial) -> Result<Self, ParameterError> {
        parameters.validate()?;
        if !matches!(key, KeyMaterial::Unkeyed) && !parameters.algorithm.info().keyed {
            return Err(ParameterError::NotKeyed {
                algorithm: parameters.algorithm,
            });
        }
        let mut chunker = Self {
            parameters: *parameters,
            method: Method::new(parameters, key)?,
            isa: Isa::best(),
            rolling: Rolling::Fastest,
            in_two_stages: [false; 2],
        };
        chunker.choose();
        Ok(chunker)
    }

    /// The same, with its kernels on another level of instruction sets: to measure and to test
    /// them, for the cuts are the same. A level that the machine does not have is
    /// [`Isa::Scalar`].
    #[must_use]
    pub fn with_isa(mut self, isa: Isa) -> Self {
        self.isa = if isa.is_available() { isa } else { Isa::Scalar };
        self.choose();
        self
    }

    /// What its kernels run on.
    #[must_use]
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// The same, with another loop where the algorithm has it ([`Rolling::is_of`]): to measure and
    /// to test them, for the cuts are the same.
    #[must_use]
    pub fn with_rolling(mut self, rolling: Rolling) -> Self {
        self.rolling = rolling;
        self.choose();
        match &mut self.method {
            Method::FastCdc(method) => method.set_rolling(rolling),
            Method::Fold(method) => method.rolling = rolling,
            Method::Shield(method) => method.rolling = rolling,
            Method::Gear(method) => method.rolling = rolling,
            Method::Rabin(method) => method.rolling = rolling,
            Method::RabinNc(method) => method.rolling = rolling,
            Method::Crc32(method) => method.rolling = rolling,
            Method::Ae(method) => method.rolling = rolling,
            Method::Ae2(method) => method.rolling = rolling,
            _ => {}
        }
        self
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
        let data = &data[..data.len().min(self.parameters.max_bytes as usize)];
        if data.len() <= self.parameters.min_bytes as usize {
            return data.len();
        }
        let length = match self.windowed_if(self.in_two_stages[1]) {
            Some(method) => Ahead::once().cut(method, self.isa, data),
            None => self.method.cut(self.isa, data),
        };
        debug_assert!(length <= self.parameters.max_bytes as usize);
        debug_assert!(length == data.len() || length >= self.parameters.min_bytes as usize);
        length
    }

    /// Whether the first chunk of `data` may end at `length`: the hash of the window there matches,
    /// under the mask that is in force at that length; or it is `max_bytes`, or all of `data`.
    ///
    /// Nothing else is judged: an earlier place may match too. So it is true of what
    /// [`cut`](Self::cut) returns (but for the backups of `tttd`, which hang on what is behind
    /// them), and false of everything before. It costs one window, where the algorithm has one
    /// ([`Algorithm::judges_windows`]); of the others it asks for the cut. `data` must hold what
    /// [`cut`](Self::cut) asks for.
    #[must_use]
    pub fn is_cut_at(&self, data: &[u8], length: usize) -> bool {
        let data = &data[..data.len().min(self.parameters.max_bytes as usize)];
        if length == data.len() {
            return length > 0;
        }
        (self.parameters.min_bytes as usize..data.len()).contains(&length)
            && self.method.is_match(self.isa, data, length)
    }

    /// Whether the cut is the first position that matches, and hangs on nothing behind it.
    pub(crate) fn cuts_at_first_match(&self) -> bool {
        let rule = self.windowed().map(Windowed::rule);
        rule.is_some_and(|rule| !rule.has_backups)
    }

    /// The same of what is left of a stream, in whose order it is asked for: what was found beyond
    /// the cut is remembered in `ahead`.
    pub(crate) fn cut_next(&self, ahead: &mut Option<Ahead>, data: &[u8]) -> usize {
        match self.windowed_if(self.in_two_stages[0]) {
            Some(method) => {
                let ahead = ahead.get_or_insert_with(Ahead::new);
                ahead.cut(method, self.isa, data)
            }
            None => self.cut(data),
        }
    }

    pub(crate) fn windowed(&self) -> Option<&dyn Windowed> {
        self.method.windowed()
    }

    fn windowed_if(&self, in_two_stages: bool) -> Option<&dyn Windowed> {
        if in_two_stages { self.windowed() } else { None }
    }

    /// Decides between two stages and one.
    fn choose(&mut self) {
        let wait = self.parameters.avg_bytes;
        let Some(method) = self.windowed() else {
            return;
        };
        self.in_two_stages = [true, false].map(|is_remembered| match self.rolling {
            Rolling::TwoStage => true,
            Rolling::Fastest => is_faster(method, self.isa, wait, is_remembered),
            _ => false,
        });
    }

    /// The chunks of a whole stream that lies in memory, in order, as ranges of `data`.
    #[must_use]
    pub fn chunks<'a>(&'a self, data: &'a [u8]) -> Cuts<'a> {
        Cuts {
            chunker: self,
            data,
            start: 0,
            ahead: None,
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
    ahead: Option<Ahead>,
}

impl Iterator for Cuts<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let start = self.start;
        let length = self.chunker.cut_next(&mut self.ahead, &self.data[start..]);
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
