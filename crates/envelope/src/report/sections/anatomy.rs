//! What the requests around the median and in the tail consist of.

use crate::report::anatomy::{Around, around, of_endpoint};
use crate::report::attribution::STAGES;
use crate::report::document::Table;
use crate::report::format;
use crate::report::group::Group;
use crate::result::{CLIENT_WAIT, UNATTRIBUTED, UNNAMED};

/// `None` where no source knows the parts of single requests.
pub(super) fn table(group: &Group<'_>) -> Option<Table> {
    let mut rows: Vec<(&str, Around)> = Vec::new();
    for endpoint in group.endpoints() {
        rows.extend(around(&of_endpoint(&group.runs, endpoint)).into_iter().map(|around| (endpoint, around)));
    }
    if rows.is_empty() {
        return None;
    }
    // A column for what any of these requests passed.
    let order = std::iter::once(CLIENT_WAIT).chain(STAGES).chain([UNNAMED, UNATTRIBUTED]);
    let parts: Vec<&str> = order
        .filter(|part| rows.iter().filter_map(|(_, around)| around.cut.as_ref()).any(|cut| cut.share(part) > 0.0))
        .collect();
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
    for (endpoint, Around { name, cut }) in rows {
        let mut row = vec![endpoint.to_owned(), name];
        if let Some(cut) = cut {
            row.extend([format::count(cut.count), format::plain_ms(cut.mean_ms)]);
            row.extend(parts.iter().map(|part| format::percent(cut.share(part))));
        } else {
            row.push(format::TOO_FEW.to_owned());
        }
        table.push(row);
    }
    Some(table)
}
