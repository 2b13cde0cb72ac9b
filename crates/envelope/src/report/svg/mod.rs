//! What charts are drawn with: elements of SVG, and axes. Colours are classes, which the page's style defines for light,
//! dark and paper.

mod axis;
mod element;

pub(crate) use axis::{Axis, Scale};
pub(crate) use element::{Element, text_width};
