//! Which load holds when: the phases as a piecewise linear factor over time.

use std::time::Duration;

use envelope::result::{Phase, PhaseKind};

use super::PhaseSpec;

impl PhaseSpec {
    /// The factor that holds in the phase; at its end, where it is a ramp.
    pub(super) fn level(&self) -> f64 {
        self.factor.unwrap_or(if self.kind == PhaseKind::RampDown { 0.0 } else { 1.0 })
    }

    fn is_slope(&self) -> bool {
        matches!(self.kind, PhaseKind::Ramp | PhaseKind::RampDown)
    }
}

/// A stretch in which the factor changes linearly.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Segment {
    /// Where it begins, in seconds of the run.
    pub start: f64,
    /// How long it is, in seconds; above 0.
    pub length: f64,
    /// The factor at its beginning.
    pub from: f64,
    /// The factor at its end.
    pub to: f64,
}

impl Segment {
    fn end(&self) -> f64 {
        self.start + self.length
    }

    fn area(&self) -> f64 {
        f64::midpoint(self.from, self.to) * self.length
    }

    /// Seconds into the segment at which the area from its beginning is `area`, which must be within the segment's.
    fn time_of_area(&self, area: f64) -> f64 {
        let slope = (self.to - self.from) / self.length;
        // The root of slope/2 t² + from t = area, in the form that neither divides by a slope of 0 nor cancels.
        let root = (self.from * self.from + 2.0 * slope * area).max(0.0).sqrt();
        let denominator = self.from + root;
        if denominator <= 0.0 { 0.0 } else { (2.0 * area / denominator).min(self.length) }
    }
}

/// The phases of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    segments: Vec<Segment>,
    phases: Vec<Phase>,
}

impl Schedule {
    pub(super) fn of(phases: &[PhaseSpec]) -> Self {
        let (mut second, mut level) = (0_u32, 0.0);
        let mut schedule = Self { segments: Vec::new(), phases: Vec::new() };
        for phase in phases {
            let to = phase.level();
            let from = if phase.is_slope() { level } else { to };
            schedule.segments.push(Segment { start: second.into(), length: phase.seconds.into(), from, to });
            let until_second = second.saturating_add(phase.seconds);
            schedule.phases.push(Phase {
                kind: phase.kind,
                name: phase.name.clone(),
                from_second: second,
                until_second,
            });
            (second, level) = (until_second, to);
        }
        schedule
    }

    /// The phases as results state them: in order, without gaps.
    #[must_use]
    pub fn phases(&self) -> &[Phase] {
        &self.phases
    }

    /// The length of all phases.
    #[must_use]
    pub fn length(&self) -> Duration {
        Duration::from_secs(self.phases.last().map_or(0, |phase| phase.until_second).into())
    }

    /// The phase of a second.
    #[must_use]
    pub fn phase_at(&self, second: u32) -> Option<&Phase> {
        self.phases.iter().find(|phase| (phase.from_second..phase.until_second).contains(&second))
    }

    /// Whether a second is measured.
    #[must_use]
    pub fn is_measured(&self, second: u32) -> bool {
        self.phase_at(second).is_some_and(|phase| phase.kind == PhaseKind::Measure)
    }

    /// The factor at a time of the run; 0 before and after it.
    #[must_use]
    pub fn factor_at(&self, seconds: f64) -> f64 {
        let at = self.segments.iter().find(|segment| segment.start <= seconds && seconds < segment.end());
        at.map_or(0.0, |segment| {
            segment.from + (segment.to - segment.from) * (seconds - segment.start) / segment.length
        })
    }

    /// Virtual users at the highest factor.
    #[must_use]
    pub fn highest_users(&self, vus: u32) -> u32 {
        let highest = self.segments.iter().map(|segment| segment.from.max(segment.to)).fold(0.0, f64::max);
        whole_users(highest * f64::from(vus)).max(1)
    }

    /// When virtual user `index` (from 0) of `vus` is wanted next, at or after `seconds`: user i works while the wanted number,
    /// rounded up, is above i. `None`: not any more.
    #[must_use]
    pub fn wanted_from(&self, index: u32, vus: u32, seconds: f64) -> Option<f64> {
        let threshold = f64::from(index) / f64::from(vus);
        self.segments.iter().filter(|segment| segment.end() > seconds).find_map(|segment| {
            let begin = seconds.max(segment.start);
            let slope = (segment.to - segment.from) / segment.length;
            let here = segment.from + slope * (begin - segment.start);
            if here > threshold {
                return Some(begin);
            }
            if segment.to <= threshold || slope <= 0.0 {
                return None;
            }
            let crossing = segment.start + (threshold - segment.from) / slope;
            Some(crossing.max(begin))
        })
    }

    /// Whether virtual user `index` of `vus` is wanted at a time.
    #[must_use]
    pub fn wants(&self, index: u32, vus: u32, seconds: f64) -> bool {
        self.factor_at(seconds) * f64::from(vus) > f64::from(index)
    }

    /// The time at which the integral of the factor from 0 reaches `area` (factor-seconds); `None` if it never does. With
    /// unit-rate arrivals at a₁ < a₂ < …, the times of aᵢ/rate are arrivals of the wanted rate (inversion of the cumulative
    /// rate function: Çinlar, Introduction to Stochastic Processes, 1975, ch. 4).
    #[must_use]
    pub fn time_of_area(&self, area: f64) -> Option<f64> {
        let mut left = area;
        for segment in &self.segments {
            let own = segment.area();
            if left <= own {
                return Some(segment.start + segment.time_of_area(left));
            }
            left -= own;
        }
        None
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "at most 50,000 users times a factor of 100"
)]
fn whole_users(users: f64) -> u32 {
    users.ceil() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(phases: &[(PhaseKind, u32, Option<f64>)]) -> Schedule {
        let phases: Vec<_> =
            phases.iter().map(|&(kind, seconds, factor)| PhaseSpec { kind, seconds, name: None, factor }).collect();
        Schedule::of(&phases)
    }

    fn trapezoid() -> Schedule {
        schedule(&[(PhaseKind::Ramp, 10, None), (PhaseKind::Measure, 20, None), (PhaseKind::RampDown, 10, None)])
    }

    fn near(left: Option<f64>, right: f64) -> bool {
        left.is_some_and(|left| (left - right).abs() < 1e-9)
    }

    #[test]
    fn the_factor_is_linear_in_ramps_and_constant_between() {
        let schedule = trapezoid();
        for (seconds, factor) in
            [(0.0, 0.0), (5.0, 0.5), (10.0, 1.0), (29.9, 1.0), (35.0, 0.5), (40.0, 0.0), (99.0, 0.0)]
        {
            assert!((schedule.factor_at(seconds) - factor).abs() < 1e-9, "{seconds}");
        }
        assert_eq!(schedule.length(), Duration::from_secs(40));
        assert!(!schedule.is_measured(9) && schedule.is_measured(10) && schedule.is_measured(29));
        assert!(!schedule.is_measured(30) && !schedule.is_measured(40));
    }

    #[test]
    fn without_a_ramp_the_load_is_there_at_once() {
        let schedule = schedule(&[(PhaseKind::Measure, 5, None)]);
        assert!((schedule.factor_at(0.0) - 1.0).abs() < 1e-12);
        assert_eq!(schedule.wanted_from(99, 100, 0.0), Some(0.0));
    }

    #[test]
    fn users_come_one_after_the_other_and_leave_so() {
        let schedule = trapezoid();
        assert!(near(schedule.wanted_from(0, 10, 0.0), 0.0));
        assert!(near(schedule.wanted_from(5, 10, 0.0), 5.0));
        assert!(near(schedule.wanted_from(9, 10, 0.0), 9.0));
        assert!(near(schedule.wanted_from(9, 10, 12.5), 12.5));
        assert_eq!(schedule.wanted_from(9, 10, 35.0), None);
        assert!(schedule.wants(4, 10, 34.9) && !schedule.wants(6, 10, 35.0));
    }

    #[test]
    fn a_user_whom_a_later_phase_wants_waits_for_it() {
        let schedule = schedule(&[
            (PhaseKind::Measure, 10, Some(1.0)),
            (PhaseKind::Ramp, 10, Some(2.0)),
            (PhaseKind::Measure, 10, Some(2.0)),
        ]);
        assert_eq!(schedule.highest_users(10), 20);
        assert!(near(schedule.wanted_from(15, 10, 0.0), 15.0));
    }

    #[test]
    fn the_area_is_inverted_through_every_phase() {
        let schedule = trapezoid();
        for (area, time) in
            [(0.0, 0.0), (1.25, 5.0), (5.0, 10.0), (15.0, 20.0), (25.0, 30.0), (28.75, 35.0), (30.0, 40.0)]
        {
            assert!(near(schedule.time_of_area(area), time), "{area}: {:?}", schedule.time_of_area(area));
        }
        assert_eq!(schedule.time_of_area(30.1), None);
    }
}
