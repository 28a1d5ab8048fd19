//! The page around the plots: text, tables, colours.

/// Escapes text for HTML, also for a quoted attribute.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            _ => out.push(character),
        }
    }
    out
}

/// The page's style. Colours are variables, so that plots and text change together.
pub(super) const STYLE: &str = "
:root { color-scheme: light dark; --paper: #fdfdfc; --ink: #1f2328; --soft: #5b6570; --faint: #e3e5e8; --box: #f4f5f6;
  --lane: #0059c8; --bqueue: #c25100; --mcring: #007a58; --lamport: #8a3fb0; --fastforward: #b8275f; --multiline: #00778f;
  --locked: #7a5c2e; --crate: #89919b; --roof: #3c4043; --warn: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --paper: #15181c; --ink: #e4e7eb; --soft: #a0a9b4; --faint: #2d333a;
  --box: #1d2228; --lane: #62a8ff; --bqueue: #ff9a52; --mcring: #3ecf9c; --lamport: #cf95ee; --fastforward: #ff86b1;
  --multiline: #4ccbe3; --locked: #d6b278; --crate: #7f8893; --roof: #c9ced4; --warn: #ff8a80; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 60rem; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .3rem; }
h2 { font-size: 1.3rem; margin: 3rem 0 .3rem; padding-top: 1rem; border-top: 1px solid var(--faint); }
h3 { font-size: 1.02rem; margin: 2rem 0 .3rem; }
p { margin: .5rem 0; } a { color: var(--lane); }
.soft, figcaption, summary { color: var(--soft); font-size: .9rem; }
.warn { color: var(--warn); }
figure { margin: 1rem 0; } figure svg { width: 100%; height: auto; display: block; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .86rem; margin: .6rem 0; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .18rem .9rem .18rem 0; vertical-align: top; border-bottom: 1px solid var(--faint); }
th { color: var(--soft); font-weight: 600; } td.n, th.n { text-align: right; white-space: nowrap; }
summary { cursor: pointer; margin: .4rem 0; }
ul { padding-left: 1.2rem; } nav ul { columns: 2; } @media (max-width: 40rem) { nav ul { columns: 1; } }
svg text { font: 12px system-ui, sans-serif; fill: var(--ink); }
svg .mark, svg .axis, svg .note { fill: var(--soft); } svg .note { font-size: 11px; }
svg .middle { text-anchor: middle; } svg .end { text-anchor: end; }
svg .grid { stroke: var(--faint); stroke-width: 1; } svg .leader { stroke: var(--faint); fill: none; }
svg .curve { fill: none; stroke-width: 1.8; } svg .curve.c-crate { stroke-width: 1.1; }
svg .series:hover .curve { stroke-width: 3.5; } svg:has(.series:hover) .series:not(:hover) { opacity: .25; }
svg .range { stroke-width: 3; stroke-opacity: .45; stroke-linecap: round; }
svg .roof { stroke: var(--roof); stroke-dasharray: 2 4; } svg .dot.roof { fill: var(--roof); stroke: none; }
svg .stopped { fill: var(--warn); }
svg .curve.paper { stroke-dasharray: 6 3; } svg .dot.paper { fill: var(--paper) !important; stroke-width: 1.6; }
.c-lane { stroke: var(--lane); } .dot.c-lane, .t-c-lane { fill: var(--lane) !important; font-weight: 700 !important; }
.c-bqueue { stroke: var(--bqueue); } .dot.c-bqueue, .t-c-bqueue { fill: var(--bqueue) !important; }
.c-mcring { stroke: var(--mcring); } .dot.c-mcring, .t-c-mcring { fill: var(--mcring) !important; }
.c-lamport { stroke: var(--lamport); } .dot.c-lamport, .t-c-lamport { fill: var(--lamport) !important; }
.c-fastforward { stroke: var(--fastforward); } .dot.c-fastforward, .t-c-fastforward { fill: var(--fastforward) !important; }
.c-multiline { stroke: var(--multiline); } .dot.c-multiline, .t-c-multiline { fill: var(--multiline) !important; }
.c-locked { stroke: var(--locked); } .dot.c-locked, .t-c-locked { fill: var(--locked) !important; }
.c-other { stroke: var(--ink); } .dot.c-other { fill: var(--ink); }
.c-crate { stroke: var(--crate); } .dot.c-crate { fill: var(--crate); } .t-c-crate, .t-roof { fill: var(--soft) !important; }
@media print { details { display: none; } }
";
