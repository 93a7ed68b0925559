//! Where an axis has its ticks, and what stands there.

use crate::units;

/// What the numbers of an axis are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Plain numbers.
    Number,
    /// Bytes, in powers of two: `8K`.
    Bytes,
    /// Hundredths.
    Percent,
}

impl Unit {
    /// `value` at a tick of an axis whose ticks are `step` apart.
    fn text(self, value: f64, step: f64) -> String {
        let decimals = (-step.log10().floor()).clamp(0.0, 9.0) as usize;
        match self {
            Self::Bytes => units::short_bytes(value.round().max(0.0) as u64),
            Self::Number => format!("{value:.decimals$}"),
            Self::Percent => format!("{value:.decimals$} %"),
        }
    }
}

/// A tick: where, and what stands there.
pub type Tick = (f64, String);

/// Ticks at round numbers from `from` to `to`, about `count` of them.
pub fn linear(from: f64, to: f64, count: usize, unit: Unit) -> Vec<Tick> {
    let rough = (to - from) / count.max(1) as f64;
    if rough.is_nan() || rough <= 0.0 {
        return vec![(from, unit.text(from, 1.0))];
    }
    let step = match unit {
        Unit::Bytes => 2f64.powf(rough.log2().ceil()),
        _ => round_step(rough),
    };
    let first = (from / step - 1e-9).ceil() as i64;
    let last = (to / step + 1e-9).floor() as i64;
    (first..=last)
        .map(|index| index as f64 * step)
        .map(|value| (value, unit.text(value, step)))
        .collect()
}

/// The least of 1, 2, 5 × 10ⁿ that is at least `rough`.
fn round_step(rough: f64) -> f64 {
    let power = 10f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0];
    let step = steps.iter().find(|step| *step * power >= rough * 0.999);
    power * step.unwrap_or(&10.0)
}

/// Ticks of a logarithmic axis: powers of ten, with 2 and 5 between them where there is room; of
/// bytes, powers of two.
pub fn logarithmic(from: f64, to: f64, unit: Unit) -> Vec<Tick> {
    if unit == Unit::Bytes {
        let exponents = from.log2().ceil() as i32..=to.log2().floor() as i32;
        let apart = (exponents.clone().count() / 9 + 1) as i32;
        return exponents
            .filter(|exponent| exponent % apart == 0)
            .map(|exponent| 2f64.powi(exponent))
            .map(|value| (value, unit.text(value, value)))
            .collect();
    }
    let decades = (to / from).log10();
    let steps: &[f64] = if decades > 3.0 {
        &[1.0]
    } else {
        &[1.0, 2.0, 5.0]
    };
    let mut ticks = Vec::new();
    for exponent in from.log10().floor() as i32..=to.log10().ceil() as i32 {
        for step in steps {
            let value = step * 10f64.powi(exponent);
            if value >= from * 0.999 && value <= to * 1.001 {
                ticks.push((value, unit.text(value, 10f64.powi(exponent))));
            }
        }
    }
    ticks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(ticks: &[Tick]) -> Vec<&str> {
        ticks.iter().map(|(_, text)| text.as_str()).collect()
    }

    #[test]
    fn ticks_are_round() {
        let ticks = linear(0.0, 65536.0, 8, Unit::Bytes);
        assert_eq!(texts(&ticks)[..3], ["0", "8K", "16K"]);
        assert_eq!(ticks.len(), 9);
        let ticks = linear(0.0, 1.0, 5, Unit::Number);
        assert_eq!(texts(&ticks), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        let ticks = linear(3.0, 37.0, 4, Unit::Percent);
        assert_eq!(texts(&ticks), ["10 %", "20 %", "30 %"]);
        assert_eq!(linear(1.0, 1.0, 4, Unit::Number).len(), 1);
    }

    #[test]
    fn logarithmic_ticks() {
        let ticks = logarithmic(0.3, 30.0, Unit::Number);
        assert_eq!(texts(&ticks), ["0.5", "1", "2", "5", "10", "20"]);
        let ticks = logarithmic(1.0, 1e6, Unit::Number);
        assert_eq!(ticks.len(), 7);
        let ticks = logarithmic(1024.0, 8192.0, Unit::Bytes);
        assert_eq!(texts(&ticks), ["1K", "2K", "4K", "8K"]);
    }
}
