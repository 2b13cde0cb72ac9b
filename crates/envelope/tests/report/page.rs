//! The page in a browser, at the width of a desktop and at that of a telephone.

use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use envelope::report::html;
use serde_json::Value;

use crate::browser::Browser;
use crate::text::phase_4_document;

/// A folder for pictures of the page, for whoever changes how it looks.
const PICTURES: &str = "DATUM_PAGE_PICTURES";

/// What the page is measured with, in one go.
const PROBE: &str = r"(() => {
  const seen = element => element.getBoundingClientRect().width > 0 && element.getBoundingClientRect().height > 0;
  const box = element => element.getBoundingClientRect();
  const name = element => element.textContent.trim().slice(0, 40);
  const figures = [...document.querySelectorAll('figure.chart')];
  const drawings = figures.map(figure => [...figure.querySelectorAll(':scope > svg')].filter(seen));
  const visible = drawings.flat();
  const fontSize = text => parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a;
  const overlaps = svg => {
    const texts = [...svg.querySelectorAll('text')].filter(seen);
    const found = [];
    texts.forEach((one, index) => texts.slice(index + 1).forEach(other => {
      const [a, b] = [box(one), box(other)];
      const width = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const height = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (width > 1 && height > 3) found.push(name(one) + ' | ' + name(other));
    }));
    return found;
  };
  // What a mark looks like, whatever the style made of its class.
  const look = mark => {
    const style = getComputedStyle(mark);
    return mark.matches('.line') ? [style.stroke, style.strokeDasharray].join(' ')
      : mark.matches('.dot') ? [style.fill, style.stroke].join(' ') : style.fill;
  };
  const notInTheLegend = figures.flatMap((figure, index) => {
    const legend = [...figure.querySelectorAll('.legend .swatch > *')];
    const known = new Set(legend.map(look));
    const marks = drawings[index].flatMap(svg => [...svg.querySelectorAll('.line, .dot, .bar, .segment')]);
    return legend.length ? marks.filter(mark => !known.has(look(mark))).map(mark => mark.getAttribute('class')) : [];
  });
  const twiceInALegend = figures.flatMap(figure => {
    const looks = [...figure.querySelectorAll('.legend .swatch > *')]
      .map(mark => mark.tagName + look(mark) + getComputedStyle(mark).fillOpacity);
    return looks.filter((one, index) => looks.indexOf(one) !== index);
  });
  return {
    notInTheLegend, twiceInALegend,
    scrollWidth: document.documentElement.scrollWidth,
    clientWidth: document.documentElement.clientWidth,
    figures: figures.length,
    drawingsOfEach: drawings.map(each => each.length),
    emptyDrawings: visible.filter(svg => ![...svg.querySelectorAll('path.line, rect.segment, rect.bar')]
      .some(shape => Math.max(box(shape).width, box(shape).height) > 20)).map(svg => name(svg.querySelector('title'))),
    shaded: visible.filter(svg => svg.querySelector('rect.discarded')).length,
    unnamed: visible.filter(svg => {
      const ids = svg.getAttribute('aria-labelledby').split(' ');
      return ids.length !== 2 || ids.some(id => !document.getElementById(id)?.textContent);
    }).length,
    smallTexts: visible.flatMap(svg => [...svg.querySelectorAll('text')]).filter(text => fontSize(text) < 9.5).map(name),
    textsOutside: visible.flatMap(svg => [...svg.querySelectorAll('text')].filter(text =>
      box(text).left < box(svg).left - 1 || box(text).right > box(svg).right + 1)).map(name),
    overlappingTexts: visible.flatMap(overlaps),
    tablesOutside: [...document.querySelectorAll('table')].filter(table => !table.closest('.scroll')).length,
    bodyFontSize: parseFloat(getComputedStyle(document.body).fontSize),
    duplicateIds: [...document.querySelectorAll('[id]')].map(element => element.id)
      .filter((id, index, all) => all.indexOf(id) !== index),
    deadLinks: [...document.querySelectorAll('a[href^=\'#\']')].map(link => link.getAttribute('href').slice(1))
      .filter(id => !document.getElementById(id)),
    headings: [...document.querySelectorAll('h2')].map(name),
  };
})()";

#[test]
fn the_page_is_whole_and_readable_at_both_widths() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.html");
    std::fs::write(&file, html(phase_4_document())).unwrap();
    for (width, dark) in [(1280, false), (1280, true), (400, false), (400, true)] {
        let mut page = browser.open(&file, width, dark);
        let seen = page.evaluate(PROBE);
        if let Some(folder) = std::env::var_os(PICTURES) {
            let scheme = if dark { "dark" } else { "light" };
            let picture = STANDARD.decode(page.screenshot()).unwrap();
            std::fs::write(PathBuf::from(folder).join(format!("{width}-{scheme}.png")), picture).unwrap();
        }
        assert_eq!(page.complaints(), Vec::<String>::new(), "at {width}");
        let foreign: Vec<String> =
            page.requests().into_iter().filter(|url| !url.starts_with("file:") && !url.starts_with("data:")).collect();
        assert_eq!(foreign, Vec::<String>::new(), "at {width}");
        assert_readable(&seen, width);
    }
}

fn assert_readable(seen: &Value, width: u32) {
    assert_eq!(seen["clientWidth"], width, "{seen:#}");
    assert!(
        seen["scrollWidth"].as_u64() <= seen["clientWidth"].as_u64(),
        "the page scrolls sideways at {width}: {seen:#}"
    );
    // Runs side by side, five timelines, one distribution over runs, and for each of three groups one by endpoint and one of
    // stages: the two exploratory runs have different pools.
    assert_eq!(seen["figures"], 13, "{seen:#}");
    assert!(seen["drawingsOfEach"].as_array().unwrap().iter().all(|each| each == 1), "at {width}: {seen:#}");
    assert_eq!(seen["shaded"], 5, "each timeline shades what was discarded: {seen:#}");
    assert!(seen["bodyFontSize"].as_f64() >= Some(14.0), "{seen:#}");
    for nothing in [
        "emptyDrawings",
        "smallTexts",
        "textsOutside",
        "overlappingTexts",
        "duplicateIds",
        "deadLinks",
        "notInTheLegend",
        "twiceInALegend",
    ] {
        assert_eq!(seen[nothing], Value::Array(vec![]), "{nothing} at {width}");
    }
    assert_eq!((seen["unnamed"].as_u64(), seen["tablesOutside"].as_u64()), (Some(0), Some(0)), "{seen:#}");
    assert_eq!(seen["headings"].as_array().map(Vec::len), Some(11), "{seen:#}");
}
