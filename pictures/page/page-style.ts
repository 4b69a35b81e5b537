import { COLOURS, PICTURE_STYLE } from '../style.js'

const variables = (colours: Readonly<Record<string, string>>) =>
  ['page', 'panel', 'text', 'soft', 'line', 'allowed', 'blocked']
    .map((name) => `--${name}: ${colours[name]};`)
    .join(' ')

/** The style of a page that contains a picture: a file of `svc-mcp draw` or an MCP App. */
export const PAGE_STYLE = `${PICTURE_STYLE}
:root { color-scheme: light dark; ${variables(COLOURS.light)} }
@media (prefers-color-scheme: dark) { :root { ${variables(COLOURS.dark)} } }
*, *::before, *::after { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { padding: 1.25rem clamp(0.75rem, 3vw, 2rem) 2rem; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 0.5rem; }
h2 { font-size: 1.0625rem; margin: 1.75rem 0 0.5rem; }
ul.notes { margin: 0 0 1rem; padding: 0; list-style: none; color: var(--soft); max-width: 62rem; }
ul.warnings { margin: 0 0 0.75rem; padding: 0.5rem 0.75rem 0.5rem 1.75rem; border-left: 0.375rem solid var(--blocked); background: var(--panel); max-width: 62rem; }
li { overflow-wrap: anywhere; }
.tools { display: flex; flex-wrap: wrap; gap: 0.5rem 1.25rem; align-items: center; margin: 0 0 0.5rem; }
.tools[hidden] { display: none; }
.tools fieldset { border: 0; margin: 0; padding: 0; display: flex; flex-wrap: wrap; gap: 0.25rem 0.875rem; align-items: center; }
.tools legend { float: left; font-weight: 600; margin-right: 0.25rem; padding: 0; }
.tools label { display: inline-flex; gap: 0.375rem; align-items: center; min-height: 1.75rem; }
button, input[type="search"] {
  font: inherit; color: inherit; background: var(--page); border: 1px solid var(--soft); border-radius: 0.375rem; min-height: 2rem; padding: 0 0.625rem;
}
button { cursor: pointer; min-width: 2rem; }
input[type="search"] { width: 15rem; max-width: 100%; }
input[type="checkbox"], input[type="radio"] { width: 1.125rem; height: 1.125rem; margin: 0; accent-color: var(--allowed); }
:focus-visible { outline: 3px solid var(--allowed); outline-offset: 2px; }
.stage { border: 1px solid var(--line); border-radius: 0.5rem; overflow: auto; background: var(--page); max-height: 80vh; }
.stage > svg { display: block; max-width: none; }
.stage > svg[hidden] { display: none; }
.stage.live { overflow: hidden; height: 72vh; touch-action: none; cursor: grab; }
.stage.live.dragging { cursor: grabbing; }
.stage.live > svg { width: 100%; height: 100%; }
.stage text { cursor: text; user-select: text; }
.stage .node { cursor: pointer; }
.hint, .legend { color: var(--soft); font-size: 0.875rem; }
.legend { display: flex; flex-wrap: wrap; gap: 0.25rem 1.25rem; margin: 0.5rem 0 0; padding: 0; list-style: none; }
.legend li { display: inline-flex; gap: 0.5rem; align-items: center; }
.hide-allowed .allowed:is(.edge, tr), .hide-potentially-blocked .potentially-blocked:is(.edge, tr),
.hide-blocked .blocked:is(.edge, tr), .hide-unknown .unknown:is(.edge, tr) { display: none; }
.focused .node:not(.near), .focused .edge path:not(.near) { opacity: 0.08; }
.focused .node.hit > rect { stroke: var(--text); stroke-width: 2.5; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.875rem; }
caption { text-align: left; color: var(--soft); padding: 0.25rem 0; }
th, td { text-align: left; padding: 0.25rem 0.875rem 0.25rem 0; border-bottom: 1px solid var(--line); vertical-align: top; overflow-wrap: anywhere; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
tr[hidden] { display: none; }
summary { cursor: pointer; font-weight: 600; min-height: 1.75rem; }
@media print { .tools, .hint { display: none; } .stage, .stage.live { height: auto; max-height: none; overflow: visible; } }
`
