//! Where the time went, by endpoint: each bar is the mean of one endpoint, divided among the stages. Means add up, which
//! percentiles do not.

use super::{Drawing, FONT_SIZE, LegendEntry, Mark, Room, paper_width};
use crate::report::attribution::{CLIENT_WAIT, STAGES, UNATTRIBUTED};
use crate::report::document::Table;
use crate::report::format;
use crate::report::svg::{Element, text_width};

/// The chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Stages {
    /// What it shows.
    pub title: String,
    /// One an endpoint.
    pub bars: Vec<StageBar>,
}

/// One endpoint.
#[derive(Debug, Clone, PartialEq)]
pub struct StageBar {
    /// Its name.
    pub endpoint: String,
    /// Mean of the time that the parts divide, in milliseconds.
    pub mean_ms: f64,
    /// In the order of a request's way.
    pub parts: Vec<StagePart>,
}

/// One stage of an endpoint.
#[derive(Debug, Clone, PartialEq)]
pub struct StagePart {
    /// Its name.
    pub stage: String,
    /// Its share of the mean, from 0 to 1.
    pub share: f64,
}

/// A request's way, from the client and back.
const ORDER: [&str; 10] = {
    let [admission, verify, pool, db, hash, idp, s3, app] = STAGES;
    [CLIENT_WAIT, admission, verify, pool, db, hash, idp, s3, app, UNATTRIBUTED]
};

impl Stages {
    pub(super) fn description(&self) -> String {
        let largest = |bar: &StageBar| {
            let part = bar.parts.iter().max_by(|a, b| a.share.total_cmp(&b.share))?;
            Some(format!(
                "{}: {} is {} of {}",
                bar.endpoint,
                part.stage,
                format::percent(part.share),
                format::ms(bar.mean_ms)
            ))
        };
        let parts: Vec<String> = self.bars.iter().filter_map(largest).collect();
        format!("The largest part of each endpoint's mean. {}.", parts.join("; "))
    }

    /// Every stage that any bar has, in the order in which a request passes them.
    fn stages(&self) -> Vec<&str> {
        let known = ORDER.into_iter().filter(|stage| self.parts().any(|part| part.stage == *stage));
        let mut stages: Vec<&str> = known.collect();
        for part in self.parts() {
            if !stages.contains(&part.stage.as_str()) {
                stages.push(&part.stage);
            }
        }
        stages
    }

    fn parts(&self) -> impl Iterator<Item = &StagePart> {
        self.bars.iter().flat_map(|bar| &bar.parts)
    }

    pub(super) fn table(&self) -> Table {
        let mut table = Table::new(self.title.clone(), &["Endpoint", "#Mean ms"]);
        let stages = self.stages();
        for stage in &stages {
            table.add_numeric_column(*stage);
        }
        for bar in &self.bars {
            let mut row = vec![bar.endpoint.clone(), format::plain_ms(bar.mean_ms)];
            for stage in &stages {
                let part = bar.parts.iter().find(|part| part.stage == *stage);
                row.push(part.map_or_else(|| "-".to_owned(), |part| format::percent(part.share)));
            }
            table.push(row);
        }
        table
    }

    pub(super) fn legend(&self) -> Vec<LegendEntry> {
        self.stages().into_iter().map(|stage| LegendEntry::new(Mark::Area, stage_class(stage), stage)).collect()
    }

    pub(super) fn draw(&self, room: Room) -> Drawing {
        let width = paper_width(room);
        // Wide: name | bar | mean. Narrow: name and mean above the bar.
        let (left, right, row) = match room {
            Room::Wide => (112.0, width - 84.0, 38.0),
            Room::Narrow => (8.0, width - 8.0, 52.0),
        };
        let mut elements = Vec::new();
        let mut top = 8.0;
        for bar in &self.bars {
            let bar_top = if room == Room::Wide { top } else { top + 18.0 };
            let mean = format::ms(bar.mean_ms);
            match room {
                Room::Wide => {
                    elements.push(Element::label((left - 10.0, bar_top + 17.0), "end", "name", &bar.endpoint));
                    elements.push(Element::label((right + 10.0, bar_top + 17.0), "start", "value", &mean));
                }
                Room::Narrow => {
                    elements.push(Element::label((left, bar_top - 6.0), "start", "name", &bar.endpoint));
                    elements.push(Element::label((right, bar_top - 6.0), "end", "value", &mean));
                }
            }
            elements.extend(segments(bar, (left, bar_top), right - left));
            top += row;
        }
        Drawing { width, height: top, elements }
    }
}

fn segments(bar: &StageBar, corner: (f64, f64), width: f64) -> Vec<Element> {
    let whole: f64 = bar.parts.iter().map(|part| part.share).sum::<f64>().max(f64::MIN_POSITIVE);
    let mut x = corner.0;
    let mut segments = Vec::new();
    for part in &bar.parts {
        let length = width * part.share / whole;
        let tip = format!(
            "{}, {}: {} ({})",
            bar.endpoint,
            part.stage,
            format::percent(part.share),
            format::ms(part.share * bar.mean_ms)
        );
        let class = stage_class(&part.stage);
        segments.push(Element::rect((x, corner.1), length, 26.0, &format!("segment {class}")).tip(&tip));
        let (long, short) = (format!("{} {}", part.stage, format::percent(part.share)), format::percent(part.share));
        let fitting = [long, short].into_iter().find(|text| text_width(text, FONT_SIZE) + 8.0 < length);
        if let Some(text) = fitting {
            segments.push(Element::label((x + length / 2.0, corner.1 + 17.0), "middle", "on-bar", &text));
        }
        x += length;
    }
    segments
}

/// The class of a stage's colour; stages that nobody knows share one.
fn stage_class(stage: &str) -> &'static str {
    match stage {
        CLIENT_WAIT => "stage-wait",
        "admission" => "stage-admission",
        "verify" => "stage-verify",
        "pool" => "stage-pool",
        "db" => "stage-db",
        "hash" => "stage-hash",
        "idp" => "stage-idp",
        "s3" => "stage-s3",
        "app" => "stage-app",
        UNATTRIBUTED => "stage-unattributed",
        _ => "stage-other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart() -> Stages {
        let part = |stage: &str, share| StagePart { stage: stage.into(), share };
        Stages {
            title: "stages".into(),
            bars: vec![
                StageBar {
                    endpoint: "login".into(),
                    mean_ms: 200.0,
                    parts: vec![part("db", 0.02), part("hash", 0.98)],
                },
                StageBar { endpoint: "get-user".into(), mean_ms: 4.0, parts: vec![part("db", 0.6), part("app", 0.4)] },
            ],
        }
    }

    #[test]
    fn the_table_says_what_the_bars_show() {
        let table = chart().table();
        let headings: Vec<&str> = table.columns.iter().map(|column| column.heading.as_str()).collect();
        assert_eq!(headings, ["Endpoint", "Mean ms", "db", "hash", "app"], "in the order of a request's way");
        assert_eq!(table.rows[0], ["login", "200", "2.0 %", "98 %", "-"]);
        assert_eq!(table.rows[1], ["get-user", "4.00", "60 %", "-", "40 %"]);
    }

    #[test]
    fn a_part_is_labelled_where_it_has_room_and_always_has_a_tip() {
        let svg = chart().draw(Room::Wide).elements.iter().map(ToString::to_string).collect::<String>();
        assert!(svg.contains(">hash 98 %</text>") && !svg.contains(">db 2.0 %</text>"), "{svg}");
        assert!(svg.contains("<title>login, db: 2.0 % (4.00 ms)</title>"), "{svg}");
    }
}
