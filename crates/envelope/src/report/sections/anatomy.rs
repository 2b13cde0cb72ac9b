//! What the requests around the median and in the tail consist of.

use crate::report::anatomy::{PERCENTILES, of_endpoint};
use crate::report::attribution::STAGES;
use crate::report::document::Table;
use crate::report::format;
use crate::report::group::Group;
use crate::result::{CLIENT_WAIT, Cut, UNATTRIBUTED, UNNAMED};

/// `None` where no source knows the parts of single requests.
pub(super) fn table(group: &Group<'_>) -> Option<Table> {
    let mut rows: Vec<(&str, &str, Cut)> = Vec::new();
    for endpoint in group.endpoints() {
        let anatomy = of_endpoint(&group.runs, endpoint);
        rows.extend(PERCENTILES.iter().filter_map(|(name, percent)| Some((endpoint, *name, anatomy.at(*percent)?))));
    }
    if rows.is_empty() {
        return None;
    }
    // A column for what any of these requests passed.
    let order = std::iter::once(CLIENT_WAIT).chain(STAGES).chain([UNNAMED, UNATTRIBUTED]);
    let parts: Vec<&str> = order.filter(|part| rows.iter().any(|(_, _, cut)| cut.share(part) > 0.0)).collect();
    let numeric: Vec<String> = parts.iter().map(|part| format!("#{part}")).collect();
    let mut columns = vec!["Endpoint", "Around", "#Requests", "#Mean ms"];
    columns.extend(numeric.iter().map(String::as_str));
    let mut table = Table::new(
        format!(
            "What the requests around the median and in the tail consist of, {}: shares of the same requests' latency",
            group.title
        ),
        &columns,
    );
    for (endpoint, around, cut) in rows {
        let mut row =
            vec![endpoint.to_owned(), around.to_owned(), format::count(cut.count), format::plain_ms(cut.mean_ms)];
        row.extend(parts.iter().map(|part| format::percent(cut.share(part))));
        table.push(row);
    }
    Some(table)
}
