//! Axes: where a value is on the paper, and which values get a label.

use super::Element;

/// How values are spread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Scale {
    /// Evenly, from the first to the second.
    Linear(f64, f64),
    /// By their logarithm, from the first to the second; both above 0.
    Log(f64, f64),
}

/// Which way an axis runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// From left to right.
    Right,
    /// From the bottom to the top.
    Up,
}

impl Scale {
    /// From 0 to a round number that is not below `highest`.
    pub(crate) fn from_zero(highest: f64) -> Self {
        let highest = if highest.is_finite() && highest > 0.0 { highest } else { 1.0 };
        let step = nice_step(highest / 4.0);
        Self::Linear(0.0, (highest / step).ceil() * step)
    }

    /// Logarithmic, between 1, 2 and 5 times powers of ten that enclose all `values`; at least a factor of ten.
    pub(crate) fn enclosing(values: impl IntoIterator<Item = f64>) -> Self {
        let usable = values.into_iter().filter(|value| value.is_finite() && *value > 0.0);
        let (low, high) = usable.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
        if low > high {
            return Self::Log(1.0, 10.0);
        }
        let low = preferred().rev().find(|value| *value <= low * 1.000_001).unwrap_or(1e-6);
        let high = preferred().find(|value| *value >= high * 0.999_999).unwrap_or(1e9);
        Self::Log(low, high.max(low * 10.0))
    }

    /// 0 at the beginning, 1 at the end; values outside are put at the edge.
    fn share(self, value: f64) -> f64 {
        let share = match self {
            Self::Linear(from, to) => (value - from) / (to - from),
            Self::Log(from, to) => (value.max(f64::MIN_POSITIVE) / from).ln() / (to / from).ln(),
        };
        share.clamp(0.0, 1.0)
    }

    /// At most about `most` values that deserve a label.
    pub(crate) fn ticks(self, most: u32) -> Vec<f64> {
        match self {
            Self::Linear(from, to) => {
                let step = nice_step((to - from) / f64::from(most.max(1)));
                let first = (from / step).ceil();
                let count = ((to - first * step) / step + 1e-9).floor();
                (0..=u32_of(count)).map(|index| (first + f64::from(index)) * step).collect()
            }
            Self::Log(from, to) => {
                let inside = |value: &f64| *value >= from * 0.999_999 && *value <= to * 1.000_001;
                let all: Vec<f64> = preferred().filter(inside).collect();
                if all.len() <= most as usize {
                    return all;
                }
                // Too many for 1, 2, 5: powers of ten, and of those as few as needed.
                let powers: Vec<f64> = (-6..=9).map(|power| 10_f64.powi(power)).filter(inside).collect();
                let every = powers.len().div_ceil((most as usize).max(1)).max(1);
                powers.into_iter().step_by(every).collect()
            }
        }
    }
}

/// A scale laid on the paper.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Axis {
    scale: Scale,
    direction: Direction,
    /// Where it begins, in user units (x of a horizontal, y of a vertical axis).
    from: f64,
    /// Where it ends.
    to: f64,
}

impl Axis {
    /// From `left` to `right`.
    pub(crate) fn right(scale: Scale, left: f64, right: f64) -> Self {
        Self { scale, direction: Direction::Right, from: left, to: right }
    }

    /// From `bottom` to `top`.
    pub(crate) fn up(scale: Scale, bottom: f64, top: f64) -> Self {
        Self { scale, direction: Direction::Up, from: bottom, to: top }
    }

    /// Where a value is.
    pub(crate) fn at(self, value: f64) -> f64 {
        self.from + self.scale.share(value) * (self.to - self.from)
    }

    /// Grid lines between `near` and `far` (on the other axis), and labels before `near`.
    pub(crate) fn grid(self, near: f64, far: f64, most_ticks: u32, label: impl Fn(f64) -> String) -> Element {
        let ticks = self.scale.ticks(most_ticks);
        self.grid_at(&ticks, near, far, label)
    }

    /// The same at given values.
    pub(crate) fn grid_at(self, ticks: &[f64], near: f64, far: f64, label: impl Fn(f64) -> String) -> Element {
        let mut grid = Element::group("grid");
        for &tick in ticks {
            let place = self.at(tick);
            let (line, text) = match self.direction {
                Direction::Right => (
                    Element::line((place, near), (place, far), "gridline"),
                    Element::label((place, near + 16.0), "middle", "tick", &label(tick)),
                ),
                Direction::Up => (
                    Element::line((near, place), (far, place), "gridline"),
                    Element::label((near - 6.0, place + 4.0), "end", "tick", &label(tick)),
                ),
            };
            grid = grid.with(line).with(text);
        }
        grid
    }
}

/// 1, 2 and 5 times the powers of ten from a nanosecond to eleven days, in milliseconds.
fn preferred() -> impl DoubleEndedIterator<Item = f64> {
    (-6..=9).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(power)))
}

/// The next of 1, 2, 2.5, 5, 10 times a power of ten that is not below `raw`. After P. Heckbert, "Nice numbers for graph
/// labels", Graphics Gems, 1990.
fn nice_step(raw: f64) -> f64 {
    if !raw.is_finite() || raw <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(raw.log10().floor());
    // Seconds and requests are counted in whole numbers: 2.5 only where it is one.
    let usable = |factor: &f64| raw <= factor * power * 1.000_001 && (factor.fract() == 0.0 || power >= 10.0);
    let factor = [1.0, 2.0, 2.5, 5.0].into_iter().find(usable);
    factor.unwrap_or(10.0) * power
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to the number of ticks of a chart"
)]
fn u32_of(value: f64) -> u32 {
    value.clamp(0.0, 1_000.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linear_axis_ends_at_a_round_number() {
        assert_eq!(Scale::from_zero(222.0), Scale::Linear(0.0, 300.0));
        assert_eq!(Scale::from_zero(0.0), Scale::Linear(0.0, 1.0));
        assert_eq!(Scale::from_zero(f64::NAN), Scale::Linear(0.0, 1.0));
        assert_eq!(Scale::from_zero(222.0).ticks(5), [0.0, 100.0, 200.0, 300.0]);
        assert_eq!(Scale::Linear(0.0, 25.0).ticks(10), [0.0, 5.0, 10.0, 15.0, 20.0, 25.0], "whole seconds");
        assert_eq!(Scale::Linear(0.0, 200.0).ticks(6), [0.0, 50.0, 100.0, 150.0, 200.0]);
    }

    #[test]
    fn a_logarithmic_axis_encloses_its_values_between_round_numbers() {
        assert_eq!(Scale::enclosing([6.5, 852.0]), Scale::Log(5.0, 1_000.0));
        assert_eq!(Scale::enclosing([3.0]), Scale::Log(2.0, 20.0));
        assert_eq!(Scale::enclosing([]), Scale::Log(1.0, 10.0));
        assert_eq!(Scale::enclosing([0.0, -1.0, f64::NAN, 2.0, 50.0]), Scale::Log(2.0, 50.0));
        assert_eq!(Scale::Log(5.0, 100.0).ticks(9), [5.0, 10.0, 20.0, 50.0, 100.0]);
        assert_eq!(Scale::Log(0.1, 10_000.0).ticks(7), [0.1, 1.0, 10.0, 100.0, 1_000.0, 10_000.0]);
    }

    #[test]
    fn values_keep_their_place_and_never_leave_the_paper() {
        let axis = Axis::up(Scale::Log(1.0, 100.0), 200.0, 0.0);
        assert!((axis.at(10.0) - 100.0).abs() < 1e-9);
        assert!((axis.at(0.0) - 200.0).abs() < 1e-9);
        assert!(axis.at(1e9).abs() < 1e-9);
    }
}
